package code

import (
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/linediff"
)

// A lined text is a text in which every line ends in LF, and the line ends that it has in
// its file. So texts are compared by what their lines say: models write LF, also for a file
// whose lines end in CR LF.
type lined struct {
	text string
	crlf []bool // for each LF of text, whether there is a CR before it in the file
}

// parseLines separates a text from its line ends. A CR that is not directly before an LF is
// part of its line.
func parseLines(s string) lined {
	d := lined{text: withLF(s), crlf: make([]bool, 0, strings.Count(s, "\n"))}
	for from := 0; ; {
		i := strings.IndexByte(s[from:], '\n')
		if i < 0 {
			return d
		}
		d.crlf = append(d.crlf, i > 0 && s[from+i-1] == '\r')
		from += i + 1
	}
}

// withLF returns a text with LF as its line ends.
func withLF(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// String returns the text as it is in the file.
func (d lined) String() string {
	var b strings.Builder
	b.Grow(d.size())
	rest := d.text
	for _, crlf := range d.crlf {
		line, after, _ := strings.Cut(rest, "\n")
		b.WriteString(line)
		if crlf {
			b.WriteByte('\r')
		}
		b.WriteByte('\n')
		rest = after
	}
	b.WriteString(rest)
	return b.String()
}

// size returns the length of the text in the file, in bytes.
func (d lined) size() int { return len(d.text) + trues(d.crlf) }

// replace puts after in the place of the text of length n at each offset. Lines that stay
// keep their line ends, and so do lines that are changed; new lines get those of the lines
// beside them, or, in a text of one line, those of after.
func (d lined) replace(at []int, n int, after string) lined {
	if len(d.crlf) == 0 {
		return parseLines(strings.ReplaceAll(d.text, d.text[at[0]:at[0]+n], after))
	}
	after = withLF(after)
	most := trues(d.crlf)*2 > len(d.crlf)
	var text strings.Builder
	var crlf []bool
	from, line := 0, 0 // where the part begins that is not copied yet, and its line
	for i := 0; i < len(at); {
		// The block is the whole lines of this match and of those that begin in them.
		start := from + strings.LastIndexByte(d.text[from:at[i]], '\n') + 1
		end := start
		var block strings.Builder
		for pos := start; ; i++ {
			if i < len(at) && (end == start || at[i] < end) {
				block.WriteString(d.text[pos:at[i]])
				pos = at[i] + n
				if strings.HasPrefix(d.text[pos:], "\n") {
					block.WriteString(strings.TrimSuffix(after, "\r")) // the CR of a line end
				} else {
					block.WriteString(after)
				}
				end = lineEnd(d.text, pos)
				continue
			}
			block.WriteString(d.text[pos:end])
			break
		}
		first := line + strings.Count(d.text[from:start], "\n")
		last := first + strings.Count(d.text[start:end], "\n")
		text.WriteString(d.text[from:start])
		text.WriteString(block.String())
		crlf = append(crlf, d.crlf[line:first]...)
		crlf = append(crlf, lineEnds(d, first, last, d.text[start:end], block.String(), most)...)
		from, line = end, last
	}
	text.WriteString(d.text[from:])
	return lined{text.String(), append(crlf, d.crlf[line:]...)}
}

// rewrite returns the text after with the line ends that replace would give it: those of a
// whole new text for the same file. A text without a line end says nothing about those of
// another, which then stay as they are.
func (d lined) rewrite(after lined) lined {
	if len(d.crlf) == 0 {
		return after
	}
	most := trues(d.crlf)*2 > len(d.crlf)
	return lined{after.text, lineEnds(d, 0, len(d.crlf), d.text, after.text, most)}
}

// lineEnd returns the offset behind the line that has the offset pos.
func lineEnd(text string, pos int) int {
	if i := strings.IndexByte(text[pos:], '\n'); i >= 0 {
		return pos + i + 1
	}
	return len(text)
}

// lineEnds returns the line ends for after, which takes the place of before: the lines of d
// from first up to last. Most is what most lines of the file have; it decides for a new line
// between two that differ.
func lineEnds(d lined, first, last int, before, after string, most bool) []bool {
	n := strings.Count(after, "\n")
	own := d.crlf[first:last]
	beside := d.crlf[max(first-1, 0):min(last+1, len(d.crlf))]
	out := make([]bool, n)
	if crlf := trues(beside); crlf == 0 || crlf == len(beside) {
		for i := range out {
			out[i] = crlf > 0
		}
		return out
	}
	// What is behind the last LF has no line end here.
	old, lines := strings.SplitAfter(before, "\n")[:len(own)], strings.SplitAfter(after, "\n")[:n]
	known := make([]bool, n)
	x, y := 0, 0
	gap := func(toX, toY int) {
		changedEnds(old[x:toX], own[x:toX], lines[y:toY], out[y:toY], known[y:toY])
	}
	for _, p := range linediff.Align(old, lines) {
		gap(p[0], p[1])
		out[p[1]], known[p[1]] = own[p[0]], true
		x, y = p[0]+1, p[1]+1
	}
	gap(len(old), n)
	for i := 0; i < n; i++ {
		if known[i] {
			continue
		}
		next := i
		for next < n && !known[next] {
			next++
		}
		fillNew(d, first, last, out, i, next, most)
		i = next
	}
	return out
}

// changedEnds gives line ends to the lines between two that stay. A line whose text was there
// before keeps its line end, as far as that is one; else a line gets that of the line in
// whose place it is. Lines beyond those are new.
func changedEnds(old []string, own []bool, lines []string, out, known []bool) {
	if len(old) == 0 || len(lines) == 0 {
		return
	}
	type ends struct{ lf, crlf bool }
	byText := make(map[string]ends, len(old))
	for i, line := range old {
		e := byText[line]
		e.lf, e.crlf = e.lf || !own[i], e.crlf || own[i]
		byText[line] = e
	}
	for i, line := range lines {
		switch e := byText[line]; {
		case e.lf != e.crlf:
			out[i], known[i] = e.crlf, true
		case i < len(old):
			out[i], known[i] = own[i], true
		}
	}
}

// fillNew gives the new lines from i up to next the line end of the lines beside them.
func fillNew(d lined, first, last int, out []bool, i, next int, most bool) {
	var before, after bool
	hasBefore, hasAfter := true, true
	switch {
	case i > 0:
		before = out[i-1]
	case first > 0:
		before = d.crlf[first-1]
	default:
		hasBefore = false
	}
	switch {
	case next < len(out):
		after = out[next]
	case last < len(d.crlf):
		after = d.crlf[last]
	default:
		hasAfter = false
	}
	end := most
	switch {
	case hasBefore && (!hasAfter || before == after):
		end = before
	case hasAfter && !hasBefore:
		end = after
	}
	for k := i; k < next; k++ {
		out[k] = end
	}
}

// trues returns how many of a list are true.
func trues(list []bool) (n int) {
	for _, b := range list {
		if b {
			n++
		}
	}
	return n
}
