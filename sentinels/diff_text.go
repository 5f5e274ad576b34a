package sentinels

import (
	"fmt"
	"strings"
)

// diffContext is how many equal lines are shown around what differs.
const diffContext = 3

// DiffText returns the difference of two definitions for people: the unified
// form, over the texts that [Encode] gives. A nil definition is an empty text;
// equal ones have no difference, which is the empty string.
func DiffText(a, b *Definition, nameA, nameB string) string {
	before, after := encodedLines(a), encodedLines(b)
	pairs := append(align(before, after), [2]int{len(before), len(after)})
	var out strings.Builder
	var h hunk
	i, j := 0, 0 // lines of either text that are written
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

// encodedLines returns the text of d line by line; a line is compared with its
// end.
func encodedLines(d *Definition) []string {
	if d == nil {
		return nil
	}
	return strings.SplitAfter(strings.TrimSuffix(string(Encode(d)), "\n"), "\n")
}

// A hunk is one place of a unified difference while it is written.
type hunk struct {
	lead    []string // equal lines that would come before it
	lines   []string
	quiet   int // equal lines at the end of lines
	i, j    int // lines before the first, in the old and the new text
	removed int // lines of the old text in it
	added   int
}

// put adds a line with its mark and counts it for the head of the hunk.
func (h *hunk) put(mark byte, text string) {
	h.lines = append(h.lines, string(mark)+strings.TrimSuffix(text, "\n")+"\n")
	if mark != '+' {
		h.removed++
	}
	if mark != '-' {
		h.added++
	}
}

// line adds one that differs.
func (h *hunk) line(mark byte, text string, i, j int) {
	if len(h.lines) == 0 { // the hunk begins with the equal lines before it
		h.i, h.j = i-len(h.lead), j-len(h.lead)
		for _, l := range h.lead {
			h.put(' ', l)
		}
		h.lead = nil
	}
	h.quiet = 0
	h.put(mark, text)
}

// equal adds one that is in both. With so many of them that two places share
// none, the hunk is over.
func (h *hunk) equal(out *strings.Builder, text string) {
	if len(h.lines) > 0 {
		h.put(' ', text)
		if h.quiet++; h.quiet > 2*diffContext {
			h.end(out)
		}
		return
	}
	if h.lead = append(h.lead, text); len(h.lead) > diffContext {
		h.lead = h.lead[1:]
	}
}

// end writes the hunk without the equal lines that are too many; the last of
// them may lead to the next one.
func (h *hunk) end(out *strings.Builder) {
	if len(h.lines) == 0 {
		return
	}
	// Equal lines at the end that are more than the context belong to no hunk.
	spare := max(h.quiet-diffContext, 0)
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

// span is how the unified form names lines: counted from 1, the number left out
// when it is one, and an empty span is the line before it.
func span(before, n int) string {
	switch n {
	case 0:
		return fmt.Sprintf("%d,0", before)
	case 1:
		return fmt.Sprint(before + 1)
	}
	return fmt.Sprintf("%d,%d", before+1, n)
}
