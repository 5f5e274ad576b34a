package sentinels

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/tailscale/hujson"
)

// shortValue is the length in bytes up to which a new array or object is written in
// one line if it has no neighbours whose layout could be copied.
const shortValue = 60

// A slot is one member or item with its comments: those before it, and the one after
// it in the same line, which the syntax tree has before the next value.
type slot struct {
	name  hujson.Value // of a member
	value hujson.Value
	lead  hujson.Extra
	trail hujson.Extra
}

// A layout is the content of one object or array, divided into slots.
type layout struct {
	slots  []*slot
	open   hujson.Extra // comment in the line of the opening bracket
	end    hujson.Extra // before the closing bracket
	indent string       // of its slots
	comma  bool         // there is a trailing comma
	named  bool         // an object
	lines  bool         // each slot begins a line
	empty  bool         // it had no slots
	outer  string       // indentation of the line of the opening bracket
	line   string       // the line end
}

// newLayout divides n members or items into slots; part returns the values that have
// the extra before and after one of them. For an item that is the same value.
func (w *rewriter) newLayout(n int, after hujson.Extra, outer string, part func(int) (first, last *hujson.Value)) *layout {
	l := &layout{indent: outer + w.unit, outer: outer, empty: n == 0, line: w.newline}
	var before *slot
	for i := range n {
		first, last := part(i)
		head, lead := splitLine(first.BeforeExtra)
		s := &slot{value: *last, lead: lead}
		if first != last {
			s.name = *first
			s.name.BeforeExtra = nil
		} else {
			s.value.BeforeExtra = nil
		}
		if before == nil {
			l.open = head
		} else {
			before.trail = head
		}
		// The last slot decides, because most additions come after it.
		if bytes.IndexByte(lead, '\n') >= 0 {
			l.lines, l.indent = true, string(lead[bytes.LastIndexByte(lead, '\n')+1:])
			if blank := bytes.TrimLeft([]byte(l.indent), " \t"); len(blank) > 0 {
				l.indent = l.indent[:len(l.indent)-len(blank)]
			}
		}
		l.slots, before = append(l.slots, s), s
	}
	head, end := splitLine(after)
	l.end = end
	if before == nil {
		l.open = head
		return l
	}
	before.trail = head
	l.comma = before.value.AfterExtra != nil
	return l
}

// splitLine divides extra after the comment in its first line.
func splitLine(extra hujson.Extra) (head, rest hujson.Extra) {
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
			if end := skipComment(extra, i); end < len(extra) && extra[i+1] == '/' {
				i = end - 1 // the line end is next
			} else {
				i = end
			}
		}
	}
	return nil, slices.Clone(extra)
}

// find returns the index of the slot of a stored name or one of its aliases, -1 for
// none.
func (l *layout) find(others func(string) []string, name string) int {
	at := func(name string) int {
		return slices.IndexFunc(l.slots, func(s *slot) bool { return unquote(s.name.Value.(hujson.Literal)) == name })
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
	if i < 0 {
		return false
	}
	inner, ok := l.slots[i].value.Value.(*hujson.Object)
	return ok && slices.ContainsFunc(inner.Members, func(m hujson.ObjectMember) bool {
		return unquote(m.Name.Value.(hujson.Literal)) == key
	})
}

// remove and insert change the slots; close writes them.
func (l *layout) remove(i int) { l.slots = slices.Delete(l.slots, i, i+1) }

func (l *layout) insert(i int, s *slot) { l.slots = slices.Insert(l.slots, i, s) }

// newSlot returns a slot with the layout of its neighbours. In an empty array it begins
// a line if its value is long.
func (l *layout) newSlot(name, value hujson.Value) *slot {
	s := &slot{name: name, value: value}
	if l.empty && !l.lines {
		text := packed(&value)
		l.lines = len(text) > shortValue || bytes.IndexByte(text, '\n') >= 0
	}
	if l.lines {
		s.lead = hujson.Extra(l.line + l.indent)
	}
	return s
}

// spaced reports whether there is a space between names and values.
func (l *layout) spaced() bool {
	return len(l.slots) == 0 || len(l.slots[0].value.BeforeExtra) > 0
}

// multilineValues reports whether a new array or object is written in several lines:
// if its neighbours are, or without neighbours if it is long.
func (l *layout) multilineValues(raw []byte) bool {
	if !l.lines && !l.empty {
		return false
	}
	for _, s := range l.slots {
		if _, literal := s.value.Value.(hujson.Literal); !literal {
			return bytes.IndexByte(packed(&s.value), '\n') >= 0
		}
	}
	return len(raw) > shortValue
}

// close writes the extras of the slots and returns the extra before the closing
// bracket.
func (l *layout) close() hujson.Extra {
	head := l.open
	for i, s := range l.slots {
		lead := s.lead
		if len(lead) == 0 && i > 0 && !l.lines {
			lead = hujson.Extra(" ")
		}
		extra := joinExtra(head, lead, l.line+l.indent)
		if l.named {
			s.name.BeforeExtra = extra
		} else {
			s.value.BeforeExtra = extra
		}
		head = s.trail
		// In the tree, a non-nil extra after the last value, even if empty, means a
		// trailing comma, so it is set and removed with the order.
		switch last := i == len(l.slots)-1; {
		case !last:
		case l.comma && s.value.AfterExtra == nil:
			s.value.AfterExtra = hujson.Extra{} // not nil: a trailing comma
		case !l.comma:
			head = append(slices.Clone(s.value.AfterExtra), head...)
			s.value.AfterExtra = nil
		}
	}
	end := l.end
	if l.lines && bytes.IndexByte(end, '\n') < 0 {
		end = append(slices.Clone(end), (l.line + l.outer)...)
	}
	return joinExtra(head, end, l.line+l.outer)
}

// joinExtra joins two extras. It begins a new line after a comment that extends to the
// end of its line.
func joinExtra(head, rest hujson.Extra, line string) hujson.Extra {
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

// newValue parses a value that the text does not have yet.
func (w *rewriter) newValue(raw []byte, indent string, multiline bool) hujson.ValueTrimmed {
	text := spacedJSON(nil, raw)
	if multiline && (raw[0] == '{' || raw[0] == '[') {
		var b bytes.Buffer
		if json.Indent(&b, raw, indent, w.unit) == nil {
			text = bytes.ReplaceAll(b.Bytes(), []byte("\n"), []byte(w.newline))
		}
	}
	v, err := hujson.Parse(text)
	if err != nil {
		return hujson.Literal(raw) // only in a Definition that was not decoded; decoding the text reports it
	}
	return v.Value
}

// spacedJSON writes a value in one line, with spaces after colons and commas.
func spacedJSON(b, raw []byte) []byte {
	switch raw[0] {
	case '{':
		b = append(b, '{')
		for i, m := range membersOf(raw) {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = append(appendString(b, m.name), ": "...)
			b = spacedJSON(b, m.value)
		}
		return append(b, '}')
	case '[':
		b = append(b, '[')
		for i, item := range itemsOf(raw) {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = spacedJSON(b, item)
		}
		return append(b, ']')
	}
	return append(b, raw...)
}
