package redact_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/redact"
)

const secret = `sk-live/"Zx9+Q&\=8vB!`

func register(t *testing.T, secrets ...string) *redact.Redactor {
	t.Helper()
	var r redact.Redactor
	if err := r.Register(secrets...); err != nil {
		t.Fatal(err)
	}
	return &r
}

func TestEveryFormIsHidden(t *testing.T) {
	r := register(t, secret)
	quoted, _ := json.Marshal(secret)
	twice, _ := json.Marshal(string(quoted))
	texts := map[string]string{
		"exact":         "key " + secret + " end",
		"json":          `{"k":` + string(quoted) + `}`,
		"json twice":    `{"k":` + string(twice) + `}`,
		"query":         "https://x/?k=" + url.QueryEscape(secret),
		"path":          "https://x/" + url.PathEscape(secret),
		"lower escapes": strings.NewReplacer("%2F", "%2f", "%2B", "%2b", "%3D", "%3d", "%5C", "%5c").Replace("?k=" + url.QueryEscape(secret)),
		"hex":           hex.EncodeToString([]byte(secret)),
		"upper hex":     strings.ToUpper(hex.EncodeToString([]byte(secret))),
	}
	for _, before := range []string{"", "a", "ab", "abc", "user:"} {
		for _, after := range []string{"", "z", "zz", "zzz"} {
			texts["base64 "+before+"_"+after] = base64.StdEncoding.EncodeToString([]byte(before + secret + after))
			texts["base64url "+before+"_"+after] = base64.URLEncoding.EncodeToString([]byte(before + secret + after))
		}
	}
	for name, text := range texts {
		got := r.String(text)
		if !strings.Contains(got, redact.Mark) {
			t.Errorf("%s: %q is not redacted", name, got)
		}
	}
}

// TestBase64EndIsHidden checks the last character of an encoded text, which has bits of the secret alone.
func TestBase64EndIsHidden(t *testing.T) {
	var r redact.Redactor
	if err := r.Register("secret-value-1"); err != nil {
		t.Fatal(err)
	}
	for _, before := range []string{"", "a", "ab"} {
		got := r.String(base64.StdEncoding.EncodeToString([]byte(before + "secret-value-1")))
		if rest := strings.TrimRight(got[strings.Index(got, redact.Mark)+len(redact.Mark):], "="); rest != "" {
			t.Errorf("%q is left of the end: %s", rest, got)
		}
	}
}

func TestLeavesOfStructuredSecrets(t *testing.T) {
	tests := []struct{ name, secret, leaf string }{
		{"lines", "-----BEGIN KEY-----\nMIIBVwIBADANBgkq\n-----END KEY-----", "MIIBVwIBADANBgkq"},
		{"json", `{"user":"someone","deep":[{"token":"t0k3n-t0k3n"}]}`, "t0k3n-t0k3n"},
		{"assignment", "A=1\nTOKEN=\"abcdefgh12\"", "abcdefgh12"},
		{"url", "postgres://me:pa55word99@db/x", "pa55word99"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := register(t, tt.secret).String("x " + tt.leaf + " y"); got != "x "+redact.Mark+" y" {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestOverlapLeavesNoTail(t *testing.T) {
	r := register(t, "abcdefghij", "ghijklmnop")
	if got := r.String("<abcdefghijklmnop>"); got != "<"+redact.Mark+">" {
		t.Errorf("got %q", got)
	}
}

func TestShortSecretsAreRefused(t *testing.T) {
	var r redact.Redactor
	if err := r.Register("test", "long-enough-secret"); err == nil {
		t.Error("a secret of four bytes was accepted")
	}
	if got := r.String("test long-enough-secret"); got != "test "+redact.Mark {
		t.Errorf("got %q", got)
	}
}

func TestNothingRegisteredReturnsTheSameBytes(t *testing.T) {
	var r redact.Redactor
	data := []byte("anything")
	if got := r.Redact(data); &got[0] != &data[0] {
		t.Error("a copy was made")
	}
	var none *redact.Redactor
	if got := none.Redact(data); &got[0] != &data[0] {
		t.Error("a nil redactor changed its input")
	}
	if allocs := testing.AllocsPerRun(10, func() { r.Redact(data) }); allocs != 0 {
		t.Errorf("%v allocations with nothing registered", allocs)
	}
}

func TestJSONStaysValid(t *testing.T) {
	r := register(t, `quo"te-and\slash`, "1234567890")
	tests := []struct{ name, in, want string }{
		{"escaped by \\u", `{"a":"quo\u0022te-and\\slash","b":1}`, `{"a":"[redacted]","b":1}`},
		{"number", `{"n":1234567890}`, `{"n":"[redacted]"}`},
		{"inside a number", `[71234567890.5]`, `["[redacted]"]`},
		{"key", `{"1234567890":true}`, `{"[redacted]":true}`},
		{"untouched keeps its spaces", `{ "n" : 12 }`, `{ "n" : 12 }`},
		{"escaped in a later string", `["a\n\\", "\u0031234567890", "b"]`, `["a\n\\","[redacted]","b"]`},
		{"escaped key", `{"\u0031234567890":1}`, `{"[redacted]":1}`},
		{"escapes without a secret", `{ "a\"": "\ud800\u0022", "a\"": "12345678\\90" }`, `{ "a\"": "\ud800\u0022", "a\"": "12345678\\90" }`},
		{"escapes, not UTF-8", "[\"\\n\xff\", 1]", "[\"\\n\xff\", 1]"},
		{"escapes, not json", `"a\n" "1234\u003567890`, `"a\n" "1234\u003567890`},
		{"not json", `x 1234567890`, `x [redacted]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(r.JSON(json.RawMessage(tt.in))); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestConcurrentUse(t *testing.T) {
	var r redact.Redactor
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			_ = r.Register(strings.Repeat(string(rune('a'+i)), 12))
			for range 100 {
				r.Redact([]byte("aaaaaaaaaaaa bbbbbbbbbbbb"))
			}
		})
	}
	wg.Wait()
	if got := r.String("cccccccccccc"); got != redact.Mark {
		t.Errorf("got %q", got)
	}
}

func FuzzJSON(f *testing.F) {
	f.Add(`{"a":"hunter2hunter2"}`)
	f.Add(`"hunter2\u0068unter2"`)
	f.Fuzz(func(t *testing.T, text string) {
		var r redact.Redactor
		if err := r.Register("hunter2hunter2"); err != nil {
			t.Fatal(err)
		}
		out := r.JSON(json.RawMessage(text))
		if json.Valid([]byte(text)) && !json.Valid(out) {
			t.Fatalf("%q became %q, which is not JSON", text, out)
		}
		if strings.Contains(string(out), "hunter2hunter2") {
			t.Fatalf("the secret is in %q", out)
		}
	})
}

// TestFindsAtEachOffset has secrets at each place of a text, also directly behind others, and between
// characters that begin forms. Has finds in many lines what is found in one of them.
func TestFindsAtEachOffset(t *testing.T) {
	secrets := []string{"abcabcabd", "S3cret/of+it", "bcabcabdxyz"}
	r := register(t, secrets...)
	for n := range 12 {
		for _, around := range []string{"-", "a", "ab", "S3c", "61"} {
			before := strings.Repeat(around, n)
			for _, secret := range secrets {
				for _, text := range []string{before + secret, before + secret + "-" + secret + around, before + url.QueryEscape(secret) + around} {
					got := r.String(text)
					if strings.Contains(got, secret) || !strings.Contains(got, redact.Mark) {
						t.Errorf("%q became %q", text, got)
					}
					if lines := "first % line\n" + text + "\nlast 50%"; !r.Has([]byte(text)) || !r.Has([]byte(lines)) {
						t.Errorf("nothing is found in %q", lines)
					}
				}
			}
			if r.Has([]byte(before + "\n 100% " + before)) {
				t.Errorf("a secret is found in %q", before)
			}
		}
	}
	if new(redact.Redactor).Has([]byte("abcabcabd")) {
		t.Error("a redactor without secrets finds one")
	}
}
