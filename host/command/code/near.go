package code

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/internal/filewalk"
)

// nearText says where the text that was to be replaced might have been: the
// same lines with other white space, or else the lines most like its first.
func nearText(text, old string) string {
	lines, want := strings.Split(text, "\n"), significant(strings.Split(old, "\n"))
	if len(want) == 0 {
		return "the old text is only white space"
	}
	for i := range lines {
		if n := matchesLoosely(lines[i:], want); n > 0 {
			return fmt.Sprintf("with other white space it is at line %d:\n%s", i+1, excerpt(lines, i, n))
		}
	}
	best, at := 0.0, -1
	for i, line := range lines {
		if s := likeness(strings.TrimSpace(line), want[0]); s > best {
			best, at = s, i
		}
	}
	if best < 0.5 {
		return "nothing in the file is like it: read the file again"
	}
	return fmt.Sprintf("the most similar text is at line %d:\n%s", at+1, excerpt(lines, at, len(want)))
}

// significant returns the trimmed lines that are not blank.
func significant(lines []string) []string {
	var out []string
	for _, l := range lines {
		if l = strings.TrimSpace(l); l != "" {
			out = append(out, l)
		}
	}
	return out
}

// matchesLoosely returns how many of lines equal want, blanks and white space
// at their ends aside, or 0.
func matchesLoosely(lines, want []string) int {
	if squeeze(lines[0]) != squeeze(want[0]) {
		return 0
	}
	k := 0
	for n, l := range lines {
		if strings.TrimSpace(l) == "" {
			continue
		}
		if squeeze(l) != squeeze(want[k]) {
			return 0
		}
		if k++; k == len(want) {
			return n + 1
		}
	}
	return 0
}

// squeeze makes runs of white space one space.
func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

// excerpt shows n lines from i and one around, at most eight, each cut short.
func excerpt(lines []string, i, n int) string {
	from, to := max(i-1, 0), min(i+min(n, 6)+1, len(lines))
	var b strings.Builder
	for k := from; k < to; k++ {
		text, _ := clip([]byte(lines[k]), 200)
		fmt.Fprintf(&b, "%6d\t%s\n", k+1, strings.TrimRight(strings.ToValidUTF8(text, "\uFFFD"), "\r\n"))
	}
	return strings.TrimRight(b.String(), "\n")
}

// likeness is the share of neighbouring pairs of bytes that two lines have in
// common, 0 to 1. Long lines are compared by their first 400 bytes.
func likeness(a, b string) float64 {
	a, b = a[:min(len(a), 400)], b[:min(len(b), 400)]
	if a == b {
		return 1
	}
	if len(a) < 2 || len(b) < 2 {
		return 0
	}
	pairs := make(map[[2]byte]int, len(a))
	for i := range len(a) - 1 {
		pairs[[2]byte{a[i], a[i+1]}]++
	}
	common := 0
	for i := range len(b) - 1 {
		if k := [2]byte{b[i], b[i+1]}; pairs[k] > 0 {
			pairs[k]--
			common++
		}
	}
	return 2 * float64(common) / float64(len(a)+len(b)-2)
}

// similar returns up to three paths that name might have meant: the same file
// name elsewhere, or a like name in the same folder. It looks at no more than
// 5,000 entries.
func (w *workspace) similar(name string) []string {
	rel, err := w.Relative(name)
	if err != nil {
		return nil
	}
	type candidate struct {
		path  string
		score float64
	}
	var found []candidate
	want := strings.ToLower(path.Base(rel))
	opt := filewalk.Options{All: true, MaxEntries: 5000, Skip: func(name string, folder bool) bool {
		return folder && (filewalk.IsToolFolder(path.Base(name)) || command.Secluded(name))
	}}
	_, _ = filewalk.Walk(context.Background(), w.Root(), opt, func(p string, d fs.DirEntry) error { // without the folder there is no suggestion
		if d.IsDir() {
			return nil
		}
		score := likeness(strings.ToLower(path.Base(p)), want)
		if path.Dir(p) == path.Dir(rel) {
			score += 0.15
		}
		if score >= 0.65 {
			found = append(found, candidate{p, score})
		}
		return nil
	})
	slices.SortStableFunc(found, func(a, b candidate) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return 0
	})
	var names []string
	for _, c := range found[:min(len(found), 3)] {
		names = append(names, c.path)
	}
	return names
}
