package redact_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/llm/redact"
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
		if more && strings.HasSuffix(string(got), "abcdef") {
			t.Fatalf("%q: %q has the beginning of a secret at its end", text, got)
		}
	})
}
