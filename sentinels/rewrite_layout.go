package sentinels

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/tailscale/hujson"
)

// shortValue is the length up to which a new list or object stands in one line
// when nothing beside it shows how.
const shortValue = 60

// A slot is one member or item with the comments that belong to it: those in
// front, and the one behind it in the same line, which in the syntax tree is in
// front of the next.
type slot struct {
	name  hujson.Value // of a member
	value hujson.Value
	lead  hujson.Extra
	trail hujson.Extra
}

// A layout is the inside of one object or list, taken apart.
type layout struct {
	slots  []*slot
	open   hujson.Extra // comment in the line of the bracket that opens it
	end    hujson.Extra // before the bracket that closes it
	indent string       // of its slots
	comma  bool         // the last slot has one, too
	named  bool         // an object
	lines  bool         // its slots stand in lines of their own
	empty  bool         // it had no slots
	outer  string       // indentation of the line it begins in
	line   string       // what ends a line
}

// newLayout takes n members or items apart; part returns where the extra before
// and the extra behind one of them are, which for an item is the same value.
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
		// The last slot decides, as what is added mostly comes behind it.
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

// splitLine cuts off the comment that ends the line in which extra begins.
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
				i = end - 1 // the line's end comes next
			} else {
				i = end
			}
		}
	}
	return nil, slices.Clone(extra)
}

// find returns the slot of a member that is stored as name, -1 for none.
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

// remove and insert change the order of the slots; close writes it.
func (l *layout) remove(i int) { l.slots = slices.Delete(l.slots, i, i+1) }

func (l *layout) insert(i int, s *slot) { l.slots = slices.Insert(l.slots, i, s) }

// fresh returns a slot that is written as those beside it are. An empty list
// opens into lines if what comes in does not fit into one.
func (l *layout) fresh(name, value hujson.Value) *slot {
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

// spaced reports whether names and values have a space between them.
func (l *layout) spaced() bool {
	return len(l.slots) == 0 || len(l.slots[0].value.BeforeExtra) > 0
}

// multilineValues reports whether a new list or object goes over several lines:
// as those beside it do, else when it is long.
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

// close puts the slots together again and returns what goes before the closing
// bracket.
func (l *layout) close() hujson.Extra {
	head := l.open
	for i, s := range l.slots {
		lead := s.lead
		if len(lead) == 0 && i > 0 && !l.lines {
			lead = hujson.Extra(" ")
		}
		extra := follow(head, lead, l.line+l.indent)
		if l.named {
			s.name.BeforeExtra = extra
		} else {
			s.value.BeforeExtra = extra
		}
		head = s.trail
		// Extra behind the last value, even of no length, is how the tree says that
		// a comma follows, so it has to go or come with the order.
		switch last := i == len(l.slots)-1; {
		case !last:
		case l.comma && s.value.AfterExtra == nil:
			s.value.AfterExtra = hujson.Extra{} // not nil: that is how the tree says comma
		case !l.comma:
			head = append(slices.Clone(s.value.AfterExtra), head...)
			s.value.AfterExtra = nil
		}
	}
	end := l.end
	if l.lines && bytes.IndexByte(end, '\n') < 0 {
		end = append(slices.Clone(end), (l.line + l.outer)...)
	}
	return follow(head, end, l.line+l.outer)
}

// follow joins two extras. Behind a comment that goes to the end of its line the
// next begins a new one.
func follow(head, rest hujson.Extra, line string) hujson.Extra {
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

// fresh returns a value that the text does not have yet.
func (w *rewriter) fresh(raw []byte, indent string, multiline bool) hujson.ValueTrimmed {
	text := spacedJSON(nil, raw)
	if multiline && (raw[0] == '{' || raw[0] == '[') {
		var b bytes.Buffer
		if json.Indent(&b, raw, indent, w.unit) == nil {
			text = bytes.ReplaceAll(b.Bytes(), []byte("\n"), []byte(w.newline))
		}
	}
	v, err := hujson.Parse(text)
	if err != nil {
		return hujson.Literal(raw) // only of a Definition built by hand; what reads the text will say it
	}
	return v.Value
}

// spacedJSON writes a value in one line as people do.
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
