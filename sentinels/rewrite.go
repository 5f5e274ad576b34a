package sentinels

import (
	"bytes"
	"fmt"

	"github.com/tailscale/hujson"
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
// checks of expressions, cron and triggers. An error means that def cannot be encoded
// and decoded again, which is impossible for a decoded definition whose text is within
// the limits.
func Rewrite(src []byte, def *Definition, opt DecodeOptions) ([]byte, error) {
	// The hash does not depend on the checks, and def has passed them.
	opt.CheckCron, opt.CheckExpression, opt.CheckTrigger = nil, nil, nil
	want, target := def.Hash(), compact(def)
	text := src
	for range maxRewrites + 1 {
		was, problems := Decode(text, opt)
		if len(problems) > 0 {
			break
		}
		if was.Hash() == want {
			return text, nil
		}
		root, err := hujson.Parse(text)
		if err != nil {
			break
		}
		w := newRewriter(text, opt.Types)
		w.value(&root, compact(was), target, "")
		text = root.Pack()
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

// A rewriter changes the syntax tree of one text. Values are in compact JSON, as
// [compact] writes them.
type rewriter struct {
	types   *TypeSet
	newline string // of the text
	unit    string // of its indentation
}

// newRewriter detects the line ends and the indentation of the text.
func newRewriter(text []byte, types *TypeSet) *rewriter {
	w := &rewriter{types: types, newline: "\n", unit: "  "}
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

// value changes v, whose value is before, to the value after. indent is that of the
// line in which v begins.
func (w *rewriter) value(v *hujson.Value, before, after []byte, indent string) {
	if sameValue(before, after) {
		return
	}
	switch at := v.Value.(type) {
	case *hujson.Object:
		if before[0] == '{' && after[0] == '{' {
			w.object(at, before, after, indent)
			return
		}
	case *hujson.Array:
		if before[0] == '[' && after[0] == '[' && len(at.Elements) == len(itemsOf(before)) {
			w.array(at, itemsOf(before), itemsOf(after), indent)
			return
		}
	}
	w.replace(v, after, indent)
}

// replace writes v again and keeps the comments and white space around it.
func (w *rewriter) replace(v *hujson.Value, after []byte, indent string) {
	multiline := bytes.ContainsRune(packed(v), '\n') // as it was written before
	if _, literal := v.Value.(hujson.Literal); literal {
		multiline = len(after) > shortValue
	}
	v.Value = w.newValue(after, indent, multiline)
}

// packed returns the text of a value without the comments and white space around it.
func packed(v *hujson.Value) []byte { return hujson.Value{Value: v.Value}.Pack() }

// array changes an array item by item. Items keep their comments when they move; the
// comments of removed items are removed.
func (w *rewriter) array(at *hujson.Array, before, after [][]byte, indent string) {
	l := w.newLayout(len(at.Elements), at.AfterExtra, indent, func(i int) (*hujson.Value, *hujson.Value) {
		return &at.Elements[i], &at.Elements[i]
	})
	m := matchItems(before, after)
	slots := make([]*slot, len(after))
	for j, raw := range after {
		if i := m.from[j]; i >= 0 {
			slots[j] = l.slots[i]
			w.value(&slots[j].value, before[i], raw, l.indent)
			continue
		}
		slots[j] = l.newSlot(hujson.Value{}, hujson.Value{Value: w.newValue(raw, l.indent, l.multilineValues(raw))})
	}
	l.slots = slots
	at.AfterExtra = l.close()
	at.Elements = make([]hujson.ArrayElement, len(slots))
	for i, s := range l.slots {
		at.Elements[i] = s.value
	}
}

// object changes the members that differ, under the names that the text has for them.
// A new member is inserted after the one that it follows in the canonical order.
func (w *rewriter) object(at *hujson.Object, before, after []byte, indent string) {
	l := w.newLayout(len(at.Members), at.AfterExtra, indent, func(i int) (*hujson.Value, *hujson.Value) {
		return &at.Members[i].Name, &at.Members[i].Value
	})
	l.named = true
	old, now := membersOf(before), membersOf(after)
	names := w.namer(old, now)
	old = w.limits(l, old, now)
	for _, m := range old {
		// A member that is not in the text is derived from others.
		if i := l.find(names, m.name); i >= 0 && memberOf(now, m.name) == nil {
			l.remove(i)
		}
	}
	last := -1 // slot of the member before
	for _, m := range now {
		was, i := memberOf(old, m.name), l.find(names, m.name)
		switch {
		case i >= 0 && was != nil:
			w.value(&l.slots[i].value, was, m.value, l.indent)
		case i >= 0: // a default that is written explicitly
			w.replace(&l.slots[i].value, m.value, l.indent)
		case was != nil && sameValue(was, m.value): // it is derived from other members
			continue
		default:
			i = last + 1
			name := hujson.Value{Value: hujson.Literal(appendString(nil, m.name))}
			value := hujson.Value{Value: w.newValue(m.value, l.indent, l.multilineValues(m.value))}
			if l.spaced() {
				value.BeforeExtra = hujson.Extra(" ")
			}
			l.insert(i, l.newSlot(name, value))
		}
		last = i
	}
	at.AfterExtra = l.close()
	at.Members = make([]hujson.ObjectMember, len(l.slots))
	for i, s := range l.slots {
		at.Members[i] = hujson.ObjectMember{Name: s.name, Value: s.value}
	}
}

// namer returns a function from a key of this object to the aliases that the text may
// have for it. A name that is a key of its own, as in free data, is not an alias.
func (w *rewriter) namer(old, now []rawMember) func(name string) []string {
	var spec *TypeSpec
	if w.types != nil {
		kind := memberOf(old, "type")
		if kind == nil {
			kind = memberOf(now, "type")
		}
		if kind != nil && kind[0] == '"' {
			spec, _ = w.types.Lookup(StepType(unquote(kind)))
		}
	}
	return func(name string) []string {
		var others []string
		if name == "id" { // of an exported entity; it has precedence over id
			others = append(others, "uniqueId")
		}
		others = append(others, writtenAs[name]...)
		if spec != nil {
			for alias, stored := range spec.Aliases {
				if stored == name {
					others = append(others, alias)
				}
			}
		}
		// Free data may have both "if" and "check" as keys of their own.
		var free []string
		for _, other := range others {
			if memberOf(old, other) == nil {
				free = append(free, other)
			}
		}
		return free
	}
}

// limits changes the limits that a definition may have at the top level and in
// safety, of which the smaller one is used. It returns old as if the limits that it
// changed had been in safety.
func (w *rewriter) limits(l *layout, old, now []rawMember) []rawMember {
	for _, name := range []string{"timeoutMs", "maxIterations"} {
		i := l.find(nil, name)
		if i < 0 || memberOf(old, name) != nil || memberOf(old, "loop") == nil {
			continue
		}
		// It is at the top level in the text, and in safety in the compact form.
		was, is := limitOf(old, name), limitOf(now, name)
		if string(was) == string(is) {
			continue
		}
		if l.has("safety", name) || is == nil {
			l.remove(i)
		} else {
			w.replace(&l.slots[i].value, is, l.indent)
		}
		if !l.has("safety", name) {
			old = withLimit(old, name, is)
		}
	}
	return old
}

// limitOf returns a limit of the member safety, nil for none.
func limitOf(members []rawMember, name string) []byte {
	if safety := memberOf(members, "safety"); safety != nil {
		return memberOf(membersOf(safety), name)
	}
	return nil
}

// withLimit returns a copy of members with the limit in safety; a nil value removes it.
func withLimit(members []rawMember, name string, value []byte) []rawMember {
	var safety object
	if value != nil {
		safety.add(name, value)
	}
	out := make([]rawMember, 0, len(members)+1)
	for _, m := range members {
		if m.name != "safety" {
			out = append(out, m)
			continue
		}
		for _, s := range membersOf(m.value) {
			if s.name != name {
				safety.add(s.name, s.value)
			}
		}
	}
	if len(safety.b) > 0 {
		out = append(out, rawMember{"safety", safety.bytes()})
	}
	return out
}
