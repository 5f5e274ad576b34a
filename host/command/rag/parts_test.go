package rag

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSecret(t *testing.T) {
	w := new(workspace)
	for _, name := range []string{".git/config", "sub/.git/HEAD", ".sentinel/state/store.db", ".env", "a/server.key", ".ssh/known_hosts"} {
		if !w.secret(name) {
			t.Errorf("%q is not secret", name)
		}
	}
	for _, name := range []string{"env.go", ".env.example", ".gitignore", ".github/workflows/ci.yml"} {
		if w.secret(name) {
			t.Errorf("%q is secret", name)
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
			part, first, truncated := excerpt("f.txt", b.String(), line, []string{"needle"}, n)
			if len(part) > n || truncated != (n < 1<<20) || (part == "") != (first == 0) {
				t.Errorf("n %d, line %d: %d bytes from line %d, cut off %t", n, line, len(part), first, truncated)
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

// TestGlobsAreBounded: each file is compared with every pattern.
func TestGlobsAreBounded(t *testing.T) {
	for n, ok := range map[int]bool{100: true, 101: false} {
		if _, err := parseGlobs(slices.Repeat([]string{"*.go"}, n)); (err == nil) != ok {
			t.Errorf("%d patterns: %v", n, err)
		}
	}
}
