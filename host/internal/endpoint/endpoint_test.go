package endpoint_test

import (
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/endpoint"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"":                              0,
		"120":                           2 * time.Minute,
		"-5":                            0,
		"99999999999":                   time.Hour,
		"soon":                          0,
		"Fri, 01 May 2026 12:00:30 GMT": 30 * time.Second,
		"Fri, 01 May 2026 11:00:00 GMT": 0,
		"Sat, 02 May 2026 12:00:00 GMT": time.Hour,
	} {
		h := http.Header{}
		h.Set("Retry-After", value)
		if got := endpoint.RetryAfter(h, now); got != want {
			t.Errorf("Retry-After %q: %s, want %s", value, got, want)
		}
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]bool{
		"https://example.com/hook": true, "http://localhost:8080": true, "http://127.0.0.1": true, "http://[::1]:3000/x": true,
		"": false, "http://example.com": false, "https://user:key@example.com": false, "ftp://localhost": false, "https:///path": false, "%": false,
	} {
		if _, ok := endpoint.Parse(text); ok != want {
			t.Errorf("%q: %v", text, ok)
		}
	}
}

func TestOwnAddress(t *testing.T) {
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range own {
		prefix, err := netip.ParsePrefix(a.String())
		if err == nil && !endpoint.OwnAddress(prefix.Addr()) {
			t.Errorf("%s is not of this machine", a)
		}
	}
	for text, want := range map[string]bool{"127.8.9.10": true, "::ffff:127.0.0.1": true, "::1": true, "192.0.2.77": false, "2001:db8::77": false} {
		if got := endpoint.OwnAddress(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
