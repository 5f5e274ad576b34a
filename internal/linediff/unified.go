package linediff

import (
	"fmt"
	"strings"
)

// diffContext is the number of equal lines around a difference.
const diffContext = 3

// Unified returns a unified diff of two texts, given as lines with their ends; it is ""
// for equal texts.
func Unified(before, after []string, nameA, nameB string) string {
	pairs := append(Align(before, after), [2]int{len(before), len(after)})
	var out strings.Builder
	var h hunk
	i, j := 0, 0 // number of lines of each text that have been written
	for _, p := range pairs {
		for ; i < p[0]; i++ {
			h.line('-', before[i], i, j)
		}
		for ; j < p[1]; j++ {
			h.line('+', after[j], i, j)
		}
		if i < len(before) && j < len(after) {
			h.equal(&out, before[i])
			i, j = i+1, j+1
		}
	}
	h.end(&out)
	if out.Len() == 0 {
		return ""
	}
	return fmt.Sprintf("--- %s\n+++ %s\n%s", nameA, nameB, out.String())
}

// A hunk is one part of a unified diff.
type hunk struct {
	lead     []string // equal lines before the first difference
	lines    []string
	trailing int // equal lines at the end of lines
	i, j     int // lines before the first, in the old and the new text
	removed  int // number of lines from the old text
	added    int
}

// put adds a line with its mark and counts it for the header of the hunk.
func (h *hunk) put(mark byte, text string) {
	h.lines = append(h.lines, string(mark)+strings.TrimSuffix(text, "\n")+"\n")
	if mark != '+' {
		h.removed++
	}
	if mark != '-' {
		h.added++
	}
}

// line adds a line that differs.
func (h *hunk) line(mark byte, text string, i, j int) {
	if len(h.lines) == 0 { // the hunk begins with the equal lines before it
		h.i, h.j = i-len(h.lead), j-len(h.lead)
		for _, l := range h.lead {
			h.put(' ', l)
		}
		h.lead = nil
	}
	h.trailing = 0
	h.put(mark, text)
}

// equal adds a line that is in both texts. After more equal lines than two hunks
// share, it ends the hunk.
func (h *hunk) equal(out *strings.Builder, text string) {
	if len(h.lines) > 0 {
		h.put(' ', text)
		if h.trailing++; h.trailing > 2*diffContext {
			h.end(out)
		}
		return
	}
	if h.lead = append(h.lead, text); len(h.lead) > diffContext {
		h.lead = h.lead[1:]
	}
}

// end writes the hunk without the equal lines beyond the context. The last of them
// are the context of the next hunk.
func (h *hunk) end(out *strings.Builder) {
	if len(h.lines) == 0 {
		return
	}
	spare := max(h.trailing-diffContext, 0)
	keep := len(h.lines) - spare
	var lead []string
	for _, l := range h.lines[max(keep, len(h.lines)-diffContext):] {
		lead = append(lead, l[1:])
	}
	removed, added := h.removed-spare, h.added-spare
	fmt.Fprintf(out, "@@ -%s +%s @@\n", span(h.i, removed), span(h.j, added))
	for _, l := range h.lines[:keep] {
		out.WriteString(l)
	}
	*h = hunk{lead: lead}
}

// span returns a range of lines as in the header of a hunk: counted from 1, without
// the length if it is 1, and for an empty range the line before it.
func span(before, n int) string {
	switch n {
	case 0:
		return fmt.Sprintf("%d,0", before)
	case 1:
		return fmt.Sprint(before + 1)
	}
	return fmt.Sprintf("%d,%d", before+1, n)
}
