package files

import (
	"strings"
	"testing"
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
	for _, p := range []string{"", "/etc/*", "../x", "a/../../x", "a//b", "a/", "[", "{a", `C:\x`, ".git/HEAD", "a/node_modules/x.js", strings.Repeat("a", 600), strings.Repeat("**/a/", 9) + "x", "a\x00b"} {
		if _, err := newGlobs([]string{p}, nil); err == nil {
			t.Errorf("pattern %q was accepted", p)
		}
	}
	if _, err := newGlobs(nil, nil); err == nil {
		t.Error("an empty list of patterns was accepted")
	}
}
