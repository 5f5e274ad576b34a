package filewalk

import (
	"path"
	"testing"
)

func TestIgnoreRules(t *testing.T) {
	outer := &scope{dir: ".", rules: parseIgnore("# comment\n*.log\n!keep.log\nbuild/\n/top\ndoc/*.txt\na/**/z\nall/**\n\\#odd\nspace\\ \n[!x]y\n[bad\n\n", maxRules)}
	inner := &scope{dir: "sub", rules: parseIgnore("*.md\r\n!x.log\n/only\n", maxRules), outer: outer}
	tests := []struct {
		name   string
		folder bool
		want   bool
	}{
		{"x.log", false, true}, {"d/x.log", false, true}, {"keep.log", false, false}, {"d/keep.log", false, false},
		{"build", true, true}, {"build", false, false}, {"d/build", true, true},
		{"top", false, true}, {"d/top", false, false},
		{"doc/a.txt", false, true}, {"doc/b/a.txt", false, false}, {"x/doc/a.txt", false, false},
		{"a/z", false, true}, {"a/b/c/z", false, true}, {"b/a/z", false, false},
		{"all", true, false}, {"all/x", false, true}, {"all/x/y", false, true},
		{"#odd", false, true}, {"space ", false, true}, {"ay", false, true}, {"xy", false, false},
		{"sub/r.md", false, true}, {"r.md", false, false}, {"sub/x.log", false, false}, {"sub/y.log", false, true},
		{"sub/only", false, true}, {"sub/d/only", false, false},
	}
	for _, tt := range tests {
		rules := outer
		if path.Dir(tt.name) == "sub" || path.Dir(tt.name) == "sub/d" {
			rules = inner
		}
		if got := rules.ignores(tt.name, path.Base(tt.name), tt.folder); got != tt.want {
			t.Errorf("ignores(%q, %t) = %t", tt.name, tt.folder, got)
		}
	}
}

func TestIgnoreLimit(t *testing.T) {
	if got := len(parseIgnore("a\nb\nc\n", 2)); got != 2 {
		t.Errorf("%d rules", got)
	}
	if got := len(parseIgnore("a\n", 0)); got != 0 {
		t.Errorf("%d rules", got)
	}
}

// FuzzIgnore checks that a file of rules that a repository contains never causes a
// panic.
func FuzzIgnore(f *testing.F) {
	f.Add("*.log\n!a\n/b/\n**/c/**\n[!x]\n", "a/b/c.log")
	f.Add("**/**/**/**/a", "b/b/b/b/b/b")
	for _, seed := range []string{"*.go", "**/x", "a/**", "[a-z]", "[!a]", "{a,b}", `\*`, "[", "]", "{", "a{b", "[]", "[^]", "[z-a]", "**", "/", "a**/b", "[[:alpha:]-z]", `a\`} {
		f.Add(seed, "a/b")
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		rules := &scope{dir: ".", rules: parseIgnore(text, maxRules)}
		clean := path.Clean("/" + name)[1:]
		if clean == "" {
			return
		}
		rules.ignores(clean, path.Base(clean), false)
		rules.ignores(clean, path.Base(clean), true)
	})
}
