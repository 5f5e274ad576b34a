package shell

import (
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
)

// excerpt gathers lines as one text of at most size bytes in JSON: all of them if they
// fit, else a quarter from the beginning and the rest from the end.
type excerpt struct {
	size       int
	data       bool // it is data: with what carriage returns overwrite on a terminal
	dropped    int  // lines that are not in the text
	head, tail []string
	headSize   int
	tailSize   int
	split      bool // lines were dropped behind head
	cut        bool // a line is not there in full
	last       stored
}

// complete reports whether the text has all that was written.
func (x *excerpt) complete() bool { return x.dropped == 0 && !x.cut }

// add takes the next line.
func (x *excerpt) add(l stored) {
	if x.last.open && x.last.stream != l.stream {
		x.end()
	}
	x.last = l
	piece := l.text
	if !x.data {
		piece = termtext.Overwrite(piece)
	}
	if jsonSize(piece) > x.size {
		piece, x.cut = cutJSON(piece, x.size)+lineCut, true
	}
	if !l.open {
		piece += "\n"
	}
	n := jsonSize(piece)
	x.tail, x.tailSize = append(x.tail, piece), x.tailSize+n
	limit := x.size - x.headSize
	if x.tailSize > limit && !x.split {
		x.divide()
		limit = x.size - x.headSize
	}
	for x.tailSize > limit && len(x.tail) > 1 {
		x.tailSize -= jsonSize(x.tail[0])
		x.tail = x.tail[1:]
		x.dropped++
	}
}

// skip counts lines that are not kept any more. What came directly before them stays in
// the tail, so that the line about them may be a little early.
func (x *excerpt) skip(lines int) {
	if !x.split {
		x.divide()
	}
	x.dropped += lines
}

// divide makes what fits into a quarter the beginning.
func (x *excerpt) divide() {
	x.split = true
	for len(x.tail) > 0 {
		n := jsonSize(x.tail[0])
		if x.headSize+n > x.size/4 {
			return
		}
		x.head, x.headSize = append(x.head, x.tail[0]), x.headSize+n
		x.tail, x.tailSize = x.tail[1:], x.tailSize-n
	}
}

// end adds the line end that the last line has not.
func (x *excerpt) end() {
	switch {
	case len(x.tail) > 0:
		x.tail[len(x.tail)-1] += "\n"
		x.tailSize += 2
	case len(x.head) > 0:
		x.head[len(x.head)-1] += "\n"
		x.headSize += 2
	}
}

// text returns the excerpt, with a line about what is left out.
func (x *excerpt) text() string {
	head := strings.Join(x.head, "")
	if x.dropped > 0 {
		head = lineEnd(head) + fmt.Sprintf("[%d lines dropped]\n", x.dropped)
	}
	return head + strings.Join(x.tail, "")
}

// lineEnd ends a text that is not empty with a line end.
func lineEnd(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// excerpts gives the lines from one on to output, and those of the two streams to
// theirs, unless they are nil.
func (e *execution) excerpts(from int, output, stdout, stderr *excerpt) error {
	of := map[byte]*excerpt{'o': stdout, 'e': stderr}
	at := from
	for {
		lines, _, v, _, err := e.look(at)
		if err != nil {
			return err
		}
		gap := func(next int) {
			if next == at {
				return
			}
			for _, x := range []*excerpt{output, stdout, stderr} {
				if x != nil {
					x.skip(next - at) // of either stream
				}
			}
		}
		for _, l := range lines {
			gap(l.number)
			at = l.number + 1
			output.add(l)
			if x := of[l.stream]; x != nil {
				x.add(l)
			}
		}
		if len(lines) < batch {
			gap(v.next)
			return nil
		}
	}
}

// lineCut ends a line that is not there in full.
const lineCut = " [line cut]"

// cutJSON returns the beginning of s that has at most size bytes in JSON.
func cutJSON(s string, size int) string {
	n := 0
	for i, r := range s {
		if n += jsonSize(string(r)); n > size {
			return s[:i]
		}
	}
	return s
}
