package code

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/sentinel-runtime/sentinel/host/internal/filewalk"
	"github.com/sentinel-runtime/sentinel/sentinels/glob"
)

// nearText describes the text of a file that is most similar to old: the same lines
// with other white space or with characters that look the same, or the line that is most
// similar to the first one. It shows where they differ by what cannot be seen. Its time
// grows with the length of the texts.
func nearText(text, old string) string {
	lines, wanted := strings.Split(text, "\n"), strings.Split(old, "\n")
	want := lookOf(wanted)
	if len(want) == 0 {
		return "the old text is only white space"
	}
	have := lookOf(lines)
	if i := indexOf(have, want); i >= 0 {
		from, to := have[i].line, have[i+len(want)-1].line
		how := "with other white space"
		difference := "blank lines differ"
		for k, w := range want {
			a, b := lines[have[i+k].line], wanted[w.line]
			if squeeze(a) != squeeze(b) {
				how = "with other characters that look the same"
			}
			if a != b && difference == "blank lines differ" {
				difference = compare(have[i+k].line, a, b)
			}
		}
		return fmt.Sprintf("%s it is at line %d:\n%s\n%s", how, from+1, excerpt(lines, from, to-from+1), difference)
	}
	first := wanted[want[0].line]
	at, best := mostSimilar(lines, strings.TrimSpace(first))
	if best < 0.5 {
		return "nothing in the file is similar: read the file again"
	}
	hint := fmt.Sprintf("the most similar text is at line %d:\n%s", at+1, excerpt(lines, at, len(want)))
	if visible(lines[at]) != lines[at] || visible(first) != first {
		hint += "\n" + compare(at, lines[at], first)
	}
	return hint
}

// compare shows a line of the file and the line of old that was to match it.
func compare(line int, have, want string) string {
	cut := func(s string) string { text, _ := clip([]byte(s), 200); return visible(strings.TrimSuffix(text, "\n")) }
	return fmt.Sprintf("line %d of the file is `%s`, and of the old text `%s`", line+1, cut(have), cut(want))
}

// visible writes the characters of a line that cannot be seen or distinguished as in a Go
// string: tabs and other controls, white space but the space, accents that are characters of
// their own, and characters without a form. A space at the end is written as \x20.
func visible(s string) string {
	var b strings.Builder
	trimmed := strings.TrimRight(s, " ")
	for _, r := range trimmed {
		switch {
		case r == ' ' || !unicode.Is(unicode.Mn, r) && unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	b.WriteString(strings.Repeat(`\x20`, len(s)-len(trimmed)))
	return b.String()
}

// A look is what can be seen of a line that is not blank.
type look struct {
	line int
	text string
}

// lookOf returns the lines that are not blank, without white space around them and with
// one space for each other white space, characters composed, and those without a form left
// out.
func lookOf(lines []string) []look {
	var out []look
	for i, l := range lines {
		text := l
		if strings.ContainsFunc(l, func(r rune) bool { return r > unicode.MaxASCII }) {
			text = strings.Map(func(r rune) rune {
				if unicode.Is(unicode.Cf, r) {
					return -1
				}
				return r
			}, norm.NFKC.String(l))
		}
		if text = squeeze(text); text != "" {
			out = append(out, look{i, text})
		}
	}
	return out
}

// squeeze replaces runs of white space with one space.
func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

// indexOf returns where the texts of want are in have, or -1. It is the search of Knuth,
// Morris and Pratt: its time does not depend on how often lines repeat.
func indexOf(have, want []look) int {
	back := make([]int, len(want)) // of each beginning of want, its longest end that is a beginning too
	for i, k := 1, 0; i < len(want); i++ {
		for k > 0 && want[i].text != want[k].text {
			k = back[k-1]
		}
		if want[i].text == want[k].text {
			k++
		}
		back[i] = k
	}
	k := 0
	for i, h := range have {
		for k > 0 && h.text != want[k].text {
			k = back[k-1]
		}
		if h.text == want[k].text {
			k++
		}
		if k == len(want) {
			return i - k + 1
		}
	}
	return -1
}

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

// maxSimilar limits the part of a line that is compared, in bytes.
const maxSimilar = 400

// mostSimilar returns the first of the lines that are most similar to want, apart from white
// space around them, and their similarity.
func mostSimilar(lines []string, want string) (at int, best float64) {
	at = -1
	last, score := "", 0.0
	pairs := pairsOf(want)
	for i, line := range lines {
		if line = strings.TrimSpace(line); line != last || i == 0 {
			last, score = line, pairs.similarity(line)
		}
		if score > best {
			at, best = i, score
		}
	}
	return at, best
}

// A pairing has the number of each pair of adjacent bytes of a line.
type pairing struct {
	line  string
	pairs map[[2]byte]int
	used  map[[2]byte]int // by the line that is compared
}

func pairsOf(line string) pairing {
	line = line[:min(len(line), maxSimilar)]
	p := pairing{line, make(map[[2]byte]int, len(line)), make(map[[2]byte]int)}
	for i := range max(len(line)-1, 0) {
		p.pairs[[2]byte{line[i], line[i+1]}]++
	}
	return p
}

// similarity returns the Dice coefficient of the pairs of two lines, from 0 to 1.
func (p pairing) similarity(line string) float64 {
	line = line[:min(len(line), maxSimilar)]
	if line == p.line {
		return 1
	}
	if len(line) < 2 || len(p.line) < 2 {
		return 0
	}
	clear(p.used)
	common := 0
	for i := range len(line) - 1 {
		if k := [2]byte{line[i], line[i+1]}; p.used[k] < p.pairs[k] {
			p.used[k]++
			common++
		}
	}
	return 2 * float64(common) / float64(len(line)+len(p.line)-2)
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
	want := pairsOf(strings.ToLower(path.Base(rel)))
	opt := filewalk.Options{All: true, MaxEntries: 5000, Skip: func(name string, folder bool) bool {
		return folder && (glob.IsSkipped(path.Base(name)) || w.rules.Closed(name))
	}}
	_, _ = filewalk.Walk(context.Background(), w.Root(), opt, func(p string, d fs.DirEntry) error { // without the folder there is no suggestion
		if d.IsDir() {
			return nil
		}
		score := want.similarity(strings.ToLower(path.Base(p)))
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
