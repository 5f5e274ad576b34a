package sentinels

import (
	"fmt"
)

// loop reads a loop and reports keys of other loop types. They would have no effect,
// and the author of a loop of type until with "max" expects it to be a limit.
func (d *decoder) loop(n *node) Loop {
	var l Loop
	seen := format.loop.read(d, n, &l)
	if seen == nil {
		return l
	}
	typ := string(l.Type)
	format.loop.reportMissing(d, n, seen, "loop", typ)
	if typ == "" {
		return l
	}
	for i := range format.loop {
		f := &format.loop[i]
		if m, given := seen[f.name]; given && !f.has(typ) {
			d.addAt(m.Start, m.Value.Path(), KindUnknown, f.elsewhere, fmt.Sprintf("a loop of type %q has no %q", typ, m.Name))
		}
	}
	return l
}

// loopMax reads a number or a string that is exactly one reference: a reference
// within text would resolve to text, not to a number.
func (d *decoder) loopMax(n *node, dst *Loop) {
	if n.Kind == '"' && exactReference(n.Text) {
		dst.Max = n.Canonical()
		return
	}
	if n.Kind == '"' {
		d.wrongType(n, "a whole number or one $reference")
	} else if _, ok := d.integer(n, 1); ok {
		dst.Max = n.Canonical()
	}
}

// pattern reads a pattern of event names.
func (d *decoder) pattern(n *node) string {
	text, ok := d.nonEmptyText(n)
	if ok && !ValidPattern(text) {
		d.add(n, KindValue, `segments are separated by ":"; "*" is a whole segment, "**" only the last`, "invalid event pattern %q", text)
	}
	return text
}
