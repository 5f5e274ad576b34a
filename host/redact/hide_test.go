package redact_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/redact"
)

func TestHide(t *testing.T) {
	r := register(t, "abcdefgh-secret", "secret-tail-1", `with "quotes" & <more>`)
	for in, want := range map[string]string{
		"x abcdefgh-secret y":                         "x *** y",
		`{"a":"\u0061bcdefgh-secret"}`:                `{"a":"***"}`,
		"<p>with &#34;quotes&#34; &amp; &lt;more&gt;": "<p>***",
		"abcdefg": "abcdefg",
		"":        "",
	} {
		if got := string(r.Hide([]byte(in), "***", false)); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := new(redact.Redactor).Hide([]byte("abc"), "***", true); string(got) != "abc" {
		t.Errorf("nothing registered: %q", got)
	}
}

// TestHideAtACut cuts a text with two overlapping secrets at every place: no
// byte of either is left.
func TestHideAtACut(t *testing.T) {
	r := register(t, "abcdefgh-secret", "secret-tail-1")
	text := "0123 abcdefgh-secret-tail-1"
	for n := 6; n <= len(text); n++ {
		got := string(r.Hide([]byte(text[:n]), "***", true))
		if got != "0123 ***" {
			t.Errorf("%q: %q", text[:n], got)
		}
	}
	if got := string(r.Hide([]byte("0123 "), "***", true)); got != "0123 " {
		t.Errorf("no secret begun: %q", got)
	}
}

// allEscaped percent-encodes every byte.
func allEscaped(text, digits string) string {
	var b strings.Builder
	for i := range len(text) {
		fmt.Fprintf(&b, digits, text[i])
	}
	return b.String()
}

// TestHidePercentEncoded encodes a secret as clients do that choose other
// characters than net/url, more than once, and in the middle of other text.
func TestHidePercentEncoded(t *testing.T) {
	const secret = "p/q?r=s t~(1)!ü"
	r := register(t, secret)
	component := strings.NewReplacer("%28", "(", "%29", ")", "%21", "!", "+", "%20").Replace(url.QueryEscape(secret)) // as JavaScript does
	for name, encoded := range map[string]string{
		"every byte":            allEscaped(secret, "%%%02X"),
		"every byte, lower":     allEscaped(secret, "%%%02x"),
		"every second byte":     "p%2Fq%3fr%3ds%20t%7e%281%29!%C3%BC",
		"encodeURIComponent":    component,
		"twice":                 url.QueryEscape(component),
		"every byte, twice":     allEscaped(allEscaped(secret, "%%%02X"), "%%%02X"),
		"form":                  "p%2Fq%3Fr%3Ds+t~(1)!%C3%BC",
		"with percents around":  "100%" + component + "%",
		"inside another escape": "%20" + component + "%20",
	} {
		got := string(r.Hide([]byte("<"+encoded+">"), "***", false))
		if !strings.Contains(got, "***") || strings.Contains(got, "q") || strings.Contains(got, "%71") {
			t.Errorf("%s: %s became %s", name, encoded, got)
		}
		if strings.HasPrefix(name, "with") || strings.HasPrefix(name, "inside") {
			continue
		}
		// Cut anywhere, nothing of it is left but the first percent signs.
		for n := len("<%70"); n < len(encoded); n++ {
			got := string(r.Hide([]byte(("<" + encoded)[:n]), "***", true))
			if rest := strings.TrimSuffix(strings.TrimPrefix(got, "<"), "***"); rest != "" && !strings.HasPrefix("%25%3", rest) {
				t.Errorf("%s cut at %d: %s", name, n, got)
			}
		}
	}
	for _, plain := range []string{"100%", "%", "%4", "%zz 50%25 off", "a%20b"} {
		if got := string(r.Hide([]byte(plain), "***", false)); got != plain {
			t.Errorf("%q became %q", plain, got)
		}
	}
}

// TestHideHeaderName finds a secret in the case that HTTP gives header names.
func TestHideHeaderName(t *testing.T) {
	r := register(t, "S3cret-tOKEN-Value")
	name := strings.ToLower(http.CanonicalHeaderKey("x-S3cret-tOKEN-Value"))
	if got := string(r.Hide([]byte(name), "***", false)); got != "x-***" {
		t.Errorf("%q became %q", name, got)
	}
}

// FuzzHide holds that no secret is left, wherever the text is cut, and that JSON
// stays JSON.
func FuzzHide(f *testing.F) {
	f.Add("x abcdefgh-secret", true)
	f.Add(`{"abcdefgh-secret":[1,"abcdefgh-\u0073ecret"]}`, false)
	f.Fuzz(func(t *testing.T, text string, more bool) {
		r := register(t, "abcdefgh-secret")
		got := r.Hide([]byte(text), "***", more)
		if strings.Contains(string(got), "abcdefgh-secret") {
			t.Fatalf("%q: %q", text, got)
		}
		if !more && json.Valid([]byte(text)) && !json.Valid(got) {
			t.Fatalf("%q became %q", text, got)
		}
		if got := r.Hide([]byte(allEscaped(text, "%%%02x")), "***", false); strings.Contains(text, "abcdefgh-secret") && !strings.Contains(string(got), "***") {
			t.Fatalf("%q, percent-encoded: %q", text, got)
		}
		if more && strings.HasSuffix(string(got), "abcdef") {
			t.Fatalf("%q: %q has the beginning of a secret at its end", text, got)
		}
	})
}

// TestBegin gives a text with a secret in two parts, cut at every place. What is made of the
// first part and of its rest with the second has no secret, and nothing else is lost.
func TestBegin(t *testing.T) {
	const secret = "abcabcabd/efgh"
	for _, form := range []string{secret, "YWJjYWJjYWJkL2VmZ2g=", "abcabcabd%2Fefgh", secret + secret} {
		r := register(t, secret)
		text := "before " + form + " behind"
		want := r.String(text)
		for cut := range text {
			clean, rest := r.Begin(text[:cut])
			if got := clean + r.String(rest+text[cut:]); got != want {
				t.Errorf("%q: %q and %q make %q, want %q", text[:cut], clean, rest, got, want)
			}
		}
	}
	var none redact.Redactor
	if clean, rest := none.Begin("all of it"); clean != "all of it" || rest != "" {
		t.Errorf("without secrets: %q, %q", clean, rest)
	}
}
