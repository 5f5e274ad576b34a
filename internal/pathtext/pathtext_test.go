package pathtext_test

import (
	"testing"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/internal/pathtext"
)

func TestEncode(t *testing.T) {
	for name, want := range map[string]string{
		"":                 "",
		"src/käse \\x.txt": "src/käse \\x.txt",
		"\uFFFD":           "\uFFFD", // a name that is UTF-8
		"caf\xe9.txt":      "caf\U0010FFE9.txt",
		"\xff\xfe":         "\U0010FFFF\U0010FFFE",
		"a\xc3":            "a\U0010FFC3",                              // half a character
		"\U0010FFE9":       "\U0010FFF4\U0010FF8F\U0010FFBF\U0010FFA9", // not the text of byte E9
	} {
		if got := pathtext.Encode(name); got != want {
			t.Errorf("Encode(%q) = %q, want %q", name, got, want)
		}
	}
}

func FuzzEncode(f *testing.F) {
	for _, seed := range []string{"", "a/b", "caf\xe9", "\xff\x80\U0010FF80\U0010FFFF", "\xf4\x8f\xbf", "\xed\xa0\x80"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		text := pathtext.Encode(name)
		if !utf8.ValidString(text) {
			t.Errorf("Encode(%q) = %q, which is not UTF-8", name, text)
		}
		if got := pathtext.Decode(text); got != name {
			t.Errorf("Decode(Encode(%q)) = %q", name, got)
		}
	})
}
