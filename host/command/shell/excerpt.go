package shell

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
)

// excerpt gathers lines as one text of at most size bytes in JSON: all of them if they
// fit, else a quarter from the beginning and the rest from the end, of short bytes if that is set.
type excerpt struct {
	size       int
	short      int
	data       bool // it is data: with what carriage returns overwrite on a terminal
	dropped    int  // lines that are not in the text
	head, tail []piece
	headSize   int
	tailSize   int
	split      bool // lines were dropped behind head
	cut        bool // a line is not there in full
	open       bool // the last line has no line end
	stream     byte // of the last line
}

// piece is lines as they are in the text. Each has a line end, except an open one.
type piece struct {
	text  string
	lines int
	size  int // in JSON
}

// complete reports whether the text has all that was written.
func (x *excerpt) complete() bool { return x.dropped == 0 && !x.cut }

// enough is how many times the size of its end an excerpt is given at least before its end: what is
// removed of lines that steer terminals leaves less.
const enough = 4

// maxGrowth is how many bytes one byte takes in JSON at most.
const maxGrowth = 6

// add takes the next lines. So many bytes follow them.
func (x *excerpt) add(b *block, follow int64) {
	if x.split && follow > int64(enough*x.size) {
		for len(x.tail) > 0 {
			x.drop()
		}
		x.dropped, x.open = x.dropped+b.lines, false
		return
	}
	if x.open && x.stream != b.stream {
		x.end()
	}
	x.stream, x.open = b.stream, b.open
	if !hasLonger(b.text, x.size/maxGrowth) && plain(b.text) && bytes.IndexByte(b.text, '\r') < 0 {
		x.put(piece{string(b.text), b.lines, jsonSize(b.text)})
		return
	}
	for _, l := range b.appendLines(nil, b.lines) {
		text := l.text
		if !x.data {
			text = termtext.Overwrite(text)
		}
		if jsonSize(text) > x.size {
			text, x.cut = cutJSON(text, x.size)+lineCut, true
		}
		if !l.open {
			text += "\n"
		}
		x.put(piece{text, 1, jsonSize(text)})
	}
}

// put takes the next piece.
func (x *excerpt) put(p piece) {
	x.tail, x.tailSize = append(x.tail, p), x.tailSize+p.size
	if x.tailSize > x.size-x.headSize && !x.split {
		x.divide()
	}
	limit := x.size - x.headSize
	for len(x.tail) > 1 && x.tailSize-x.tail[0].size >= limit {
		x.drop()
	}
	for x.tailSize > limit {
		first := &x.tail[0]
		if first.lines > 1 {
			line := first.first()
			first.leave(&line)
			x.tailSize, x.dropped = x.tailSize-line.size, x.dropped+1
			continue
		}
		if len(x.tail) == 1 {
			break
		}
		x.drop()
	}
}

// drop drops the first piece of the end.
func (x *excerpt) drop() {
	x.dropped += x.tail[0].lines
	x.tailSize -= x.tail[0].size
	x.tail = x.tail[1:]
}

// first returns the first line of a piece with several.
func (p *piece) first() piece {
	line := p.text[:strings.IndexByte(p.text, '\n')+1]
	return piece{line, 1, jsonSize(line)}
}

// leave removes the beginning of a piece.
func (p *piece) leave(beginning *piece) {
	p.text, p.lines, p.size = p.text[len(beginning.text):], p.lines-beginning.lines, p.size-beginning.size
}

// skip counts lines that are not in the text. What came directly before them stays in
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
	if x.short > 0 {
		x.size = x.short
	}
	for len(x.tail) > 0 {
		p := x.tail[0]
		if x.headSize+p.size > x.size/4 {
			break
		}
		x.head, x.headSize = append(x.head, p), x.headSize+p.size
		x.tail, x.tailSize = x.tail[1:], x.tailSize-p.size
	}
	for len(x.tail) > 0 && x.tail[0].lines > 1 {
		line := x.tail[0].first()
		if x.headSize+line.size > x.size/4 {
			break
		}
		x.head, x.headSize = append(x.head, line), x.headSize+line.size
		x.tail[0].leave(&line)
		x.tailSize -= line.size
	}
}

// end adds the line end that the last line has not.
func (x *excerpt) end() {
	last := x.tail
	if len(last) == 0 {
		last = x.head
	}
	if len(last) == 0 {
		return
	}
	p := &last[len(last)-1]
	p.text, p.size = p.text+"\n", p.size+2
	if len(x.tail) > 0 {
		x.tailSize += 2
	} else {
		x.headSize += 2
	}
}

// text returns the excerpt, with a line about what is left out.
func (x *excerpt) text() string {
	head := joined(x.head)
	if x.dropped > 0 {
		head = lineEnd(head) + fmt.Sprintf("[%d lines dropped]\n", x.dropped)
	}
	return head + joined(x.tail)
}

func joined(pieces []piece) string {
	size := 0
	for _, p := range pieces {
		size += len(p.text)
	}
	var b strings.Builder
	b.Grow(size)
	for _, p := range pieces {
		b.WriteString(p.text)
	}
	return b.String()
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
	all := []struct {
		x    *excerpt
		want [3]bool
	}{{output, allKinds}, {stdout, [3]bool{true}}, {stderr, [3]bool{1: true}}}
	for at := from; ; {
		e.mu.Lock()
		list, follow, err := e.out.blocks(at, readAll)
		next := e.out.next
		e.mu.Unlock()
		if err != nil {
			return err
		}
		for i := range list {
			follow = follow.plus(list[i].extent())
		}
		gap := func(next int) {
			if next == at {
				return
			}
			for _, to := range all {
				if to.x != nil {
					to.x.skip(next - at) // of either stream
				}
			}
		}
		for i := range list {
			b := &list[i]
			gap(b.number)
			at = b.next()
			follow = follow.minus(b.extent())
			for _, to := range all {
				if to.x != nil && to.want[kindOf(b.stream)] {
					bytes, _ := follow.of(to.want)
					to.x.add(b, bytes)
				}
			}
		}
		if len(list) == 0 {
			gap(next)
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
