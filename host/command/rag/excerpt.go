package rag

import (
	"fmt"
	"strings"
)

// excerpt shows a file in at most n bytes, heading included: whole if it fits,
// else the lines around the wanted one, or around where most words are. first
// is the number of the first line shown. A text that cannot hold a few lines
// is empty.
func excerpt(name, text string, line int, words []string, n int) (part string, first int, cutOff bool) {
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	head := fmt.Sprintf("--- %s\n", clean(name))
	if len(head)+len(text) <= n {
		return head + text, 1, false
	}
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	lines[len(lines)-1] += "\n"
	head = fmt.Sprintf("--- %s (lines %d to %d of %d)\n", clean(name), len(lines), len(lines), len(lines)) // at its longest
	room := n - len(head)
	if room < 80 {
		return "", 0, true
	}
	if line < 1 || line > len(lines) {
		line = bestLine(lines, words)
	}
	from, to := around(lines, line-1, room)
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s (lines %d to %d of %d)\n", clean(name), from+1, to, len(lines))
	for _, l := range lines[from:to] {
		if len(l) > room { // a single line longer than all the room
			l = clip(l, room-4) + "\n"
		}
		b.WriteString(l)
	}
	return b.String(), from + 1, true
}

// around grows a window about a line while it fits into room bytes, at least
// that line: two below for one above, as code is read downwards.
func around(lines []string, at, room int) (from, to int) {
	from, to = at, at+1
	size := len(lines[at])
	for grown := true; grown; {
		grown = false
		for range 2 {
			if to < len(lines) && size+len(lines[to]) <= room {
				size += len(lines[to])
				to++
				grown = true
			}
		}
		if from > 0 && size+len(lines[from-1]) <= room {
			from--
			size += len(lines[from])
			grown = true
		}
	}
	return from, to
}

// bestLine returns the number of the line in whose neighbourhood of ten lines
// most different words are, the first of equals; 1 without words.
func bestLine(lines, words []string) int {
	const near = 10
	last := make([]int, len(words)) // line of the word's last sighting, from 1
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
