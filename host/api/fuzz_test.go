package api_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Whatever a request looks like, without a token it reaches no command, and
// with one the ids that a command sees are plain.
func FuzzRequest(f *testing.F) {
	f.Add("GET", "/v1/runs/%2e%2e/trace", "", "", "")
	f.Add("POST", "/v1/commands/code/read", `{"a":1}`, `"1"`, "k")
	f.Add("PUT", "/v1/sentinels/a", `{}`, `W/"1"`, "")
	f.Add("PATCH", "/v1/sentinels/a/steps/1.then.0?x", `{}`, `*`, "\"k\"")
	f.Add("GET", "/v1/runs/r/logs?tail=9&offset=x", "", "", "")
	f.Add("OPTIONS", "/v1//x/../..", "", "", "")
	reg := commands(f, map[string]any{
		"sentinel/status": `{}`, "sentinel/trace": traceText, "sentinel/export": `{"revision":1}`, "sentinel/update": `{}`, "sentinel/step/update": `{}`, "code/read": `{}`,
	})
	a, err := api.New(api.Options{Commands: reg, Tokens: oneToken(goodToken), Hosts: []string{"example.com"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, method, target, body, match, key string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || u.IsAbs() || u.Opaque != "" {
			return
		}
		for _, auth := range []string{"", "Bearer " + goodToken} {
			req := httptest.NewRequest(http.MethodGet, "/", strings.NewReader(body))
			req.Method, req.URL, req.RequestURI = method, u, target
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("If-Match", match)
			req.Header.Set("Idempotency-Key", key)
			if auth != "" {
				req.Header.Set("Authorization", auth)
			}
			before := len(reg.made())
			rec := httptest.NewRecorder()
			a.Handler().ServeHTTP(rec, req)
			calls := reg.made()[before:]
			if auth == "" && len(calls) > 0 {
				t.Fatalf("%s %q called %s without a token", method, target, calls[0].Command)
			}
			if rec.Code == http.StatusInternalServerError || rec.Code < 200 || rec.Code >= 300 && rec.Code < 400 && rec.Code != 304 {
				t.Fatalf("%s %q: %d %s", method, target, rec.Code, rec.Body)
			}
			for _, c := range calls {
				if !sentinels.ID(strings.ReplaceAll(c.Command, "/", "-")).Valid() {
					t.Fatalf("called %q", c.Command)
				}
			}
		}
	})
}

// A window is never more than was asked for, and its next line is behind it.
func FuzzLogWindow(f *testing.F) {
	f.Add([]byte("a\nb\nc"), 0, 2, 0)
	f.Add([]byte("a\nb\nc\n"), 1, 9, 0)
	f.Add([]byte("\n\n\nx"), 0, 1, 2)
	f.Fuzz(func(t *testing.T, text []byte, offset, limit, tail int) {
		if offset < 0 || limit < 1 || limit > 10_000 || tail < 0 || tail > 10_000 {
			return
		}
		lines, next, err := api.Read(api.NewWindow(offset, limit, tail), bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		whole := bytes.SplitAfter(text, []byte("\n"))
		whole = whole[:len(whole)-1]
		want := whole[min(offset, len(whole)):]
		if tail > 0 {
			want = whole[max(0, len(whole)-tail):]
		} else if len(want) > limit {
			want = want[:limit]
		}
		if !bytes.Equal(bytes.Join(lines, nil), bytes.Join(want, nil)) || next > len(whole) {
			t.Fatalf("%q, next %d; want %q", lines, next, want)
		}
	})
}
