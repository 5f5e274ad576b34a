package sentinels

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// TriggerKind is what the format needs to know of a kind of trigger. The packages
// of the kinds describe themselves; the format has no list of its own.
type TriggerKind struct {
	Name    string       // the type of its triggers
	Aliases []string     // other names that a file may use; stored as Name
	Field   TriggerField // the key that its triggers must have; "" for none
	Fires   string       // when it fires, in a few words, for the schema

	Options []TriggerOption // in the order of their documentation
	Event   string          // what $event is in its runs
	// Warnings returns what is probably a mistake in a valid trigger. Default none.
	Warnings func(t Trigger) []string
}

// A TriggerOption describes an option of a kind of trigger, for the schema and for help.
type TriggerOption struct {
	Name     string
	Type     string   // string, boolean, integer or array, which has strings
	Doc      string   // meaning and range
	Default  string   // "" for none
	Enum     []string // the values, or those of the items; nil for any
	Required bool
}

// Has reports whether the kind has an option with the same meaning.
func (k TriggerKind) Has(o TriggerOption) bool {
	return slices.ContainsFunc(k.Options, func(own TriggerOption) bool { return own.Name == o.Name && own.Doc == o.Doc })
}

// schema returns the JSON Schema of the option.
func (o TriggerOption) schema() map[string]any {
	s := map[string]any{"type": o.Type, "description": o.Doc + "."}
	if o.Type == "integer" && strings.HasSuffix(o.Name, durationSuffix) {
		s = orDuration(s)
	}
	if o.Default != "" {
		s["description"] = o.Doc + ". Default: " + o.Default + "."
	}
	value := s
	if o.Type == "array" {
		value = map[string]any{"type": "string"}
		s["items"] = value
	}
	if o.Enum != nil {
		value["enum"] = o.Enum
	}
	return s
}

// Doc returns what the value of the key is.
func (f TriggerField) Doc() string {
	doc, _, _ := strings.Cut(format.trigger.find(string(f)).doc, ". ")
	return doc
}

// TriggerField is a key of a trigger that the format itself reads. All other keys
// are options, which the kind reads.
type TriggerField string

// The keys that a kind may require. In triggers of other kinds they are options.
const (
	TriggerEvent TriggerField = "event"          // a pattern of event names, [Trigger.Event]
	TriggerCron  TriggerField = "cronExpression" // [Trigger.CronExpression]
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
	kind := d.triggerType(n, &t)
	seen := make(map[string]member, len(n.Members))
	options := node{Kind: '{'}
	for _, m := range n.Members {
		f := format.trigger.find(m.Name)
		switch {
		case f == nil, f.name != "type" && TriggerField(f.name) != kind.Field:
			options.Members = append(options.Members, m)
			switch {
			case m.Name == "filter":
				d.expression(m.Value)
			case strings.HasSuffix(m.Name, durationSuffix):
				asDuration(m.Value)
			}
		case f.name == "type": // read before
		case d.recordKey(seen, f.name, m):
			f.decode(d, m.Value, &t)
		}
	}
	if len(options.Members) > 0 {
		t.Options = options.Canonical()
	}
	if _, ok := seen[string(kind.Field)]; kind.Field != "" && !ok {
		d.add(n, KindMissing, "", "a trigger of type %q needs %q", kind.Name, kind.Field)
	}
	if kind.Name != "" && d.opt.CheckTrigger != nil {
		d.triggerProblems(n, kind, d.opt.CheckTrigger(t), len(d.problems) == before)
	}
	if kind.Warnings != nil && len(d.problems) == before {
		for _, text := range kind.Warnings(t) {
			d.add(n, KindWarning, "", "%s", text)
		}
	}
	return t
}

// triggerProblems reports what the package of a kind finds. An error about one option has
// its place; the others only if nothing else is wrong with the trigger, since what is
// missing or invalid would be reported twice.
func (d *decoder) triggerProblems(n *node, kind TriggerKind, err error, others bool) {
	if err == nil {
		return
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			d.triggerProblems(n, kind, one, others)
		}
		return
	}
	var option *OptionError
	if !errors.As(err, &option) {
		if others {
			d.add(n, KindValue, cronHint(n, kind), "%s", err)
		}
		return
	}
	at, offset, path := n, n.Start, n.Path()
	name, _, _ := strings.Cut(option.Option, ".")
	for _, m := range n.Members {
		if m.Name == name {
			at, offset, path = m.Value, m.Start, m.Value.Path()
		}
	}
	if option.Known == nil {
		if !slices.ContainsFunc(d.problems, func(p Problem) bool { return p.Path == path && p.Kind == KindType }) {
			d.add(at, KindType, optionHint(at, kind, name), "%s", option.Problem)
		}
		return
	}
	known := []string{}
	if f := format.trigger.find(string(kind.Field)); f != nil {
		known = append(append(known, f.name), f.aliases...)
	}
	known = append(known, option.Known...)
	hint := "known: " + strings.Join(known, ", ")
	if other := d.otherWordHint(option.Option, at, kind.Name, inTrigger); other != "" {
		hint = other
	} else if near := Suggest(option.Option, known); len(near) > 0 {
		hint = "did you mean " + quotedList(near, " or ") + "? " + hint
	}
	d.addAt(offset, path, KindUnknown, hint, fmt.Sprintf("a trigger of type %q has no option %q", kind.Name, option.Option))
}

// cronHint returns the hint for words in the place of a cron expression.
func cronHint(n *node, kind TriggerKind) string {
	if kind.Field != TriggerCron {
		return ""
	}
	for _, m := range n.Members {
		if f := format.trigger.find(m.Name); f == nil || f.name != string(TriggerCron) || m.Value.Kind != '"' {
			continue
		}
		text := strings.ToLower(strings.TrimSpace(m.Value.Text))
		every := map[string]string{"hourly": "@hourly", "every hour": "@hourly", "daily": "@daily", "every day": "@daily", "every minute": "@every 1m",
			"weekly": "@weekly", "every week": "@weekly", "monthly": "@monthly", "every month": "@monthly", "yearly": "@yearly"}[text]
		if short := shortDuration(text); short != "" {
			every = "@every " + short
		}
		if every != "" {
			return "write " + quoted(m.Name) + ": " + quoted(every)
		}
	}
	return ""
}

// optionHint returns the hint for an option of another type than the kind has.
func optionHint(n *node, kind TriggerKind, name string) string {
	if n.Kind == '"' && strings.HasSuffix(name, durationSuffix) {
		return durationHint(n.Text)
	}
	for _, o := range kind.Options {
		if o.Name == name {
			return formHint(n, o.Type)
		}
	}
	return ""
}

// An OptionError is the problem of one option of a trigger.
type OptionError struct {
	Trigger string   // its type
	Option  string   // the key, with a path below it if there is one
	Known   []string // the options that the type has, if it has none of that name
	Problem string   // otherwise, what is wrong with the value
}

// Error returns the problem with the trigger and the option.
func (e *OptionError) Error() string {
	if e.Known == nil {
		return fmt.Sprintf("trigger %q: option %q %s", e.Trigger, e.Option, e.Problem)
	}
	hint := "want one of " + strings.Join(e.Known, ", ")
	if near := Suggest(e.Option, e.Known); len(near) > 0 {
		return fmt.Sprintf("trigger %q: unknown option %q, did you mean %q? %s", e.Trigger, e.Option, near[0], hint)
	}
	return fmt.Sprintf("trigger %q: unknown option %q: %s", e.Trigger, e.Option, hint)
}

// triggerType reads the type and returns its kind, an empty one if any type is
// accepted or the type is wrong.
func (d *decoder) triggerType(n *node, t *Trigger) TriggerKind {
	at := n.Member("type")
	names := triggerNames(d.opt.Triggers)
	switch {
	case at == nil && names == nil:
		d.add(n, KindMissing, "", "type is missing")
		return TriggerKind{}
	case at == nil:
		hint := cmp.Or(insteadHint(n, format.trigger.find, []string{"type"}), "one of "+quotedList(names, " or "))
		d.add(n, KindMissing, hint, "type is missing")
		return TriggerKind{}
	case names == nil:
		t.Type, _ = d.nonEmptyText(at)
		return TriggerKind{}
	}
	for _, kind := range d.opt.Triggers {
		names = append(names, kind.Aliases...)
	}
	if at.Kind == '"' && triggerType(at.Text) != at.Text && !slices.Contains(names, strings.ToLower(at.Text)) {
		d.add(at, KindUnknown, d.otherWordHint(at.Text, at, inKind), "unknown value %q", at.Text)
		return TriggerKind{}
	}
	t.Type, _ = d.choice(at, names)
	for _, kind := range d.opt.Triggers {
		if t.Type == kind.Name || slices.Contains(kind.Aliases, t.Type) {
			t.Type = kind.Name
			return kind
		}
	}
	return TriggerKind{}
}

// triggerNames returns the names of kinds, nil for none.
func triggerNames(kinds []TriggerKind) (names []string) {
	for _, k := range kinds {
		names = append(names, k.Name)
	}
	return names
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
