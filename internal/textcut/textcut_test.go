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

// TestBlanks: what would push the end of a text out of sight is counted, and all else is as it was.
func TestBlanks(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "a": "a", "a\n\n\n\nb\n": "a\n\n\n\nb\n",
		"a" + strings.Repeat("\n", 3001) + "rm":            "a\n[3000 blank lines]\nrm",
		"a" + strings.Repeat("\n \t\u00a0", 40) + "\nrm":   "a\n[40 blank lines]\nrm",
		"@@\n" + strings.Repeat("+\n", 50) + "+rm\n-\n-\n": "@@\n+[50 blank lines]\n+rm\n-\n-\n",
		"a" + strings.Repeat(" ", 79) + "b":                "a" + strings.Repeat(" ", 79) + "b",
		"a" + strings.Repeat(" \u2003", 50) + "b é":        "a[100 blanks]b é",
		"a" + strings.Repeat("\t", 90):                     "a[90 blanks]",
	} {
		if got := textcut.Blanks(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
