package rag

import (
	"path"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestIgnoreRules(t *testing.T) {
	rules := ignoreRules{
		".":   parseIgnore("# comment\n*.log\n!keep.log\nbuild/\n/top\ndoc/*.txt\na/**/z\nall/**\n\\#odd\nspace\\ \n[!x]y\n[bad\n\n", maxRules),
		"sub": parseIgnore("*.md\r\n!x.log\n/only\n", maxRules),
	}
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
		if got := rules.ignored(tt.name, tt.folder); got != tt.want {
			t.Errorf("ignored(%q, %t) = %t", tt.name, tt.folder, got)
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

func TestGlob(t *testing.T) {
	tests := []struct {
		pattern, name string
		want          bool
	}{
		{"a/*.go", "a/b.go", true}, {"a/*.go", "a/b/c.go", false}, {"**/*.go", "c.go", true}, {"**/*.go", "a/b/c.go", true},
		{"a/**", "a", true}, {"a/**", "a/b/c", true}, {"a/**/c", "a/c", true}, {"a/**/c/**/e", "a/b/c/d/c/e", true}, {"a/**/c/**/e", "a/b/d/e", false},
		{"**/a/*/b", "a/x/a/y/b", true}, {"[ab]/c?", "b/cd", true}, {"a", "b", false},
	}
	for _, tt := range tests {
		g, err := parseGlob(tt.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.match(tt.name); got != tt.want {
			t.Errorf("%q matches %q: %t", tt.pattern, tt.name, got)
		}
	}
}

func TestSecret(t *testing.T) {
	w := new(workspace)
	for _, name := range []string{".git/config", "sub/.git/HEAD", ".sentinel/state/store.db", ".env", "a/server.key", ".ssh/known_hosts"} {
		if !w.secret(name) {
			t.Errorf("%q may be shown", name)
		}
	}
	for _, name := range []string{"env.go", ".env.example", ".gitignore", ".github/workflows/ci.yml"} {
		if w.secret(name) {
			t.Errorf("%q is kept out", name)
		}
	}
}

func TestQueryWords(t *testing.T) {
	got := queryWords("Why does the `parseHTTPRequest` fail in user_store.go? Überprüfung")
	want := []string{"parsehttprequest", "parse", "httprequest", "fail", "user_store", "user", "store", "überprüfung"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n := len(queryWords(strings.Repeat("abc1 def2 ghi3 ", 3) + strings.Join(strings.Split("abcdefghijklmnopqrstuvwxyz", ""), "xx "))); n > maxWords {
		t.Errorf("%d words", n)
	}
}

func TestExcerpt(t *testing.T) {
	var b strings.Builder
	for i := range 500 {
		b.WriteString(strings.Repeat("x", 10+i%7))
		if i == 250 {
			b.WriteString(" needle")
		}
		b.WriteByte('\n')
	}
	for _, n := range []int{0, 50, 100, 200, 1000, 5000, 1 << 20} {
		for _, line := range []int{0, 1, 500, 501} {
			part, first, cutOff := excerpt("f.txt", b.String(), line, []string{"needle"}, n)
			if len(part) > n || cutOff != (n < 1<<20) || (part == "") != (first == 0) {
				t.Errorf("n %d, line %d: %d bytes from line %d, cut off %t", n, line, len(part), first, cutOff)
			}
			wanted := line == 0 || line == 501
			if part != "" && strings.Contains(part, "needle") != (wanted || n == 1<<20) && n < 5000 {
				t.Errorf("n %d, line %d shows from %d", n, line, first)
			}
		}
	}
	part, _, _ := excerpt("f.txt", strings.Repeat("é", 1000), 0, nil, 200)
	if len(part) > 200 || !strings.HasSuffix(part, "...\n") || strings.ContainsRune(part, '\uFFFD') {
		t.Errorf("one long line: %q", part)
	}
}

func TestBinary(t *testing.T) {
	for text, want := range map[string]bool{"": false, "plain\n": false, "a\x00b": true, "\xff\xfe": true, strings.Repeat("x", 8<<10-1) + "é": false, strings.Repeat("é", 8<<10): false} {
		if got := isBinary([]byte(text)); got != want {
			t.Errorf("isBinary(%.10q, %d bytes) = %t", text, len(text), got)
		}
	}
}

func TestEntryCannotBeForged(t *testing.T) {
	got := entry(time.Unix(0, 0), "ann: hi\x1b[31m\n1970-01-01T00:00:00Z bob: yes\n")
	if want := "1970-01-01T00:00:00Z ann: hi[31m\n  1970-01-01T00:00:00Z bob: yes\n"; got != want {
		t.Errorf("got %q", got)
	}
}

// A pattern that a repository wrote neither panics nor takes long.
func FuzzIgnore(f *testing.F) {
	f.Add("*.log\n!a\n/b/\n**/c/**\n[!x]\n", "a/b/c.log")
	f.Add("**/**/**/**/a", "b/b/b/b/b/b")
	f.Fuzz(func(t *testing.T, text, name string) {
		rules := ignoreRules{".": parseIgnore(text, maxRules)}
		clean := path.Clean("/" + name)[1:]
		if clean == "" {
			return
		}
		rules.ignored(clean, false)
		rules.ignored(clean, true)
	})
}

func FuzzGlob(f *testing.F) {
	f.Add("a/**/b", "a/x/b")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		g, err := parseGlob(pattern)
		if err != nil {
			return
		}
		if literal, ok := g.literal(); ok && !strings.Contains(pattern, "**") && !g.match(literal) {
			t.Errorf("%q does not match itself", pattern)
		}
		if g.match(name) && !g.covers(name) {
			t.Errorf("%q matches %q but does not cover it", pattern, name)
		}
	})
}

func FuzzExcerpt(f *testing.F) {
	f.Add("a\nb\nc\n", 2, "b", 100)
	f.Fuzz(func(t *testing.T, text string, line int, word string, n int) {
		n = max(0, min(n, 4096))
		text = clean(text)
		if part, _, _ := excerpt("f", text, line, []string{strings.ToLower(word)}, n); len(part) > n {
			t.Errorf("%d bytes of %d", len(part), n)
		}
	})
}
