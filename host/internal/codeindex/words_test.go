package codeindex

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplit(t *testing.T) {
	var s splitter
	for text, want := range map[string]string{
		"":                      "",
		"a bc def":              "def ",
		"same Same SAME":        "same ",
		"getUserName":           "getusername username name ",
		"HTTPServer":            "httpserver server ",
		"max_block_size":        "max_block_size block_size size ",
		"__init__":              "init__ ",
		"Größe über":            "größe über ",
		"a\xffbcd":              "bcd ",
		"x…yzw":                 "yzw ",
		strings.Repeat("q", 64): strings.Repeat("q", 64) + " ",
		strings.Repeat("q", 65): "",
	} {
		if diff := cmp.Diff(want, string(s.split([]byte(text)))); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
	var many strings.Builder
	for i := range 20_000 { // more than the first table has room for
		fmt.Fprintf(&many, "word%d word%d ", i, i)
	}
	if n := strings.Count(string(s.split([]byte(many.String()))), " "); n != 20_000 {
		t.Errorf("%d different words", n)
	}
}

// FuzzSplit compares the words of any text with those of a second pass over them: a
// word has itself as its only full word.
func FuzzSplit(f *testing.F) {
	f.Add("getUserName max_block HTTPServer\xff Größe")
	f.Fuzz(func(t *testing.T, text string) {
		var s, again splitter
		out := string(s.split([]byte(text)))
		seen := map[string]bool{}
		for _, word := range strings.Fields(out) {
			if len(word) < minWord || len(word) > maxWord || seen[word] {
				t.Fatalf("%q: word %q", text, word)
			}
			seen[word] = true
			if first, _, _ := strings.Cut(string(again.split([]byte(word))), " "); first != word && strings.TrimLeft(word, "_") == word {
				t.Fatalf("%q: word %q has %q", text, word, first)
			}
			if word[0] != '_' && query(word) != `"`+word+`"*` && strings.ToLower(word) == word {
				t.Fatalf("%q: word %q is searched as %q", text, word, query(word))
			}
		}
	})
}

func TestQuery(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "",
		"a bc":                         "",
		"Needle":                       `"needle"*`,
		`a" OR text:"bcd* NOT {efg} (`: `"text"* "bcd"* "not"* "efg"*`,
		"__init__":                     `"init__"*`,
		strings.Repeat("abc ", 10_000): strings.Repeat(`"abc"* `, maxTerms-1) + `"abc"*`,
		strings.Repeat("q", 65):        "",
		"x\x00yzw\xff":                 `"yzw"*`,
	} {
		if got := query(text); got != want {
			t.Errorf("query(%.40q) = %.200s, want %.200s", text, got, want)
		}
	}
}

func TestSnapshot(t *testing.T) {
	s := &snapshot{next: 7, files: []file{{"a/b.go", 1, 2, 3, true}, {"a/bc.go", 0, 1 << 63, 0, false}, {"z", 6, 5, 4, false}, {"z\n…", 1 << 40, 5, 4, true}}}
	b := s.encode()
	got, err := decode(b)
	if diff := cmp.Diff(s, got, cmp.AllowUnexported(snapshot{}, file{})); err != nil || diff != "" {
		t.Errorf("%v: %s", err, diff)
	}
	for i := range b {
		b[i] ^= 0x40
		if _, err := decode(b); err == nil {
			t.Errorf("byte %d is not checked", i)
		}
		b[i] ^= 0x40
		if _, err := decode(b[:i]); err == nil {
			t.Errorf("%d bytes are a snapshot", i)
		}
	}
}

// FuzzDecode decodes any bytes, with a checksum that fits.
func FuzzDecode(f *testing.F) {
	s := &snapshot{next: 7, files: []file{{"a/b.go", 1, 2, 3, true}, {"a/bc.go", 0, 4, 0, false}}}
	f.Add(s.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := decode(b); err == nil {
			if _, err := decode(s.encode()); err != nil {
				t.Fatal(err)
			}
		}
		_, _ = decode(sealed(b))
	})
}
