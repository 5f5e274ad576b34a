package code

import (
	"strings"
	"testing"
)

// FuzzApply checks that an edit either replaces exactly the old text or fails.
func FuzzApply(f *testing.F) {
	f.Add("a\nb\n", "a", "b", false)
	f.Add("a\r\nb\r\n", "a\nb", "x\ny", true)
	f.Add("aaaa", "aa", "a", true)
	f.Add("", "x", "", false)
	f.Add("\xff\xfe", "\xff", "é", false)
	f.Fuzz(func(t *testing.T, text, old, new string, all bool) {
		edits, err := editIn{Old: old, New: new, ReplaceAll: all}.replacements()
		if err != nil {
			return
		}
		got, changes, err := apply(text, edits)
		if err != nil {
			if len(changes) > 0 {
				t.Fatal("an error with changes")
			}
			return
		}
		if len(changes) == 0 || !all && len(changes) != 1 {
			t.Fatalf("%d changes", len(changes))
		}
		if !strings.Contains(text, "\r\n") && got != strings.ReplaceAll(text, old, new) {
			t.Fatalf("%q became %q", text, got)
		}
	})
}
