package egress_test

import (
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/plugin/egress"
	"github.com/sentinel-runtime/sentinel/host/redact"
	"github.com/sentinel-runtime/sentinel/host/secret"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// value is a secret with what every place has to escape, and its parts may be
// parts of a path.
const value = `p/q?r&s="t" <u>%2e\v+ü`

func secrets(env map[string]string) *secret.Source {
	return secret.New(secret.Options{Getenv: func(name string) string { return env[strings.TrimPrefix(name, secret.Env)] }, Redactor: new(redact.Redactor)})
}

// world is a server that speaks TLS and one that does not, with all that came.
type world struct {
	mu         sync.Mutex
	seen       []string // request line, headers of interest, body
	tls, plain string   // ports
	roots      *x509.CertPool
}

// newWorld serves for every name. The certificate of httptest is for
// example.com and what is below it.
func newWorld(t *testing.T, handler http.HandlerFunc) *world {
	t.Helper()
	w := &world{roots: x509.NewCertPool()}
	serve := http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		w.mu.Lock()
		w.seen = append(w.seen, fmt.Sprintf("%s %s %q %q %q", r.Method, r.RequestURI, r.Header.Get("Authorization"), r.Header.Get("Idempotency-Key"), body))
		w.mu.Unlock()
		handler(out, r)
	})
	s, p := httptest.NewUnstartedServer(serve), httptest.NewServer(serve)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	t.Cleanup(p.Close)
	w.roots.AddCert(s.Certificate())
	w.tls, w.plain = s.URL[strings.LastIndexByte(s.URL, ':')+1:], p.URL[strings.LastIndexByte(p.URL, ':')+1:]
	return w
}

// ask makes a request with the secret KEY, granted for example.com by TLS, and
// plain.test without. REQUEST's ports are TLS and PLAIN.
func (w *world) ask(t *testing.T, env map[string]string, request string) (json.RawMessage, error) {
	t.Helper()
	r := strings.NewReplacer("TLS", w.tls, "PLAIN", w.plain)
	c := local(t, egress.Options{Roots: w.roots, Secrets: secrets(env)})
	return c.Do(t.Context(), egress.Call{
		Plugin:  "slack",
		Hosts:   []string{"example.com:" + w.tls, "a.example.com:" + w.tls, "b.example.com:" + w.tls, "plain.test:" + w.plain, "other.test:" + w.plain, "example.com:" + w.plain},
		Secrets: map[string][]string{"KEY": {"example.com:" + w.tls, "*.example.com:" + w.tls, "http://plain.test:" + w.plain, "example.com:" + w.plain}, "SHORT": {"example.com:" + w.tls}, "LINES": {"example.com:" + w.tls}, "DOTS": {"example.com:" + w.tls}, "NONE": {"example.com:" + w.tls}},
		Key:     "key-of-the-call",
		Request: json.RawMessage(r.Replace(request)),
	})
}

var env = map[string]string{"KEY": value, "OTHER": "value-of-another", "SHORT": "short", "LINES": "line-one\nline-two", "DOTS": "a/../../b-c-d"}

func TestSecretsAreEscapedForTheirPlace(t *testing.T) {
	w := newWorld(t, hello)
	quoted, _ := json.Marshal(value)
	inJSON := strings.NewReplacer(`\u0026`, "&", `\u003c`, "<", `\u003e`, ">").Replace(string(quoted[1 : len(quoted)-1]))
	inQuery := strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
	for _, test := range []struct{ name, request, want string }{
		{"header", `{"url":"https://example.com:TLS/x","headers":{"authorization":"Bearer {{secret.KEY}}!"}}`,
			fmt.Sprintf("GET /x %q \"\" \"\"", "Bearer "+strings.ReplaceAll(value, "ü", "ü")+"!")},
		{"path", `{"url":"https://example.com:TLS/bot{{secret.KEY}}/send?a=b"}`,
			`GET /botp/q%3Fr&s=%22t%22%20%3Cu%3E%252e%5Cv+%C3%BC/send?a=b "" "" ""`},
		{"query", `{"url":"https://example.com:TLS/?a={{secret.KEY}}&b={{secret.KEY}}"}`, `GET /?a=` + inQuery + `&b=` + inQuery + ` "" "" ""`},
		{"json", `{"url":"https://example.com:TLS/","method":"POST","bodySecrets":true,"headers":{"content-type":"application/vnd.x+json; charset=utf-8"},"body":"{\"k\":\"{{secret.KEY}}\"}"}`,
			fmt.Sprintf("POST / \"\" \"key-of-the-call\" %q", `{"k":"`+inJSON+`"}`)},
		{"form", `{"url":"https://example.com:TLS/","method":"PUT","bodySecrets":true,"headers":{"content-type":"application/x-www-form-urlencoded","idempotency-key":"own"},"body":"k={{secret.KEY}}"}`,
			fmt.Sprintf("PUT / \"\" \"own\" %q", `k=`+inQuery)},
		{"text", `{"url":"https://example.com:TLS/","method":"PATCH","bodySecrets":true,"body":"{{secret.KEY}}"}`,
			fmt.Sprintf("PATCH / \"\" \"key-of-the-call\" %q", value)},
		{"a body that did not ask for it", `{"url":"https://example.com:TLS/","method":"POST","body":"{{secret.KEY}} {{secret.no}} {{secret."}`,
			`POST / "" "key-of-the-call" "{{secret.KEY}} {{secret.no}} {{secret."`},
		{"without TLS where that is said", `{"url":"http://plain.test:PLAIN/{{secret.KEY}}"}`, `GET /p/q%3Fr&s=%22t%22%20%3Cu%3E%252e%5Cv+%C3%BC "" "" ""`},
		{"escaped braces are no place", `{"url":"https://example.com:TLS/%7B%7Bsecret.KEY%7D%7D?a=%7B%7Bsecret.KEY%7D%7D"}`,
			`GET /%7B%7Bsecret.KEY%7D%7D?a=%7B%7Bsecret.KEY%7D%7D "" "" ""`},
	} {
		t.Run(test.name, func(t *testing.T) {
			w.seen = nil
			if _, err := w.ask(t, env, test.request); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{test.want}, w.seen); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestSecretsThatMayNotGo has no connection made for any of them.
func TestSecretsThatMayNotGo(t *testing.T) {
	w := newWorld(t, hello)
	for _, test := range []struct {
		request, message, hint string
		code                   abi.Code
	}{
		{`{"url":"http://other.test:PLAIN/{{secret.KEY}}"}`, `fetch "other.test:PLAIN": secret "KEY" is not granted for this host`, "sentinel plugin allow slack --secret KEY=http://other.test:PLAIN", abi.Denied},
		{`{"url":"http://example.com:PLAIN/{{secret.KEY}}"}`, `secret "KEY" is granted for this host by https alone`, "KEY=http://example.com:PLAIN", abi.Denied},
		{`{"url":"https://example.com:TLS/{{secret.OTHER}}"}`, `fetch "example.com:TLS": secret "OTHER" is not granted for this host`, "--secret OTHER=example.com:TLS", abi.Denied},
		{`{"url":"https://example.com:TLS/","headers":{"x":"{{secret.KEY}}{{secret.OTHER}}"}}`, `secret "OTHER" is not granted`, "", abi.Denied},
		{`{"url":"https://evil.test:TLS/{{secret.KEY}}"}`, `not among the hosts`, "", abi.Denied},
		{`{"url":"https://{{secret.KEY}}.example.com:TLS/"}`, "in the path and in the query alone", "", abi.BadFields},
		{`{"url":"https://{{secret.KEY}}:x@example.com:TLS/"}`, "a user or password", "", abi.BadFields},
		{`{"url":"https://example.com:TLS/#{{secret.KEY}}"}`, "in the path and in the query alone", "", abi.BadFields},
		{`{"url":"https://example.com:{{secret.KEY}}/"}`, "not a URL", "", abi.BadFields},
		{`{"url":"{{secret.KEY}}"}`, "wanted http:// or https://", "", abi.BadFields},
		{`{"url":"https://example.com:TLS/{{secret.key}}"}`, "wanted {{secret.NAME}}", "", abi.BadFields},
		{`{"url":"https://example.com:TLS/{{secret.KEY}"}`, "wanted {{secret.NAME}}", "", abi.BadFields},
		{`{"url":"https://example.com:TLS/","headers":{"x":"{{secret. KEY }}"}}`, "headers.X: wanted {{secret.NAME}}", "", abi.BadFields},
		{`{"url":"https://example.com:TLS/","method":"POST","bodySecrets":true,"body":"{{secret.}}"}`, "body: wanted", "", abi.BadFields},
		{`{"url":"https://example.com:TLS/` + strings.Repeat("{{secret.KEY}}", 33) + `"}`, "more than 32 secrets", "", abi.BadFields},
		{`{"url":"https://example.com:TLS/{{secret.SHORT}}"}`, "too short", "8 bytes", abi.Denied},
		{`{"url":"https://example.com:TLS/{{secret.NONE}}"}`, `secret "NONE": has no value`, "SENTINEL_SECRET_NONE", abi.NotFound},
		{`{"url":"https://example.com:TLS/{{secret.DOTS}}"}`, "a part . or ..", "", abi.Denied},
		{`{"url":"https://example.com:TLS/","headers":{"x":"{{secret.LINES}}"}}`, "line ends", "", abi.Denied},
		{`{"url":"https://example.com:TLS/","headers":{"{{secret.KEY}}":"x"}}`, "not the name of a header", "", abi.BadFields},
	} {
		_, err := w.ask(t, env, test.request)
		r := strings.NewReplacer("TLS", w.tls, "PLAIN", w.plain)
		e := abi.As(err)
		if e == nil || e.Code != test.code || !strings.Contains(e.Message, r.Replace(test.message)) || !strings.Contains(e.Hint, r.Replace(test.hint)) || !e.Permanent {
			t.Errorf("%s: %+v, want %s, %q and the hint %q", test.request, e, test.code, test.message, test.hint)
		}
	}
	if len(w.seen) != 0 {
		t.Errorf("the servers saw %q", w.seen)
	}
	c := egress.New(egress.Options{})
	_, err := c.Do(t.Context(), egress.Call{Hosts: []string{"a.test"}, Secrets: map[string][]string{"KEY": {"a.test"}}, Request: json.RawMessage(`{"url":"https://a.test/{{secret.KEY}}"}`)})
	if e := wantCode(t, err, abi.Denied); !strings.Contains(e.Message, "this program has none") {
		t.Error(e)
	}
	for _, entry := range []string{"*", "https://a.test", "http://", "http://a.test/x", "http://u@a.test", "ftp://a.test"} {
		if err := egress.CheckSecretHosts("KEY", []string{"fine.test", entry}); abi.CodeOf(err) != abi.BadFields {
			t.Errorf("%q: %v, want bad_fields", entry, err)
		}
	}
	if err := egress.CheckSecretHosts("KEY", []string{"a.test", "*.a.test:8", "http://a.test:8080"}); err != nil {
		t.Error(err)
	}
}

// digits is text that does not compress like a bomb.
func digits(n int) string {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = "0123456789"[r.IntN(10)]
	}
	return string(b)
}

// TestSecretsAreNotRepeated has a server send the secret back in every way it
// can think of.
func TestSecretsAreNotRepeated(t *testing.T) {
	forms := []string{
		value, url.QueryEscape(value), url.PathEscape(value), base64.StdEncoding.EncodeToString([]byte(value)), base64.URLEncoding.EncodeToString([]byte("x" + value)),
		hex.EncodeToString([]byte(value)), "p/q%3Fr&s=%22t%22%20%3Cu%3E%252e%5Cv+%C3%BC",
	}
	inJSON, _ := json.Marshal(map[string]any{"a": []any{value, "x" + value + "y"}, value: 1})
	var odd strings.Builder
	for _, r := range value {
		fmt.Fprintf(&odd, `\u%04X`, r)
	}
	bodies := append(forms, string(inJSON), `{"b":"`+odd.String()+`"}`, "\xff\xfe"+value, digits(239<<10)+strings.Repeat(value, 100), digits(240<<10-10)+value)
	w := newWorld(t, func(out http.ResponseWriter, r *http.Request) {
		var i int
		_, _ = fmt.Sscanf(r.URL.Query().Get("i"), "%d", &i)
		if r.URL.Query().Get("where") == "header" {
			out.Header().Set("X-Echo", strings.ReplaceAll(forms[i], "ü", "ü"))
			out.Header().Add("Set-Cookie", "a="+forms[i])
			return
		}
		out.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(out)
		defer z.Close()
		_, _ = z.Write([]byte(bodies[i]))
	})
	for _, where := range []string{"header", "body"} {
		n := len(bodies)
		if where == "header" {
			n = len(forms)
		}
		for i := range n {
			// Only the first request carries it: later ones must not get it either.
			for _, path := range []string{"{{secret.KEY}}", "none"} {
				out, err := w.ask(t, env, fmt.Sprintf(`{"url":"https://example.com:TLS/%s?i=%d&where=%s"}`, path, i, where))
				if err != nil {
					t.Fatalf("%s %d: %v", where, i, err)
				}
				var a answers
				if err := json.Unmarshal(out, &a); err != nil {
					t.Fatal(err)
				}
				text := string(a.bytes(t)) + fmt.Sprint(a.Headers)
				for _, f := range append(forms, string(inJSON), odd.String(), value[:8], value[4:]) {
					if strings.Contains(text, f) {
						t.Errorf("%s %d of %q: the answer holds %q", where, i, path, f)
					}
				}
				if !strings.Contains(text, "***") && !a.Truncated {
					t.Errorf("%s %d: no mark in %.200q", where, i, text)
				}
			}
		}
	}
}

// TestSecretsAsHeaderNames has a server send the secret back as the name of a
// header, whose case net/http changes, and percent-encoded byte by byte.
func TestSecretsAsHeaderNames(t *testing.T) {
	const key = "xoxb-S3cretTOKEN_9z"
	var encoded strings.Builder
	for i := range len(key) {
		fmt.Fprintf(&encoded, "%%%02x", key[i])
	}
	w := newWorld(t, func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("X-"+key, "1")
		out.Header().Set(key, "2")
		out.Header().Set("X-Encoded", encoded.String())
		_, _ = io.WriteString(out, "body "+encoded.String())
	})
	answer, err := w.ask(t, map[string]string{"KEY": key}, `{"url":"https://example.com:TLS/","headers":{"authorization":"{{secret.KEY}}"}}`)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ToLower(string(answer))
	if strings.Contains(text, "s3cret") || strings.Contains(text, "%53") {
		t.Errorf("the answer holds the secret: %s", answer)
	}
	for _, want := range []string{`"x-***":"1"`, `"***":"2"`, `"x-encoded":"***"`, `"body ***"`} {
		if !strings.Contains(string(answer), want) {
			t.Errorf("%s is not in the answer: %s", want, answer)
		}
	}
}

func TestSecretsAndRedirects(t *testing.T) {
	var w *world
	w = newWorld(t, func(out http.ResponseWriter, r *http.Request) {
		to := r.URL.Query().Get("to")
		if to == "" {
			_, _ = out.Write([]byte("end"))
			return
		}
		var status int
		_, _ = fmt.Sscanf(r.URL.Query().Get("status"), "%d", &status)
		out.Header().Set("Location", strings.NewReplacer("TLS", w.tls, "PLAIN", w.plain).Replace(to))
		out.WriteHeader(status)
	})
	plain := map[string]string{"KEY": "plain-value"}
	for _, test := range []struct {
		name, method, extra, path, to string
		status                        int
		want                          []string // method, path, authorization and body of each request
		denied                        string
	}{
		{name: "the same host gets all again", method: "POST", status: 307, path: "{{secret.KEY}}/x", to: "y", want: []string{
			`POST /plain-value/x "Bearer plain-value" "key-of-the-call" "b=plain-value"`, `POST /plain-value/y "Bearer plain-value" "key-of-the-call" "b=plain-value"`}, extra: `"bodySecrets":true,"body":"b={{secret.KEY}}",`},
		{name: "a body goes with the method", method: "POST", status: 303, path: "x", to: "y", want: []string{
			`POST /x "Bearer plain-value" "key-of-the-call" "b=plain-value"`, `GET /y "Bearer plain-value" "" ""`}, extra: `"bodySecrets":true,"body":"b={{secret.KEY}}",`},
		{name: "another host gets nothing, though it is granted", method: "GET", status: 302, path: "{{secret.KEY}}", to: "https://a.example.com:TLS/y", want: []string{
			`GET /plain-value "Bearer plain-value" "" ""`, `GET /y "" "" ""`}},
		{name: "nor does the first, from there", method: "GET", status: 302, path: "x", to: "https://a.example.com:TLS/?status=302&to=https://example.com:TLS/z", want: []string{
			`GET /x "Bearer plain-value" "" ""`, `GET /?status=302 "" "" ""`, `GET /z "" "" ""`}},
		{name: "a secret in the body goes nowhere else", method: "POST", status: 308, path: "x", to: "https://a.example.com:TLS/y", extra: `"bodySecrets":true,"body":"b={{secret.KEY}}",`,
			want: []string{`POST /x "Bearer plain-value" "key-of-the-call" "b=plain-value"`}, denied: "redirects to another host with a secret in the body"},
		{name: "what only looks like one does", method: "POST", status: 308, path: "x", to: "https://a.example.com:TLS/y", extra: `"body":"b={{secret.KEY}}",`,
			want: []string{`POST /x "Bearer plain-value" "key-of-the-call" "b={{secret.KEY}}"`, `POST /y "" "" "b={{secret.KEY}}"`}},
		{name: "a server cannot forward it", method: "GET", status: 302, path: "x", to: "https://a.example.com:TLS/plain-value",
			want: []string{`GET /x "Bearer plain-value" "" ""`}, denied: "redirects to another host with a secret in the address"},
		{name: "nor escaped", method: "GET", status: 302, path: "x", to: "https://a.example.com:TLS/?cGxhaW4tdmFsdWU=",
			want: []string{`GET /x "Bearer plain-value" "" ""`}, denied: "with a secret in the address"},
		{name: "its own address may have it", method: "GET", status: 301, path: "{{secret.KEY}}", to: "/plain-value/",
			want: []string{`GET /plain-value "Bearer plain-value" "" ""`, `GET /plain-value/ "Bearer plain-value" "" ""`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w.seen = nil
			out, err := w.ask(t, plain, fmt.Sprintf(`{"url":"https://example.com:TLS/%s?status=%d&to=%s","method":%q,%s"headers":{"authorization":"Bearer {{secret.KEY}}","accept":"{{secret.KEY}}"}}`,
				test.path, test.status, url.QueryEscape(test.to), test.method, test.extra))
			if test.denied == "" && err != nil {
				t.Fatal(err)
			}
			if e := abi.As(err); test.denied != "" && (e == nil || e.Code != abi.Denied || !strings.Contains(e.Message, test.denied) || strings.Contains(e.Message, "plain-value")) {
				t.Errorf("%s, %+v, want it denied with %q", out, e, test.denied)
			}
			for i, s := range w.seen { // without the query's to
				at, rest, _ := strings.Cut(s, "?")
				_, rest, found := strings.Cut(rest, " ")
				if found && i == 0 {
					w.seen[i] = at + " " + rest
				} else if before, _, found := strings.Cut(s, "&to="); found {
					w.seen[i] = before + " " + rest
				}
			}
			if diff := cmp.Diff(test.want, w.seen); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestPackedAnswers refuses what cannot be looked into, once a secret was sent.
func TestPackedAnswers(t *testing.T) {
	w := newWorld(t, func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Encoding", "br")
		fmt.Fprint(out, "x")
	})
	if _, err := w.ask(t, env, `{"url":"https://example.com:TLS/"}`); err != nil {
		t.Error(err)
	}
	_, err := w.ask(t, env, `{"url":"https://example.com:TLS/{{secret.KEY}}"}`)
	if e := wantCode(t, err, abi.Unavailable); !strings.Contains(e.Message, "packed") {
		t.Error(e)
	}
}

// TestPrivate: the grant of one plugin opens private networks and loopback, for
// its hosts, and never what is for one link or hands out credentials.
func TestPrivate(t *testing.T) {
	bird := newCanary(t)
	c := egress.New(egress.Options{Resolver: everywhere("127.0.0.1")})
	call := egress.Call{Hosts: []string{"a.test:" + bird.port}, Private: true, Request: json.RawMessage(`{"url":"http://a.test:` + bird.port + `/"}`)}
	if _, err := c.Do(t.Context(), call); err != nil || bird.accepted.Load() != 1 {
		t.Fatalf("with the grant: %v, %d accepted", err, bird.accepted.Load())
	}
	call.Private = false
	_, err := c.Do(t.Context(), call)
	if e := wantCode(t, err, abi.Denied); !strings.Contains(e.Hint, "--private") {
		t.Error(e)
	}
	call.Private, call.Request = true, json.RawMessage(`{"url":"http://b.test:`+bird.port+`/"}`)
	_, err = c.Do(t.Context(), call)
	wantCode(t, err, abi.Denied)
	if bird.accepted.Load() != 1 {
		t.Errorf("%d accepted", bird.accepted.Load())
	}
	for ip, want := range map[string]bool{
		"10.1.2.3": true, "172.31.0.1": true, "192.168.1.1": true, "100.64.0.1": true, "127.0.0.1": true, "::1": true, "fd12::1": true, "::ffff:10.0.0.1": true,
		"169.254.169.254": false, "100.100.100.200": false, "fd00:ec2::254": false, "fe80::1": false, "168.63.129.16": false, "0.0.0.0": false,
		"224.0.0.1": false, "255.255.255.255": false, "64:ff9b::a00:1": false, "2002:a00:1::": false, "::": false, "192.0.0.192": false, "::ffff:169.254.169.254": false,
	} {
		if got := egress.Inside(netip.MustParseAddr(ip)); got != want {
			t.Errorf("%s: %v, want %v", ip, got, want)
		}
	}
}

// FuzzSecrets holds that a request with a place for a secret is refused, or sends
// it where it was put, to the host that was asked.
func FuzzSecrets(f *testing.F) {
	f.Add("https://a.test/{{secret.KEY}}?b={{secret.KEY}}", value)
	f.Add("https://a.test/%2e{{secret.KEY}}/../x", "x/y/zzzzz")
	f.Add("https://{{secret.KEY}}/", "b.test/xxx")
	f.Fuzz(func(t *testing.T, raw, secret string) {
		b, _ := json.Marshal(map[string]string{"url": raw})
		sent, err := egress.Filled(b, secret)
		if err != nil {
			if abi.As(err) == nil {
				t.Fatalf("an error without a code: %v", err)
			}
			return
		}
		u, err := url.Parse(sent.URL)
		if err != nil || u.Host != sent.Host || u.User != nil || u.Fragment != "" || strings.ContainsAny(sent.URL, " \r\n#") {
			t.Fatalf("url %q for host %q: %v", sent.URL, sent.Host, err)
		}
	})
}
