package sentinels

import (
	"bytes"
	"slices"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// shortValue is the length in bytes up to which a new array or object is written in
// one line if it has no neighbours whose layout could be copied.
const shortValue = 60

// A slot is one member or item with its comments: those before it, those between it and
// its comma, and the one after it in the same line, which is behind the comma.
type slot struct {
	node   *node  // in the text, nil for a new one
	name   string // of a member
	head   []byte // of a member: its key and the colon, as written
	value  []byte
	lead   []byte
	after  []byte // before the comma
	trail  []byte
	spaced bool // there is a space after the colon
}

// A layout is the content of one object or array, divided into slots.
type layout struct {
	slots  []*slot
	open   []byte // comment in the line of the opening bracket
	end    []byte // before the closing bracket
	indent string // of its slots
	comma  bool   // there is a trailing comma
	lines  bool   // each slot begins a line
	named  bool   // an object
	empty  bool   // it had no slots
	outer  string // indentation of the line of the opening bracket
	line   string // the line end
}

// newLayout divides the members or items of n into slots.
func (w *rewriter) newLayout(n *node, outer string) *layout {
	l := &layout{indent: outer + w.unit, outer: outer, line: w.newline, named: n.Kind == '{'}
	for _, m := range n.Members {
		head := w.text[m.Start:m.Value.Start]
		l.slots = append(l.slots, &slot{node: m.Value, name: m.Name, head: head, spaced: head[len(head)-1] != ':'})
	}
	for _, item := range n.Items {
		l.slots = append(l.slots, &slot{node: item})
	}
	l.empty = len(l.slots) == 0
	trail := &l.open // of the slot before
	at := n.Start + 1
	for _, s := range l.slots {
		start := s.node.Start - len(s.head)
		*trail, s.lead = splitLine(w.text[at:start])
		s.value, trail = w.text[s.node.Start:s.node.End], &s.trail
		// The last slot decides, because most additions come after it.
		if i := bytes.LastIndexByte(s.lead, '\n'); i >= 0 {
			indent := s.lead[i+1:]
			l.lines, l.indent = true, string(indent[:len(indent)-len(bytes.TrimLeft(indent, " \t"))])
		}
		at = s.node.End
		comma := commaAt(w.text[at : n.End-1])
		if l.comma = comma >= 0; l.comma {
			s.after = w.text[at : at+comma]
			at += comma + 1
		}
	}
	*trail, l.end = splitLine(w.text[at : n.End-1])
	return l
}

// commaAt returns the offset of the comma after a value, -1 if a closing bracket is next.
func commaAt(text []byte) int {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case ',':
			return i
		case '/':
			i = strictjson.SkipComment(text, i) - 1
		case ' ', '\t', '\r', '\n':
		default:
			return -1
		}
	}
	return -1
}

// splitLine divides extra after the comment in its first line.
func splitLine(extra []byte) (head, rest []byte) {
	for i := 0; i < len(extra); i++ {
		switch extra[i] {
		case '\n':
			if i > 0 && extra[i-1] == '\r' {
				i--
			}
			if bytes.IndexByte(extra[:i], '/') < 0 { // white space alone
				return nil, slices.Clone(extra)
			}
			return slices.Clone(extra[:i]), slices.Clone(extra[i:])
		case '/':
			i = strictjson.SkipComment(extra, i) - 1 // after "//", the line end is next
		}
	}
	return nil, slices.Clone(extra)
}

// find returns the index of the slot of a stored name or one of its aliases, -1 for
// none.
func (l *layout) find(others func(string) []string, name string) int {
	at := func(name string) int {
		return slices.IndexFunc(l.slots, func(s *slot) bool { return s.name == name })
	}
	if others != nil {
		for _, other := range others(name) {
			if i := at(other); i >= 0 {
				return i
			}
		}
	}
	return at(name)
}

// has reports whether the member name is an object that has the key.
func (l *layout) has(name, key string) bool {
	i := l.find(nil, name)
	return i >= 0 && l.slots[i].node.Member(key) != nil
}

// remove and insert change the slots; write returns them.
func (l *layout) remove(i int) { l.slots = slices.Delete(l.slots, i, i+1) }

func (l *layout) insert(i int, s *slot) { l.slots = slices.Insert(l.slots, i, s) }

// newSlot returns a slot with the layout of its neighbours; the name is that of a
// member. In an empty array it begins a line if its value is long.
func (l *layout) newSlot(name string, value []byte) *slot {
	s := &slot{name: name, value: value}
	if l.named {
		s.head = append(strictjson.AppendString(nil, name), ':')
		if s.spaced = len(l.slots) == 0 || l.slots[0].spaced; s.spaced {
			s.head = append(s.head, ' ')
		}
	}
	if l.empty && !l.lines {
		l.lines = len(value) > shortValue || bytes.IndexByte(value, '\n') >= 0
	}
	if l.lines {
		s.lead = []byte(l.line + l.indent)
	}
	return s
}

// multilineValues reports whether a new array or object is written in several lines:
// if its neighbours are, or without neighbours if it is long.
func (l *layout) multilineValues(n *node) bool {
	if !l.lines && !l.empty {
		return false
	}
	for _, s := range l.slots {
		if s.value[0] == '{' || s.value[0] == '[' {
			return bytes.IndexByte(s.value, '\n') >= 0
		}
	}
	return length(n) > shortValue
}

// write returns the object or array with its slots.
func (l *layout) write(opening, closing byte) []byte {
	out := []byte{opening}
	head := l.open
	for i, s := range l.slots {
		lead := s.lead
		if len(lead) == 0 && i > 0 && !l.lines {
			lead = []byte(" ")
		}
		out = append(out, joinExtra(head, lead, l.line+l.indent)...)
		out = append(append(out, s.head...), s.value...)
		if i == len(l.slots)-1 && !l.comma {
			head = slices.Concat(s.after, s.trail)
			break
		}
		out = append(append(out, s.after...), ',')
		head = s.trail
	}
	end := l.end
	if l.lines && bytes.IndexByte(end, '\n') < 0 {
		end = slices.Concat(end, []byte(l.line+l.outer))
	}
	return append(append(out, joinExtra(head, end, l.line+l.outer)...), closing)
}

// joinExtra joins two extras. It begins a new line after a comment that extends to the
// end of its line.
func joinExtra(head, rest []byte, line string) []byte {
	if len(head) == 0 {
		return rest
	}
	joined := slices.Clone(head)
	if trimmed := bytes.TrimLeft(rest, " \t\r"); len(trimmed) == 0 || trimmed[0] != '\n' {
		joined = append(joined, line...)
		rest = bytes.TrimLeft(rest, " \t")
	}
	return append(joined, rest...)
}
