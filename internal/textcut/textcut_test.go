package textcut_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
)

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		text      string
		n         int
		cut, mark string
	}{
		{"", 0, "", ""},
		{"abcdef", 6, "abcdef", "abcdef"},
		{"abcdef", 5, "abcde", "ab..."},
		{"abäöü", 5, "abä", "ab..."},
		{"aäöüß", 6, "aäö", "aä..."},
		{"abcdef", 2, "ab", "..."},
		{"abc", -1, "", "..."},
		{"\x80\x80\x80\x80\x80", 2, "", "..."},
	} {
		if got := textcut.Cut(tt.text, tt.n); got != tt.cut {
			t.Errorf("Cut(%q, %d) = %q, want %q", tt.text, tt.n, got, tt.cut)
		}
		if got := textcut.Mark(tt.text, tt.n); got != tt.mark {
			t.Errorf("Mark(%q, %d) = %q, want %q", tt.text, tt.n, got, tt.mark)
		}
	}
}

func FuzzCut(f *testing.F) {
	f.Add("aä€😀", 3)
	f.Fuzz(func(t *testing.T, s string, n int) {
		cut, marked := textcut.Cut(s, n), textcut.Mark(s, n)
		if !strings.HasPrefix(s, cut) || len(cut) > max(n, 0) || len(marked) > max(n, 3) {
			t.Errorf("%q to %d: %q, %q", s, n, cut, marked)
		}
		if utf8.ValidString(s) && (!utf8.ValidString(cut) || !utf8.ValidString(marked)) {
			t.Errorf("%q to %d: a character is cut: %q, %q", s, n, cut, marked)
		}
	})
}
