package redact_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/redact"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
)

// TestCutTexts: wherever a text was cut with a mark before its secrets were removed, at most three
// bytes of a secret are left before the mark.
func TestCutTexts(t *testing.T) {
	const secret = "hunter2.of.the...database"
	var r redact.Redactor
	if err := r.Register(secret); err != nil {
		t.Fatal(err)
	}
	text := "password: " + secret + " and more text behind it"
	for n := 10; n < len(text); n++ {
		for _, cut := range []string{textcut.Mark(text, n), text[:n] + "… [9 bytes cut]"} {
			quoted, _ := json.Marshal(map[string]string{"a": cut})
			var of struct{ A string }
			if err := json.Unmarshal(r.JSON(quoted), &of); err != nil {
				t.Fatal(err)
			}
			for _, got := range []string{r.String(cut), string(r.Redact([]byte(cut))), of.A} {
				if strings.Contains(got, secret[:4]) {
					t.Errorf("of %q is left %q", cut, got)
				}
			}
		}
	}
	if text := "the hunter... and hunt… and hun..."; r.String(text) != "the "+redact.Mark+"... and "+redact.Mark+"… and hun..." {
		t.Errorf("%q", r.String(text))
	}
	if text := "hunter, hunt"; r.String(text) != text {
		t.Errorf("%q", r.String(text))
	}
}
