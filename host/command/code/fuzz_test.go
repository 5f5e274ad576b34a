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
		plain := strings.NewReplacer("\r\n", "\n").Replace
		if strings.Contains(plain(text+"|"+old+"|"+new+"|"), "\r") {
			return // a CR of its own may become one of a line end
		}
		if plain(got) != strings.ReplaceAll(plain(text), plain(old), plain(new)) {
			t.Fatalf("%q became %q", text, got)
		}
		crlf, lf := strings.Contains(text, "\r\n"), strings.Contains(plain(strings.ReplaceAll(text, "\r\n", "")), "\n")
		if crlf != lf && (strings.Contains(got, "\r\n") && !crlf || strings.Contains(strings.ReplaceAll(got, "\r\n", ""), "\n") && !lf) {
			t.Fatalf("%q with one kind of line end became %q", text, got)
		}
	})
}
