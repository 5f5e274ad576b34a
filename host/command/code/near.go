package code

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/filewalk"
	"github.com/sentinel-runtime/sentinel/sentinels/glob"
)

// nearText describes the text of a file that is most similar to old: the same lines
// with other white space, or the line that is most similar to the first one.
func nearText(text, old string) string {
	lines, want := strings.Split(text, "\n"), nonBlank(strings.Split(old, "\n"))
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
		if s := similarity(strings.TrimSpace(line), want[0]); s > best {
			best, at = s, i
		}
	}
	if best < 0.5 {
		return "nothing in the file is similar: read the file again"
	}
	return fmt.Sprintf("the most similar text is at line %d:\n%s", at+1, excerpt(lines, at, len(want)))
}

// nonBlank returns the lines that are not blank, without white space around them.
func nonBlank(lines []string) []string {
	var out []string
	for _, l := range lines {
		if l = strings.TrimSpace(l); l != "" {
			out = append(out, l)
		}
	}
	return out
}

// matchesLoosely returns the number of lines at the start of lines that equal want,
// apart from blank lines and white space, or 0.
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

// squeeze replaces runs of white space with one space.
func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

// excerpt formats n lines from i on and the lines beside them, at most eight, each
// of at most 200 bytes.
func excerpt(lines []string, i, n int) string {
	from, to := max(i-1, 0), min(i+min(n, 6)+1, len(lines))
	var b strings.Builder
	for k := from; k < to; k++ {
		text, _ := clip([]byte(lines[k]), 200)
		fmt.Fprintf(&b, "%6d\t%s\n", k+1, strings.TrimRight(strings.ToValidUTF8(text, "\uFFFD"), "\r\n"))
	}
	return strings.TrimRight(b.String(), "\n")
}

// similarity returns the Dice coefficient of the pairs of adjacent bytes of two
// lines, from 0 to 1. Only the first 400 bytes of a line count.
func similarity(a, b string) float64 {
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

// similar returns up to three paths that are similar to that of a missing file: the
// same file name in another folder, or a similar name in the same folder. It visits
// at most 5,000 entries.
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
		return folder && (glob.IsSkipped(path.Base(name)) || w.rules.Closed(name))
	}}
	_, _ = filewalk.Walk(context.Background(), w.Root(), opt, func(p string, d fs.DirEntry) error { // without the folder there is no suggestion
		if d.IsDir() {
			return nil
		}
		score := similarity(strings.ToLower(path.Base(p)), want)
		if path.Dir(p) == path.Dir(rel) {
			score += 0.15
		}
		if score >= 0.65 {
			found = append(found, candidate{p, score})
		}
		return nil
	})
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(b.score, a.score) })
	var names []string
	for _, c := range found[:min(len(found), 3)] {
		names = append(names, c.path)
	}
	return names
}
