package rag

import (
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
)

// excerpt returns the text of a file in at most n bytes, including a heading: all of
// it if it fits, or else the lines around a given line or around the line with most
// words nearby. first is the number of the first line. The excerpt is empty if n is
// too small for a few lines.
func excerpt(name, text string, line int, words []string, n int) (part string, first int, truncated bool) {
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	head := fmt.Sprintf("--- %s\n", clean(name))
	if len(head)+len(text) <= n {
		return head + text, 1, false
	}
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	lines[len(lines)-1] += "\n"
	head = fmt.Sprintf("--- %s (lines %d to %d of %d)\n", clean(name), len(lines), len(lines), len(lines)) // the longest heading
	space := n - len(head)
	if space < 80 {
		return "", 0, true
	}
	if line < 1 || line > len(lines) {
		line = bestLine(lines, words)
	}
	from, to := around(lines, line-1, space)
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s (lines %d to %d of %d)\n", clean(name), from+1, to, len(lines))
	for _, l := range lines[from:to] {
		if len(l) > space { // a single line that is longer than the excerpt
			l = textcut.Mark(l, space-4) + "\n"
		}
		b.WriteString(l)
	}
	return b.String(), from + 1, true
}

// around extends a range of lines while it fits into the given bytes. It always has
// the given line. It grows by two lines below for each line above, because code is
// read downwards.
func around(lines []string, at, space int) (from, to int) {
	from, to = at, at+1
	size := len(lines[at])
	for grown := true; grown; {
		grown = false
		for range 2 {
			if to < len(lines) && size+len(lines[to]) <= space {
				size += len(lines[to])
				to++
				grown = true
			}
		}
		if from > 0 && size+len(lines[from-1]) <= space {
			from--
			size += len(lines[from])
			grown = true
		}
	}
	return from, to
}

// bestLine returns the number of the first line of the ten lines that contain most
// of the words, the first of several such places, or 1 if no word occurs.
func bestLine(lines, words []string) int {
	const near = 10
	last := make([]int, len(words)) // number of the last line with the word
	best, most := 1, 0
	for i, l := range lines {
		low := strings.ToLower(l)
		here := false
		for w, word := range words {
			if strings.Contains(low, word) {
				last[w], here = i+1, true
			}
		}
		if !here {
			continue
		}
		count := 0
		start := i + 1
		for _, at := range last {
			if at > 0 && i+1-at < near {
				count++
				start = min(start, at)
			}
		}
		if count > most {
			best, most = start, count
		}
	}
	return best
}
