package sentinels

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// maxRewrites is the number of rounds in which a text is changed until it decodes to
// the definition. One change can cause another: the name of a nested definition that
// has none depends on the address of its step.
const maxRewrites = 4

// Rewrite returns src changed so that it decodes to def. Parts that do not change
// stay as they are written: comments, order, white space, aliases of keys, a type
// that is left out. New parts get the layout of their neighbours.
//
// The result always decodes to a definition with def's hash. If src cannot be changed
// to that, because it is not a definition or has the same setting in two places, the
// result is that of [Encode], without comments. src is decoded with opt, without the
// checks of expressions and triggers. An error means that def cannot be encoded
// and decoded again, which is impossible for a decoded definition whose text is within
// the limits.
func Rewrite(src []byte, def *Definition, opt DecodeOptions) ([]byte, error) {
	// The hash does not depend on the checks, and def has passed them.
	opt.CheckExpression, opt.CheckTrigger = nil, nil
	want, target := def.Hash(), compactTree(def)
	text := src
	for range maxRewrites + 1 {
		was, problems := Decode(text, opt)
		if len(problems) > 0 {
			break
		}
		if was.Hash() == want {
			return text, nil
		}
		written, _ := parseDefinition("", text)
		w := newRewriter(text, opt.Types)
		root := written.Root
		changed := w.value(root, compactTree(was).Root, target.Root, "")
		text = slices.Concat(text[:root.Start], changed, text[root.End:])
	}
	// The text cannot be changed, so it is replaced.
	text = Encode(def)
	again, problems := Decode(text, opt)
	if len(problems) > 0 {
		return nil, fmt.Errorf("rewrite definition %q: %w", def.ID, problems)
	}
	if again.Hash() != want {
		return nil, fmt.Errorf("rewrite definition %q: the written text decodes to another definition", def.ID)
	}
	return text, nil
}

// A rewriter changes one text. It walks three trees at once: that of the text, with the
// names and the layout of the author, and those of the definition before and after, as
// [compact] writes them.
type rewriter struct {
	text    []byte
	types   *TypeSet
	newline string // of the text
	unit    string // of its indentation
}

// newRewriter detects the line ends and the indentation of the text.
func newRewriter(text []byte, types *TypeSet) *rewriter {
	w := &rewriter{text: text, types: types, newline: "\n", unit: "  "}
	if bytes.Contains(text, []byte("\r\n")) {
		w.newline = "\r\n"
	}
	for _, line := range bytes.Split(text, []byte("\n")) {
		indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]
		if rest := bytes.TrimSpace(line); len(indent) > 0 && len(rest) > 0 && rest[0] == '"' {
			w.unit = string(indent)
			break
		}
	}
	return w
}

// value returns the text of n, whose value is before, changed to the value after. indent
// is that of the line in which n begins.
func (w *rewriter) value(n, before, after *node, indent string) []byte {
	written := w.text[n.Start:n.End]
	switch {
	case before.Equal(after):
		return written
	case n.Kind == '{' && before.Kind == '{' && after.Kind == '{':
		return w.object(n, before, after, indent)
	case n.Kind == '[' && before.Kind == '[' && after.Kind == '[' && len(n.Items) == len(before.Items):
		return w.array(n, before, after, indent)
	}
	return w.replace(written, after, indent)
}

// replace returns the text of a value that is written again: in several lines if it was,
// or if a literal becomes something long.
func (w *rewriter) replace(written []byte, after *node, indent string) []byte {
	multiline := bytes.IndexByte(written, '\n') >= 0
	if written[0] != '{' && written[0] != '[' {
		multiline = length(after) > shortValue
	}
	return w.newValue(after, indent, multiline)
}

// array changes an array item by item. Items keep their comments when they move; the
// comments of removed items are removed.
func (w *rewriter) array(n, before, after *node, indent string) []byte {
	l := w.newLayout(n, indent)
	m := matchItems(before.Items, after.Items)
	slots := make([]*slot, len(after.Items))
	for j, item := range after.Items {
		if i := m.from[j]; i >= 0 {
			slots[j] = l.slots[i]
			slots[j].value = w.value(n.Items[i], before.Items[i], item, l.indent)
			continue
		}
		slots[j] = l.newSlot("", w.newValue(item, l.indent, l.multilineValues(item)))
	}
	l.slots = slots
	return l.write('[', ']')
}

// object changes the members that differ, under the names that the text has for them.
// A new member is inserted after the one that it follows in the canonical order.
func (w *rewriter) object(n, before, after *node, indent string) []byte {
	l := w.newLayout(n, indent)
	names := w.namer(before, after)
	before = w.limits(l, before, after)
	for _, m := range before.Members {
		// A member that is not in the text is derived from others.
		if i := l.find(names, m.Name); i >= 0 && after.Member(m.Name) == nil {
			l.remove(i)
		}
	}
	last := -1 // slot of the member before
	for _, m := range after.Members {
		was, i := before.Member(m.Name), l.find(names, m.Name)
		switch {
		case i >= 0 && was != nil:
			l.slots[i].value = w.value(l.slots[i].node, was, m.Value, l.indent)
		case i >= 0: // a default that is written explicitly
			l.slots[i].value = w.replace(l.slots[i].value, m.Value, l.indent)
		case was != nil && was.Equal(m.Value): // it is derived from other members
			continue
		default:
			i = last + 1
			l.insert(i, l.newSlot(m.Name, w.newValue(m.Value, l.indent, l.multilineValues(m.Value))))
		}
		last = i
	}
	return l.write('{', '}')
}

// namer returns a function from a key of this object to the aliases that the text may
// have for it. A name that is a key of its own, as in free data, is not an alias.
func (w *rewriter) namer(old, now *node) func(name string) []string {
	kind := old.Member("type")
	if kind == nil {
		kind = now.Member("type")
	}
	var spec *TypeSpec
	if kind != nil {
		spec, _ = w.types.Lookup(StepType(kind.Text))
	}
	return func(name string) []string {
		others := otherNames(name)
		if spec != nil {
			for alias, stored := range spec.Aliases {
				if stored == name {
					others = append(others, alias)
				}
			}
		}
		// Free data may have both "if" and "check" as keys of their own.
		return slices.DeleteFunc(others, func(other string) bool { return old.Member(other) != nil })
	}
}

// limits changes the limits that a definition may have at the top level and in
// safety, of which the smaller one is used. It returns old as if the limits that it
// changed had been in safety.
func (w *rewriter) limits(l *layout, old, now *node) *node {
	if old.Member("loop") == nil { // not a definition
		return old
	}
	for _, f := range format.definition {
		outer, name, limit := strings.Cut(f.into, ".")
		i := l.find(nil, f.name)
		if !limit || i < 0 || old.Member(f.name) != nil {
			continue
		}
		// It is at the top level in the text, and in safety in the compact form.
		was, is := inner(old, outer, name), inner(now, outer, name)
		if was == nil && is == nil || was != nil && is != nil && was.Equal(is) {
			continue
		}
		has := l.has(outer, name)
		if has || is == nil {
			l.remove(i)
		} else {
			l.slots[i].value = w.replace(l.slots[i].value, is, l.indent)
		}
		if !has {
			old = withInner(old, outer, name, is)
		}
	}
	return old
}

// inner returns a member of a member, nil for none.
func inner(n *node, outer, name string) *node {
	if n = n.Member(outer); n == nil {
		return nil
	}
	return n.Member(name)
}

// withInner returns a copy of n with value as a member of its member outer; a nil value
// removes it.
func withInner(n *node, outer, name string, value *node) *node {
	object := &node{Kind: '{'}
	if value != nil {
		object.Members = append(object.Members, member{Name: name, Value: value})
	}
	out := &node{Kind: '{'}
	for _, m := range n.Members {
		if m.Name != outer {
			out.Members = append(out.Members, m)
			continue
		}
		for _, s := range m.Value.Members {
			if s.Name != name {
				object.Members = append(object.Members, s)
			}
		}
	}
	if len(object.Members) > 0 {
		out.Members = append(out.Members, member{Name: outer, Value: object})
	}
	return out
}

// newValue returns the text of a value that the text does not have yet.
func (w *rewriter) newValue(n *node, indent string, multiline bool) []byte {
	if !multiline {
		return writeLine(nil, n)
	}
	return bytes.ReplaceAll(writeLines(nil, n, "\n"+indent, w.unit), []byte("\n"), []byte(w.newline))
}

// length returns the number of bytes of a value in compact form.
func length(n *node) int { return len(n.Canonical()) }

// writeLine writes a value in one line, with spaces after colons and commas.
func writeLine(b []byte, n *node) []byte {
	switch n.Kind {
	case '{':
		b = append(b, '{')
		for i, m := range n.Members {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = writeLine(append(strictjson.AppendString(b, m.Name), ": "...), m.Value)
		}
		return append(b, '}')
	case '[':
		b = append(b, '[')
		for i, item := range n.Items {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = writeLine(b, item)
		}
		return append(b, ']')
	}
	return append(b, n.Canonical()...)
}

// writeLines writes each member and each item of a value in a line of its own. line
// ends a line and indents the next one.
func writeLines(b []byte, n *node, line, unit string) []byte {
	if len(n.Members)+len(n.Items) == 0 {
		return writeLine(b, n)
	}
	for i, m := range n.Members {
		b = append(append(b, "{,"[min(i, 1)]), line+unit...)
		b = writeLines(append(strictjson.AppendString(b, m.Name), ": "...), m.Value, line+unit, unit)
	}
	for i, item := range n.Items {
		b = append(append(b, "[,"[min(i, 1)]), line+unit...)
		b = writeLines(b, item, line+unit, unit)
	}
	return append(append(b, line...), n.Kind+2) // the brackets are two apart in ASCII
}
