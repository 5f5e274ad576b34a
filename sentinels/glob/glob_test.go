package glob_test

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/sentinel-runtime/sentinel/sentinels/glob"
)

func TestMatch(t *testing.T) {
	tests := []struct {
		pattern, name string
		want          bool
	}{
		{"a/*.go", "a/b.go", true}, {"a/*.go", "a/b/c.go", false}, {"**/*.go", "c.go", true}, {"**/*.go", "a/b/c.go", true},
		{"a/**", "a", true}, {"a/**", "a/b/c", true}, {"a/**/c", "a/c", true}, {"a/**/c/**/e", "a/b/c/d/c/e", true}, {"a/**/c/**/e", "a/b/d/e", false},
		{"**/a/*/b", "a/x/a/y/b", true}, {"[ab]/c?", "b/cd", true}, {"a", "b", false},
		{"*", "a", true}, {"*", ".a", true}, {"*", "a/b", false}, {"?", "é", true}, {"a**", "abc", true}, {"a**", "ab/c", false}, {"a***", "a", true}, {"**a", "ba", true}, {"***", "a/b", false}, {"**", "a/b", true}, {"**/**/a", "a", true},
		{"[!a]b", "ab", false}, {"[^a]b", "cb", true}, {"a[^b]c", "a/c", false}, {"a[+-9]c", "a/c", false}, {`\*`, "*", true}, {`\*`, "a", false}, {`[\]]`, "]", true}, {"[a-c]", "b", true},
		{"*.{ts,tsx}", "a.tsx", true}, {"*.{ts,tsx}", "a.js", false}, {"{src/a,test}/x", "src/a/x", true}, {"{src/a,test}/x", "test/x", true}, {"{src/a,test}/x", "src/x", false},
		{"{a,{b,c}d}", "cd", true}, {"a{,b}", "a", true}, {"a/{b,}/c", "a/c", true}, {"{,a}/b", "b", true}, {`\{a,b\}`, "{a,b}", true}, {`\{*\}`, "{x}", true}, {"a,b", "a,b", true},
		{"a}", "a}", true}, {"*}", "a}", true}, {"[{]", "{", true}, {"{a}", "a", true},
	}
	for _, tt := range tests {
		p, err := glob.Parse(tt.pattern)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := p.Match(tt.name); got != tt.want {
			t.Errorf("%q matches %q: %t", tt.pattern, tt.name, got)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, pattern := range []string{
		"", "/", "/a", ".", "..", "../a", "a/../../b", "{a,../b}", "././a", "a//b", "a/", "[", "a[]b", "[a/b]", "{a", `a\`, "a\x00b", "{,}",
		strings.Repeat("a", 1025), strings.Repeat("a/", 63) + "a", strings.Repeat("**/a/", 9) + "x", strings.Repeat("{a,b}", 20), strings.Repeat("{,}", 300),
	} {
		if p, err := glob.Parse(pattern); err == nil {
			t.Errorf("%.40q was accepted: %v", pattern, p)
		}
	}
}

// TestPlaces compares what a pattern means where it is a path, where it selects files, and in a search below a folder.
func TestPlaces(t *testing.T) {
	tree := []string{"a.md", "in", "in/b.md", "in/d/c.md", "x/in/e.md"}
	for _, c := range []struct{ pattern, path, files, search string }{
		{"*.md", "a.md", "a.md", "a.md in/b.md in/d/c.md x/in/e.md"},
		{"./*.md", "a.md", "a.md", "a.md"},
		{"in", "in", "in in/b.md in/d/c.md", "in in/b.md in/d/c.md x/in/e.md"},
		{"./in", "in", "in in/b.md in/d/c.md", "in in/b.md in/d/c.md"},
		{"{in,x/in}", "in", "in in/b.md in/d/c.md x/in/e.md", "in in/b.md in/d/c.md x/in/e.md"},
		{"i?", "in", "in", "in"},
		{"in/*", "in/b.md", "in/b.md", "in/b.md"},
		{"in/**", "in in/b.md in/d/c.md", "in in/b.md in/d/c.md", "in in/b.md in/d/c.md"},
	} {
		for _, place := range []struct {
			parse func(text string) (glob.Pattern, error)
			want  string
		}{{glob.Parse, c.path}, {glob.ParseFiles, c.files}, {glob.ParseSearch, c.search}} {
			p, err := place.parse(c.pattern)
			if err != nil {
				t.Fatal(err)
			}
			got := slices.DeleteFunc(slices.Clone(tree), func(name string) bool { return !p.Match(name) })
			if strings.Join(got, " ") != place.want {
				t.Errorf("%q matches %q, want %q", c.pattern, got, place.want)
			}
		}
	}
}

func TestFolders(t *testing.T) {
	for _, tt := range []struct {
		pattern                         string
		reaches, misses, names, unnamed []string
	}{
		{"*.json", []string{"."}, []string{"a", "a/b"}, nil, []string{"a"}},
		{"a/*.json", []string{".", "a"}, []string{"b", "a/b"}, []string{"a"}, []string{"a/b", "b"}},
		{"**/*.json", []string{".", "a", "a/b/c"}, nil, nil, []string{"a"}},
		{"a/**/b/*.json", []string{"a", "a/x", "a/x/b", "a/b"}, []string{"b"}, []string{"a"}, []string{"a/b"}},
		{"{src/a,test}/x", []string{"src", "src/a", "test"}, []string{"src/b", "x"}, []string{"src", "src/a", "test"}, []string{"src/a/x"}},
		{"a/b", []string{"a"}, []string{"a/b"}, []string{"a"}, []string{"a/b"}},
	} {
		p, err := glob.Parse(tt.pattern)
		if err != nil {
			t.Fatal(err)
		}
		check := func(method string, f func(string) bool, dirs []string, want bool) {
			for _, dir := range dirs {
				if f(dir) != want {
					t.Errorf("%s of %q, %q: got %t", method, tt.pattern, dir, !want)
				}
			}
		}
		check("Reaches", p.Reaches, tt.reaches, true)
		check("Reaches", p.Reaches, tt.misses, false)
		check("Names", p.Names, tt.names, true)
		check("Names", p.Names, tt.unnamed, false)
	}
}

func TestHasSegment(t *testing.T) {
	p, err := glob.Parse("a/{.git,b*}/c")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"a": true, ".git": true, "c": true, "b*": false, "b": false, "git": false} {
		if got := p.HasSegment(name); got != want {
			t.Errorf("%q: got %t", name, got)
		}
	}
}

// TestWork bounds the segments that the longest pattern compares with the longest
// path, which the time of a match is proportional to.
func TestWork(t *testing.T) {
	for _, pattern := range hostile {
		p, err := glob.Parse(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got, limit := p.Work(longest), 20_000; got > limit {
			t.Errorf("%.40q: %d comparisons, want at most %d", pattern, got, limit)
		}
	}
}

// hostile are patterns that are slow in other matchers; none matches longest.
var hostile = []string{
	"**/*" + strings.Repeat("a", 127) + "b",
	"**/{" + strings.Repeat("*"+strings.Repeat("a", 120)+"b,", 7) + "b}{,b,c,d,e,f,g}",
	strings.Repeat("**/*a*a*a*a/", 8) + "b",
	"**/*" + strings.Repeat("{a,a,a,a}*", 4) + strings.Repeat("?", 20) + "x",
	"**/{" + strings.Repeat("*a*a*a*a*b,", 80) + "b}",
	strings.Repeat("**/", 7) + strings.Repeat("a*/", 50) + "b",
}

var longest = strings.Repeat(strings.Repeat("a", 255)+"/", 15) + strings.Repeat("a", 255)

func BenchmarkHostile(b *testing.B) {
	for _, pattern := range hostile {
		b.Run(pattern[:min(len(pattern), 16)], func(b *testing.B) {
			p, err := glob.Parse(pattern)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if p.Match(longest) {
					b.Fatal("it matches")
				}
			}
		})
	}
}

func BenchmarkMatch(b *testing.B) {
	for _, pattern := range []string{"src/*.go", "**/*.go", "src/**/*.{ts,tsx}", "**/test_*.go"} {
		b.Run(pattern, func(b *testing.B) {
			p, err := glob.Parse(pattern)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				for _, name := range []string{"src/a.go", "src/deep/er/folder/file.tsx", "vendor/x/y/z/test_1.go", "README.md"} {
					p.Match(name)
				}
			}
		})
	}
}

// model matches a pattern without classes and escapes by regular expressions, one
// for each combination of the alternatives.
func model(pattern, name string) bool {
	if group := innermost.FindStringSubmatchIndex(pattern); group != nil {
		for option := range strings.SplitSeq(pattern[group[2]:group[3]], ",") {
			if model(pattern[:group[0]]+option+pattern[group[1]:], name) {
				return true
			}
		}
		return false
	}
	b, segments := strings.Builder{}, 0
	for segment := range strings.SplitSeq(pattern, "/") {
		switch segment {
		case "", ".":
			continue
		case "**":
			b.WriteString(`(?:/[^/]+)*`)
		default:
			b.WriteString("/" + strings.NewReplacer(`\*`, `[^/]*`, `\?`, `[^/]`).Replace(regexp.QuoteMeta(segment)))
		}
		segments++
	}
	return segments > 0 && regexp.MustCompile(`(?s)^`+b.String()+`$`).MatchString("/"+name)
}

var innermost = regexp.MustCompile(`\{([^{}]*)\}`)

var badStars = regexp.MustCompile(`\*/\*\*|\*\*\*`)

// FuzzMatch compares Match with the library and with a model where they apply, and
// the other methods with Match.
func FuzzMatch(f *testing.F) {
	for _, seed := range []string{"*.go", "**/x", "a/**", "[a-z]", "[!a]", "{a,b}", `\*`, "[", "]", "{", "a{b", "[]", "[^]", "[z-a]", "**", "/"} {
		f.Add(seed, "a/x")
	}
	f.Add("a/**/b/*.json", "a/x/b/c.json")
	f.Add("{src/a,test}/x", "src/a/x")
	f.Add("[a-z]/?", "a/b")
	f.Add("a/**/b", "a/x/b")
	f.Add("**/{a,b}*/c", "a/bx/c")
	plain := regexp.MustCompile(`^[a-z0-9_-]+(/[a-z0-9_-]+)*$`)
	f.Fuzz(func(t *testing.T, pattern, name string) {
		p, err := glob.Parse(pattern)
		if err != nil || path.Clean("/"+name) != "/"+name || name == "" || len(name) > 200 || !utf8.ValidString(pattern) || !utf8.ValidString(name) {
			return
		}
		matches := p.Match(name)
		// The library lets classes match a slash, and stars followed by "/**" or two
		// stars not match the empty text.
		if !strings.Contains(pattern, "{") && !badStars.MatchString(pattern) && !(strings.Contains(pattern, "[") && strings.Contains(name, "/")) {
			if want := doublestar.MatchUnvalidated(pattern, name); matches != want {
				t.Fatalf("%q matches %q: %t, the library returns %t", pattern, name, matches, want)
			}
		}
		if !strings.ContainsAny(pattern, `[\`) && strings.Count(pattern, ",") < 10 {
			if want := model(pattern, name); matches != want {
				t.Fatalf("%q matches %q: %t, the model returns %t", pattern, name, matches, want)
			}
		}
		if text, ok := p.Literal(); ok && !p.Match(text) || plain.MatchString(pattern) && !p.Match(pattern) {
			t.Fatalf("%q does not match itself", pattern)
		}
		if !matches {
			return
		}
		if !p.Covers(name) || !p.Covers(name+"/below") {
			t.Fatalf("%q matches %q but does not cover it", pattern, name)
		}
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if !p.Reaches(dir) {
				t.Fatalf("%q matches %q, but does not reach folder %q", pattern, name, dir)
			}
		}
	})
}
