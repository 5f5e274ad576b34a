package files

import (
	"path"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
)

func TestEnters(t *testing.T) {
	for _, c := range []struct {
		pattern string
		yes, no []string
	}{
		{"*.json", []string{"."}, []string{"a", "a/b"}},
		{"a/*.json", []string{".", "a"}, []string{"b", "a/b"}},
		{"**/*.json", []string{".", "a", "a/b/c"}, nil},
		{"a/**/b/*.json", []string{"a", "a/x", "a/x/b", "a/b"}, []string{"b"}},
		{"{src,test}/*/x", []string{"src", "test/a"}, []string{"a", "src/a/b"}},
		{"{src/a,test}/x", []string{"src", "src/a", "test"}, nil},
		{"a/**", []string{"a", "a/b"}, []string{"b"}},
		{".sentinel/sentinels/*.json", []string{".sentinel", ".sentinel/sentinels"}, []string{"src", ".sentinel/x"}},
	} {
		g, err := newGlobs([]string{c.pattern}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range c.yes {
			if !g.enters(dir) {
				t.Errorf("%s does not enter %s", c.pattern, dir)
			}
		}
		for _, dir := range c.no {
			if g.enters(dir) {
				t.Errorf("%s enters %s", c.pattern, dir)
			}
		}
	}
}

func TestPatternsRefused(t *testing.T) {
	for _, p := range []string{"", "/etc/*", "../x", "a/../../x", "a//b", "./a", "[", "{a", `C:\x`, ".git/HEAD", "a/node_modules/x.js", strings.Repeat("a", 600), strings.Repeat("**/a/", 9) + "x", "a\x00b"} {
		if _, err := newGlobs([]string{p}, nil); err == nil {
			t.Errorf("pattern %q was accepted", p)
		}
	}
	if _, err := newGlobs(nil, nil); err == nil {
		t.Error("an empty list of patterns was accepted")
	}
}

// FuzzGlobs compares globs with the library: both match the same files, and the
// folders of a matching file are entered.
func FuzzGlobs(f *testing.F) {
	f.Add("a/**/b/*.json", "a/x/b/c.json")
	f.Add("{src/a,test}/x", "src/a/x")
	f.Add("[a-z]/?", "a/b")
	f.Fuzz(func(t *testing.T, pattern, file string) {
		g, err := newGlobs([]string{pattern}, nil)
		if err != nil || file == "" || path.Clean(file) != file || path.IsAbs(file) || len(file) > 200 {
			return
		}
		matched := doublestar.MatchUnvalidated(pattern, file)
		if got := g.matches(file); got != matched {
			t.Fatalf("matches(%q) of %q = %v, the library returns %v", file, pattern, got, matched)
		}
		if !matched {
			return
		}
		for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
			if !g.enters(dir) {
				t.Fatalf("%q matches %q, but folder %q is not entered", pattern, file, dir)
			}
		}
	})
}
