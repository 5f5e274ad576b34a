package egress_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/plugin/egress"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// FuzzRequest holds what is let through to one reading: written as HTTP and
// read again it is one request, to the host that was checked.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"method":"POST","url":"https://a.test:8/?q=1 2#f","headers":{"x":"1"},"body":"b","timeoutMs":5}`))
	f.Add([]byte(`{"url":"http://[2606:4700::1]/a/../b%2F?"}`))
	f.Add([]byte(`{"url":"http://bücher.example./ü","headers":{"Host":"x"}}`))
	f.Add([]byte(`{"url":"http://a\\@b","URL":"http://c"}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		sent, err := egress.Decode(in)
		if err != nil {
			if abi.As(err) == nil {
				t.Fatalf("an error without a code: %v", err)
			}
			return
		}
		u, err := url.Parse(sent.URL)
		if err != nil || u.Host != sent.Host || u.User != nil || u.Fragment != "" {
			t.Fatalf("url %q for host %q: %v", sent.URL, sent.Host, err)
		}
		req := &http.Request{Method: sent.Method, URL: u, Header: sent.Header}
		var wire strings.Builder
		if err := req.Write(&wire); err != nil {
			t.Fatalf("write %q: %v", sent, err)
		}
		r := bufio.NewReader(strings.NewReader(wire.String()))
		back, err := http.ReadRequest(r)
		if err != nil {
			t.Fatalf("read %q: %v", wire.String(), err)
		}
		if back.Host != sent.Host || back.Method != sent.Method || back.ContentLength > 0 || r.Buffered() > 0 {
			t.Fatalf("%q is %s to %q with %d bytes behind it", wire.String(), back.Method, back.Host, r.Buffered())
		}
		if !json.Valid(in) {
			t.Fatalf("%q is not JSON", in)
		}
	})
}

// FuzzAllowed holds that what a grant lets through is what it names, and that
// nothing is let through which a resolver could take for another address.
func FuzzAllowed(f *testing.F) {
	for _, u := range hostile {
		f.Add("*.example.com:80", strings.ReplaceAll(u, "PORT", "80"))
	}
	f.Add("127.0.0.1", "http://127.0.0.1")
	f.Add("[2606:4700::1]", "https://[2606:4700::1]")
	f.Add("bücher.example", "https://BÜCHER.example.")
	f.Fuzz(func(t *testing.T, entry, raw string) {
		host, ok, err := egress.Allowed([]string{entry}, raw)
		if err != nil {
			if abi.As(err) == nil {
				t.Fatalf("an error without a code: %v", err)
			}
			return
		}
		for i := range len(host) {
			if c := host[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`/\?#@%"<>`, c) >= 0 || c >= 'A' && c <= 'Z' {
				t.Fatalf("host %q", host)
			}
		}
		u := &url.URL{Host: host}
		name := u.Hostname()
		_, notIP := netip.ParseAddr(name)
		last := name[strings.LastIndexByte(name, '.')+1:]
		if notIP != nil && (name == "" || strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") && strings.Trim(last[2:], "0123456789abcdef") == "") {
			t.Fatalf("%q has the name %q, which may be read as an address", raw, name)
		}
		if !ok {
			return
		}
		if under, isBelow := strings.CutPrefix(entry, "*."); isBelow {
			if notIP == nil {
				t.Fatalf("%q lets the address %q through", entry, name)
			}
			if strings.IndexByte(under, ':') < 0 && isLower(under) && !strings.HasSuffix(name, "."+strings.TrimSuffix(under, ".")) {
				t.Fatalf("%q lets %q through", entry, name)
			}
		} else if strings.IndexByte(entry, ':') < 0 && isLower(entry) && name != strings.TrimSuffix(entry, ".") {
			t.Fatalf("%q lets %q through", entry, name)
		}
		// What was let through is read the same way again.
		again, ok, err := egress.Allowed([]string{host}, "https://"+host)
		if u.Port() == "" && (err != nil || !ok || again != host) {
			t.Fatalf("%q, again: %q, %v, %v", host, again, ok, err)
		}
	})
}

// isLower reports whether s is plain: what it names is its own text.
func isLower(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789.-_") == ""
}
