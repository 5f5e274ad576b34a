package egress_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/plugin/egress"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

func TestDecode(t *testing.T) {
	for in, want := range map[string]egress.Sent{
		`{"url":"http://a.test"}`:                                    {Method: "GET", URL: "http://a.test", Host: "a.test"},
		`{"method":null,"url":"https://A.test:443/x#y","body":null}`: {Method: "GET", URL: "https://a.test/x", Host: "a.test"},
		`{"method":"POST","url":"https://a.test:8/?q=a b&ü=\"","headers":{"x-a":" 1 ","Accept":"*/*"},"body":"{}","timeoutMs":1000}`: {
			Method: "POST", URL: "https://a.test:8/?q=a%20b&%C3%BC=%22", Host: "a.test:8", Header: map[string][]string{"X-A": {"1"}, "Accept": {"*/*"}}},
		`{"method":"HEAD","url":"http://[2606:4700:0::1]:80/a%2Fb/../c","headers":null}`: {Method: "HEAD", URL: "http://[2606:4700::1]/a%2Fb/../c", Host: "[2606:4700::1]"},
	} {
		got, err := egress.Decode([]byte(in))
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if want.Header == nil {
			want.Header = map[string][]string{}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", in, diff)
		}
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	for in, field := range map[string]string{
		``: "", `null`: "", `[]`: "", `"x"`: "", `{`: "", `{}x`: "", `{"url":"http://a.test"}{}`: "", "{\"url\":\"http://a.test/\xff\"}": "",
		`{}`: "url", `{"url":7}`: "url", `{"url":null}`: "url", `{"url":""}`: "url", `{"url":"/x"}`: "url",
		`{"url":"http://a.test","url":"http://b.test"}`:            "",
		`{"URL":"http://a.test"}`:                                  "URL",
		`{"url":"http://a.test","follow":true}`:                    "follow",
		`{"url":"http://a.test","method":"get"}`:                   "method",
		`{"url":"http://a.test","method":"CONNECT"}`:               "method",
		`{"url":"http://a.test","method":"TRACE"}`:                 "method",
		`{"url":"http://a.test","method":"GET / HTTP/1.1\r\nX:"}`:  "method",
		`{"url":"http://a.test","method":["GET"]}`:                 "method",
		`{"url":"http://a.test","body":"x"}`:                       "body",
		`{"url":"http://a.test","method":"HEAD","body":"x"}`:       "body",
		`{"url":"http://a.test","method":"POST","body":{}}`:        "body",
		`{"url":"http://a.test","timeoutMs":-1}`:                   "timeoutMs",
		`{"url":"http://a.test","timeoutMs":300001}`:               "timeoutMs",
		`{"url":"http://a.test","timeoutMs":1.5}`:                  "timeoutMs",
		`{"url":"http://a.test","timeoutMs":"1"}`:                  "timeoutMs",
		`{"url":"http://a.test","timeoutMs":99999999999999999999}`: "timeoutMs",
		`{"url":"http://a.test","headers":[]}`:                     "headers",
		`{"url":"http://a.test","headers":{"a":1}}`:                "headers.a",
		`{"url":"http://a.test","headers":{"a":"1","A":"2"}}`:      "headers.A",
		`{"url":"http://a.test","headers":{"":"1"}}`:               "headers.",
		`{"url":"http://a.test","headers":{"a b":"1"}}`:            "headers.a b",
		`{"url":"http://a.test","headers":{"a:":"1"}}`:             "headers.a:",
		`{"url":"http://a.test","headers":{"ä":"1"}}`:              "headers.ä",
		`{"url":"http://a.test","headers":{"a":"1\r\nb: 2"}}`:      "headers.a",
		`{"url":"http://a.test","headers":{"a":"1\u0000"}}`:        "headers.a",
		`{"url":"http://u@a.test"}`:                                "url", `{"url":"http://u:p@a.test"}`: "url", `{"url":"http://@a.test"}`: "url",
	} {
		_, err := egress.Decode([]byte(in))
		e := abi.As(err)
		if e == nil || e.Code != abi.BadFields || e.Field != field {
			t.Errorf("%s: %#v, want bad_fields of %q", in, err, field)
		}
	}
	for _, name := range []string{
		"Host", "host", "CONTENT-LENGTH", "Transfer-Encoding", "transfer-encoding", "Connection", "Keep-Alive", "TE", "Trailer", "Upgrade",
		"Expect", "Accept-Encoding", "HTTP2-Settings", "Proxy-Authorization", "proxy-connection", "Proxy-",
	} {
		b, _ := json.Marshal(map[string]any{"url": "http://a.test", "headers": map[string]string{name: "x"}})
		if _, err := egress.Decode(b); abi.CodeOf(err) != abi.BadFields || !strings.Contains(err.Error(), "only the host") {
			t.Errorf("header %s: %v", name, err)
		}
	}
	many := map[string]string{}
	for i := range 65 {
		many["a"+strings.Repeat("b", i)] = "x"
	}
	for _, headers := range []map[string]string{many, {"a": strings.Repeat("x", 33<<10)}} {
		b, _ := json.Marshal(map[string]any{"url": "http://a.test", "headers": headers})
		if _, err := egress.Decode(b); abi.CodeOf(err) != abi.BadFields || !strings.Contains(err.Error(), "more than") {
			t.Errorf("%d headers: %v", len(headers), err)
		}
	}
	if _, err := egress.Decode([]byte(`{"url":"http://a.test/` + strings.Repeat("x", 9000) + `"}`)); abi.CodeOf(err) != abi.Limit {
		t.Errorf("a long URL: %v", err)
	}
	if _, err := egress.Decode([]byte(`{"body":"` + strings.Repeat("x", 256<<10) + `"}`)); abi.CodeOf(err) != abi.Limit {
		t.Errorf("a long request: %v", err)
	}
}

// TestOnTheWire looks at a request from the server's side.
func TestOnTheWire(t *testing.T) {
	var got *http.Request
	port := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Clone(r.Context())
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "1"})
		http.SetCookie(w, &http.Cookie{Name: "b", Value: "2"})
		w.Header().Add("X-Two", "1")
		w.Header().Add("X-Two", "2")
		w.Header().Set("X-Latin", "caf\xe9")
		w.WriteHeader(http.StatusTeapot)
	})
	c := local(t, egress.Options{UserAgent: "test/1"})
	hosts := []string{"a.test:" + port}
	a, err := do(t, c, hosts, map[string]any{"method": "DELETE", "url": "http://a.test:" + port + "/x y?z w", "headers": map[string]string{"idempotency-key": "k", "cookie": "own=1"}})
	if err != nil {
		t.Fatal(err)
	}
	if a.Status != http.StatusTeapot || a.Headers["set-cookie"] != "a=1\nb=2" || a.Headers["x-two"] != "1, 2" || a.Headers["x-latin"] != "café" {
		t.Errorf("%+v", a)
	}
	want := http.Header{"Accept-Encoding": {"gzip"}, "Connection": {"close"}, "Cookie": {"own=1"}, "Idempotency-Key": {"k"}, "User-Agent": {"test/1"}}
	if diff := cmp.Diff(want, got.Header); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	if got.RequestURI != "/x%20y?z%20w" || got.Host != "a.test:"+port || got.Method != http.MethodDelete {
		t.Errorf("%s %s of %s", got.Method, got.RequestURI, got.Host)
	}
	if _, err := get(t, c, hosts, "http://a.test:"+port); err != nil || got.Header.Get("Cookie") != "" || got.Header.Get("Idempotency-Key") != "" {
		t.Errorf("the next request had %v, %v", got.Header, err)
	}
}

// TestStatusIsAResult has every kind of status.
func TestStatusIsAResult(t *testing.T) {
	status := 0
	port := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	for _, status = range []int{200, 204, 301, 302, 304, 307, 400, 401, 404, 407, 429, 500, 503, 599} {
		a, err := get(t, local(t, egress.Options{}), []string{"a.test:" + port}, "http://a.test:"+port)
		if err != nil || a.Status != status {
			t.Errorf("%d: %+v, %v", status, a, err)
		}
	}
}

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) }
