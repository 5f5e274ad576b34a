package sentinels

import (
	"encoding/json"
	"slices"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

const (
	triggerSchedule = "schedule"
	triggerEvent    = "event"
)

// triggers reads one trigger or a list of them.
func (d *decoder) triggers(n *node, dst *fileDefinition) {
	switch n.Kind {
	case '{':
		dst.Triggers = []Trigger{d.trigger(n)}
	case '[':
		for _, item := range n.Items {
			dst.Triggers = append(dst.Triggers, d.trigger(item))
		}
	default:
		d.wrongType(n, "a trigger or an array of triggers")
	}
}

// trigger reads one trigger. Keys that belong to its type are stored in Options,
// which the package of that type reads.
func (d *decoder) trigger(n *node) Trigger {
	var t Trigger
	if !d.expect(n, '{', "an object") {
		return t
	}
	before := len(d.problems)
	seen := make(map[string]member, len(n.Members))
	if at := n.Member("type"); at != nil {
		d.triggerType(at, &t)
	} else {
		d.add(n, KindMissing, "one of "+quotedList(d.opt.Triggers, " or "), "type is missing")
	}
	seen["type"] = member{} // it has been read or reported
	options := node{Kind: '{'}
	for _, m := range n.Members {
		f := format.trigger.find(m.Name)
		switch {
		case f == nil || !f.has(t.Type):
			options.Members = append(options.Members, m)
			if m.Name == "filter" {
				d.expression(m.Value)
			}
		case f.name == "type": // read before
		case d.recordKey(seen, f.name, m):
			f.decode(d, m.Value, &t)
		}
	}
	if len(options.Members) > 0 {
		t.Options = options.Canonical()
	}
	format.trigger.reportMissing(d, n, seen, "trigger", t.Type)
	if len(d.problems) == before && d.opt.CheckTrigger != nil {
		if err := d.opt.CheckTrigger(t); err != nil {
			d.add(n, KindValue, "", "%s", err)
		}
	}
	return t
}

// triggerType reads the type. "cron" is accepted if the host has schedules.
func (d *decoder) triggerType(n *node, t *Trigger) {
	kinds := d.opt.Triggers
	if slices.Contains(kinds, triggerSchedule) {
		kinds = append(slices.Clone(kinds), "cron")
	}
	t.Type, _ = d.choice(n, kinds)
	if t.Type == "cron" {
		t.Type = triggerSchedule
	}
}

// cron reads a cron expression. The host checks it, because it has the parser.
func (d *decoder) cron(n *node) string {
	text, ok := d.nonEmptyText(n)
	if ok && d.opt.CheckCron != nil {
		if err := d.opt.CheckCron(text); err != nil {
			d.add(n, KindValue, "", "%s", err)
		}
	}
	return text
}

// encodeTriggers writes a single trigger as an object, several as an array.
func encodeTriggers(src *fileDefinition) json.RawMessage {
	switch len(src.Triggers) {
	case 0:
		return nil
	case 1:
		return encodeTrigger(&src.Triggers[0])
	}
	raw := []byte{'['}
	for i := range src.Triggers {
		if i > 0 {
			raw = append(raw, ',')
		}
		raw = append(raw, encodeTrigger(&src.Triggers[i])...)
	}
	return append(raw, ']')
}

// encodeTrigger writes the options as keys of the trigger, as they were read.
func encodeTrigger(t *Trigger) json.RawMessage {
	var o object
	format.trigger.write(&o, t)
	if len(t.Options) > 0 {
		strictjson.EachMember(t.Options, func(name, value []byte) bool {
			o.add(strictjson.Unquote(name), value)
			return true
		})
	}
	return o.bytes()
}

// MarshalJSON returns t as it is written in a definition.
func (t Trigger) MarshalJSON() ([]byte, error) { return encodeTrigger(&t), nil }
