package sentinels

import (
	"encoding/json"
	"fmt"
	"slices"
)

var loopTypes = []string{
	string(LoopOnce), string(LoopCount), string(LoopUntil), string(LoopWhile), string(LoopContinuous), string(LoopEvent),
}

// loopKeys are the keys of each loop type besides "type".
var loopKeys = map[LoopType]struct{ required, optional []string }{
	LoopOnce:       {},
	LoopCount:      {required: []string{"max"}},
	LoopUntil:      {required: []string{"check"}},
	LoopWhile:      {required: []string{"check"}},
	LoopContinuous: {optional: []string{"intervalMs"}},
	LoopEvent:      {required: []string{"event"}},
}

func init() {
	expression := map[string]any{"type": "string", "minLength": 1}
	loopFields = table[Loop]{
		choiceField("type", "The kind of loop.", loopTypes, func(l *Loop) *LoopType { return &l.Type }),
		{name: "max", doc: "count: the number of iterations, or a $reference to it.",
			schema: map[string]any{"anyOf": []any{map[string]any{"type": "integer", "minimum": 1},
				map[string]any{"type": "string", "pattern": `^\$`}}},
			decode: (*decoder).loopMax, encode: func(src *Loop) json.RawMessage { return src.Max }},
		{name: "check", aliases: []string{"if"}, doc: "until, while: a condition on the variables.", schema: expression,
			decode: func(d *decoder, n *node, dst *Loop) { dst.Check, _ = d.expression(n) },
			encode: textField("", "", func(l *Loop) *string { return &l.Check }).encode},
		numberField("intervalMs", "continuous: delay between iterations.", 0, func(l *Loop) *int64 { return &l.IntervalMs }),
		{name: "event", doc: `event: a pattern of event names; "*" matches one segment, a final "**" all that follow.`, schema: expression,
			decode: func(d *decoder, n *node, dst *Loop) { dst.Event = d.pattern(n) },
			encode: textField("", "", func(l *Loop) *string { return &l.Event }).encode},
	}
}

// loop reads a loop and reports keys of other loop types. They would have no effect,
// and the author of a loop of type until with "max" expects it to be a limit.
func (d *decoder) loop(n *node) Loop {
	var l Loop
	seen := loopFields.read(d, n, &l)
	if seen == nil {
		return l
	}
	if _, ok := seen["type"]; !ok {
		d.add(n, KindMissing, "one of "+quotedList(loopTypes, " or "), "type is missing")
	}
	keys, ok := loopKeys[l.Type]
	if !ok {
		return l
	}
	for _, name := range keys.required {
		if _, ok := seen[name]; !ok {
			d.add(n, KindMissing, "", "a loop of type %q needs %q", l.Type, name)
		}
	}
	for name, m := range seen {
		if name != "type" && !slices.Contains(keys.required, name) && !slices.Contains(keys.optional, name) {
			hint := ""
			if name == "max" {
				hint = `to limit iterations, use "maxIterations" in "safety"`
			}
			d.addAt(m.Start, m.Value.Path(), KindUnknown, hint, fmt.Sprintf("a loop of type %q has no %q", l.Type, m.Name))
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
