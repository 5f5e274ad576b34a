package egress_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/plugin/egress"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// hop is one request that the server saw.
type hop struct {
	Host, Method, Path, Body string
	Header                   []string // those of interest, sorted as listed
}

// bouncer redirects /STATUS?to=URL there, and records what comes.
type bouncer struct {
	mu   sync.Mutex
	hops []hop
}

func (b *bouncer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	host, _, _ := strings.Cut(r.Host, ":")
	h := hop{Host: host, Method: r.Method, Path: r.URL.Path, Body: string(body)}
	for _, name := range []string{"Authorization", "Cookie", "X-Api-Key", "Content-Type", "Accept"} {
		if r.Header.Get(name) != "" {
			h.Header = append(h.Header, name)
		}
	}
	b.mu.Lock()
	b.hops = append(b.hops, h)
	b.mu.Unlock()
	if to := r.URL.Query().Get("to"); to != "" {
		status, _ := strconv.Atoi(r.URL.Path[1:])
		w.Header().Set("Location", to)
		w.WriteHeader(status)
		return
	}
	_, _ = w.Write([]byte("end"))
}

// via returns a path that redirects to each target in turn.
func via(status int, targets ...string) string {
	to := targets[len(targets)-1]
	for i := len(targets) - 2; i >= 0; i-- {
		to = targets[i] + "/" + strconv.Itoa(status) + "?to=" + url.QueryEscape(to)
	}
	return to
}

func TestRedirectHeadersAndMethods(t *testing.T) {
	all := []string{"Authorization", "Cookie", "X-Api-Key", "Content-Type", "Accept"}
	for _, test := range []struct {
		name   string
		method string
		body   string
		status int
		hosts  []string // of each hop
		want   []hop    // Path is left out
	}{
		{"same host keeps all", "GET", "", 302, []string{"a", "a"}, []hop{{"a", "GET", "", "", all}, {"a", "GET", "", "", all}}},
		{"another host gets no credentials", "GET", "", 302, []string{"a", "b"}, []hop{{"a", "GET", "", "", all}, {"b", "GET", "", "", []string{"Content-Type", "Accept"}}}},
		{"a subdomain neither", "GET", "", 307, []string{"a", "x.a"}, []hop{{"a", "GET", "", "", all}, {"x.a", "GET", "", "", []string{"Content-Type", "Accept"}}}},
		{"nor the first host again", "GET", "", 308, []string{"a", "b", "a"}, []hop{
			{"a", "GET", "", "", all}, {"b", "GET", "", "", []string{"Content-Type", "Accept"}}, {"a", "GET", "", "", []string{"Content-Type", "Accept"}}}},
		{"301 makes POST a GET", "POST", "x", 301, []string{"a", "a"}, []hop{{"a", "POST", "", "x", all}, {"a", "GET", "", "", []string{"Authorization", "Cookie", "X-Api-Key", "Accept"}}}},
		{"302 too", "POST", "x", 302, []string{"a", "b"}, []hop{{"a", "POST", "", "x", all}, {"b", "GET", "", "", []string{"Accept"}}}},
		{"303 makes PUT a GET", "PUT", "x", 303, []string{"a", "a"}, []hop{{"a", "PUT", "", "x", all}, {"a", "GET", "", "", []string{"Authorization", "Cookie", "X-Api-Key", "Accept"}}}},
		{"302 keeps PUT", "PUT", "x", 302, []string{"a", "a"}, []hop{{"a", "PUT", "", "x", all}, {"a", "PUT", "", "x", all}}},
		{"303 keeps HEAD", "HEAD", "", 303, []string{"a", "a"}, []hop{{"a", "HEAD", "", "", all}, {"a", "HEAD", "", "", all}}},
		{"307 keeps POST and body", "POST", "x", 307, []string{"a", "a"}, []hop{{"a", "POST", "", "x", all}, {"a", "POST", "", "x", all}}},
		{"308 keeps both elsewhere", "POST", "x", 308, []string{"a", "b"}, []hop{{"a", "POST", "", "x", all}, {"b", "POST", "", "x", []string{"Content-Type", "Accept"}}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := &bouncer{}
			port := serve(t, b.ServeHTTP)
			var chain, hosts []string
			for _, h := range test.hosts {
				chain = append(chain, "http://"+h+".test:"+port)
				hosts = append(hosts, h+".test:"+port)
			}
			request := map[string]any{"method": test.method, "url": via(test.status, chain...), "body": test.body, "headers": map[string]string{
				"authorization": "Bearer s", "cookie": "s=1", "x-api-key": "s", "content-type": "text/plain", "accept": "*/*"}}
			a, err := do(t, local(t, egress.Options{}), hosts, request)
			if err != nil || a.Status != 200 {
				t.Fatalf("%+v, %v", a, err)
			}
			for i := range b.hops {
				b.hops[i].Path = ""
				b.hops[i].Host = strings.TrimSuffix(b.hops[i].Host, ".test")
			}
			if diff := cmp.Diff(test.want, b.hops); diff != "" {
				t.Errorf("hops (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRedirectsAreCounted(t *testing.T) {
	b := &bouncer{}
	port := serve(t, b.ServeHTTP)
	at := "http://a.test:" + port
	hosts := []string{"a.test:" + port}
	if a, err := get(t, local(t, egress.Options{}), hosts, via(302, at, at, at, at, at, at)); err != nil || a.Body != "end" {
		t.Fatalf("five redirects: %+v, %v", a, err)
	}
	_, err := get(t, local(t, egress.Options{}), hosts, via(302, at, at, at, at, at, at, at))
	wantCode(t, err, abi.Limit)
	if len(b.hops) != 12 {
		t.Errorf("%d requests, want 6 and 6", len(b.hops))
	}
	_, err = get(t, local(t, egress.Options{MaxRedirects: -1}), hosts, via(302, at, at))
	if e := wantCode(t, err, abi.Limit); !strings.Contains(e.Message, "more than 0 redirects") {
		t.Error(e)
	}
}

// TestRedirectsStayInside has an allowed server send its client elsewhere.
func TestRedirectsStayInside(t *testing.T) {
	bird := newCanary(t)
	b := &bouncer{}
	port := serve(t, b.ServeHTTP)
	// The server is at 127.0.0.7, which is allowed; the canary is not there.
	c := egress.New(egress.Options{
		AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.7/32")},
		Resolver:     &names{lists: map[string][][]string{"a.test": {{"127.0.0.7"}}, "": {{"127.0.0.1"}}}},
	})
	port7 := relay(t, "127.0.0.7:0", "127.0.0.1:"+port)
	at := "http://a.test:" + port7
	hosts := []string{"a.test:" + port7, "granted.test:" + bird.port, "127.0.0.1:" + bird.port}
	if a, err := get(t, c, hosts, at); err != nil || a.Body != "end" {
		t.Fatalf("%+v, %v", a, err)
	}
	for _, test := range []struct{ to, says string }{
		{"http://evil.test:BIRD/", `redirects to "evil.test:BIRD", which is not among the hosts granted for "http"`},
		{"//evil.test:BIRD/", `redirects to "evil.test:BIRD"`},
		{"http://granted.test:BIRD/", "no address is a public one"},
		{"http://127.0.0.1:BIRD/", "no address is a public one"},
		{"http://127.0.0.2:BIRD/", "redirects to an IP address"},
		{"http://10.11.12.13/", "redirects to an IP address"},
		{"http://[::1]:BIRD/", "redirects to an IP address"},
		{"http://2130706433:BIRD/", "not http or https with a host"},
		{"http://0x7f.1:BIRD/", "not http or https with a host"},
		{"http://[::ffff:127.0.0.1]:BIRD/", "not http or https with a host"},
		{"http://u:p@granted.test:BIRD/", "not http or https with a host"},
		{"http://granted.test\\@127.0.0.1:BIRD/", "not http or https with a host"},
		{"file:///etc/passwd", "not http or https with a host"},
		{"gopher://127.0.0.1:BIRD/", "not http or https with a host"},
		{"http://a b/", "not http or https with a host"},
	} {
		to := strings.ReplaceAll(test.to, "BIRD", bird.port)
		for _, chain := range [][]string{{at, to}, {at, at, at, to}} {
			_, err := get(t, c, hosts, via(302, chain...))
			e := wantCode(t, err, abi.Denied)
			if !strings.Contains(e.Message, strings.ReplaceAll(test.says, "BIRD", bird.port)) {
				t.Errorf("%s: %s, want %q", to, e.Message, test.says)
			}
			if strings.Contains(e.Message+e.Hint, "10.11.12.13") {
				t.Errorf("%s: the error tells an address: %s", to, e.Message)
			}
		}
	}
	if n := bird.accepted.Load(); n != 0 {
		t.Fatalf("%d connections accepted", n)
	}
}

// TestLocationsThatCannotBe come from the server alone.
func TestLocationsThatCannotBe(t *testing.T) {
	for _, location := range []string{"http://" + strings.Repeat("x", 9000), "http://a.test:1/\x01", "http://\xff/", "http:", ":", "%zz"} {
		port := raw(t, "HTTP/1.1 302 Found\r\nLocation: "+location+"\r\n\r\n")
		_, err := get(t, local(t, egress.Options{}), []string{"a.test:" + port}, "http://a.test:"+port)
		if code := abi.CodeOf(err); code != abi.Denied && code != abi.Unavailable {
			t.Errorf("%.50q: %v", location, err)
		}
	}
}

// TestRedirectDoesNotLeaveTLS also makes the one request over TLS.
func TestRedirectDoesNotLeaveTLS(t *testing.T) {
	bird := newCanary(t)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/down" {
			http.Redirect(w, r, "http://example.com:"+bird.port+"/", http.StatusFound)
			return
		}
		fmt.Fprintf(w, "%s %v", r.Proto, r.TLS.Version >= tls.VersionTLS12)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // it logs each refused certificate
	s.StartTLS()
	t.Cleanup(s.Close)
	port := s.URL[strings.LastIndexByte(s.URL, ':')+1:]
	hosts := []string{"example.com:" + port, "example.com:" + bird.port, "other.test:" + port}
	c := local(t, egress.Options{})
	_, err := get(t, c, hosts, "https://example.com:"+port+"/")
	if e := wantCode(t, err, abi.Unavailable); !strings.Contains(e.Message, "unknown authority") {
		t.Error(e)
	}
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	c = local(t, egress.Options{Roots: pool})
	if a, err := get(t, c, hosts, "https://example.com:"+port+"/"); err != nil || a.Body != "HTTP/1.1 true" {
		t.Errorf("%+v, %v", a, err)
	}
	_, err = get(t, c, hosts, "https://other.test:"+port+"/")
	if e := wantCode(t, err, abi.Unavailable); !strings.HasSuffix(e.Message, "its certificate is for another host") {
		t.Error(e)
	}
	_, err = get(t, c, hosts, "https://example.com:"+port+"/down")
	wantCode(t, err, abi.Denied)
	if bird.accepted.Load() != 0 {
		t.Error("it went on without TLS")
	}
}
