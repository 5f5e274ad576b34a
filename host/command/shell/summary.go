package shell

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Bounds of the text of a watch.
const (
	textSize   = 32 << 10 // bytes; twice that in JSON
	aroundLine = 3        // lines before and behind an error or a warning
	lastLines  = 50
	longLine   = 4 << 10 // bytes of one line, in a text that has not all of them
)

// rank orders lines by what they are worth to a reader.
type rank int

const (
	rankError rank = iota
	rankAroundError
	rankWarning
	rankAroundWarning
	rankOther
	ranks = int(rankOther)
)

// summary gathers lines as one text: all of them if they fit; else errors first, then
// warnings, both with the lines around them, then the last lines.
//
// It holds few times the size of the text, however many lines there are.
type summary struct {
	next  int            // position of the next line; lines that are not on disk count
	size  int            // of all lines
	all   []*summaryLine // nil once they do not fit
	kept  []*summaryLine // those of a rank below rankOther
	sizes [ranks]int     // of the lines in kept, by rank
	last  []*summaryLine // the newest
	near  [2]int         // positions up to which lines are near the newest error and warning
}

// summaryLine is a line and what it is worth.
type summaryLine struct {
	at   int
	text string
	rank rank
}

// size is what a line takes in the text, its line end included.
func (l *summaryLine) size() int { return max(len(l.text), jsonSize(l.text)/2) + 1 }

// add takes the next line.
func (s *summary) add(text, class string) {
	l := &summaryLine{at: s.next, text: text, rank: rankOther}
	s.next++
	if s.size += l.size(); s.size <= textSize {
		s.all = append(s.all, l)
	} else {
		s.all = nil
	}
	if s.last = append(s.last, l); len(s.last) > lastLines {
		s.last = s.last[1:]
	}
	for i, around := range []rank{rankAroundError, rankAroundWarning} {
		if l.at < s.near[i] {
			s.raise(l, around)
		}
	}
	switch class {
	case classError:
		s.near[0] = l.at + 1 + aroundLine
		s.mark(l, rankError)
	case classWarning:
		s.near[1] = l.at + 1 + aroundLine
		s.mark(l, rankWarning)
	}
}

// mark gives a rank to a line, and the one below to the lines before it.
func (s *summary) mark(l *summaryLine, r rank) {
	s.raise(l, r)
	for _, before := range s.last[max(len(s.last)-1-aroundLine, 0) : len(s.last)-1] {
		if l.at-before.at <= aroundLine {
			s.raise(before, r+1)
		}
	}
}

// raise gives a line a better rank, unless lines of that rank fill the text already.
func (s *summary) raise(l *summaryLine, r rank) {
	n := min(l.size(), longLine)
	if l.rank <= r || s.sizes[r]+n > textSize {
		return
	}
	s.sizes[r] += n
	if l.rank == rankOther {
		s.kept = append(s.kept, l)
	} else {
		s.sizes[l.rank] -= n
	}
	l.rank = r
}

// skip counts lines that are not on disk.
func (s *summary) skip(lines int) { s.next += lines }

// String returns the text.
func (s *summary) String() string {
	if s.size <= textSize {
		return s.write(s.all)
	}
	// The newest of the last lines count most, an early error more than a late one.
	candidates := slices.SortedStableFunc(slices.Values(s.kept), func(a, b *summaryLine) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.at, b.at))
	})
	for _, l := range slices.Backward(s.last) {
		if l.rank == rankOther {
			candidates = append(candidates, l)
		}
	}
	for room := textSize; ; {
		var chosen []*summaryLine
		used := 0
		for _, l := range candidates {
			short := *l
			if l.size() > longLine {
				short.text = cutJSON(l.text, longLine) + lineCut
			}
			if used += short.size(); used > room {
				break
			}
			chosen = append(chosen, &short)
		}
		text := s.write(chosen)
		excess := max(len(text), jsonSize(text)/2) - textSize
		if excess <= 0 {
			return text
		}
		room = min(room, used) - excess // for the lines about what is left out
	}
}

// write lays out lines: errors and what is around them, warnings and what is around them,
// then the others, each in their order. The line about those left out stands before the
// line that follows them.
func (s *summary) write(lines []*summaryLine) string {
	lines = slices.Clone(lines)
	slices.SortFunc(lines, func(a, b *summaryLine) int { return cmp.Compare(a.at, b.at) })
	leftOut := map[int]int{}
	at := 0
	for _, l := range lines {
		leftOut[l.at] = l.at - at
		at = l.at + 1
	}
	whole := s.size <= textSize
	if !whole {
		slices.SortStableFunc(lines, func(a, b *summaryLine) int { return cmp.Compare(a.rank/2, b.rank/2) })
	}
	var b strings.Builder
	note := func(n int) {
		if n > 0 {
			fmt.Fprintf(&b, "[%d lines left out]\n", n)
		}
	}
	for _, l := range lines {
		note(leftOut[l.at])
		b.WriteString(l.text)
		b.WriteByte('\n')
	}
	note(s.next - at)
	return strings.TrimSuffix(b.String(), "\n")
}
