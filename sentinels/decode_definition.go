package sentinels

import (
	"encoding/json"
	"fmt"
	"strings"
)

// A draft is a definition while it is read: with the fields that are stored
// elsewhere in the end.
type draft struct {
	Definition
	uniqueID      ID
	timeoutMs     int64
	maxIterations int
}

// extras are keys that belong to a recipe or to an editor. They mean nothing to
// a run and are kept as written, so that a file does not lose them.
var extras = []string{"$schema", "displayName", "ragTemplate", "strategy", "layout", "locked"}

// runFacts are keys of an exported entity that tell of its runs. They are
// accepted and dropped: the store has them.
var runFacts = []string{"lastRunAt", "runCount", "averageDurationMs"}

var (
	definitionFields table[draft]
	loopFields       table[Loop]
	safetyFields     table[Safety]
	budgetFields     table[Budget]
	inputFields      table[Input]
	overlapFields    table[Definition]
	stepFields       table[Step]
	retryFields      table[RetryPolicy]
	onErrorFields    table[OnError]
	triggerFields    table[Trigger]
)

// The tables refer to functions that use them again for nested definitions, so
// they are filled here rather than where they are declared.
func init() {
	definitionFields = table[draft]{
		idField("id", "Slug of the sentinel; made of the name if it is missing.", func(d *draft) *ID { return &d.ID }),
		{name: "uniqueId", quiet: true, doc: "The id in an exported entity or a recipe; it wins over id.", schema: schemaID,
			decode: idField("", "", func(d *draft) *ID { return &d.uniqueID }).decode},
		{name: "name", doc: "The name as people read it.", schema: map[string]any{"type": "string", "minLength": 1},
			decode: func(d *decoder, n *node, dst *draft) { dst.Name, _ = d.mustText(n) },
			encode: func(src *draft) json.RawMessage { return appendString(nil, src.Name) }},
		textField("description", "What it is for.", func(d *draft) *string { return &d.Description }),
		numberField("version", "The author's own number; revisions are counted elsewhere.", 0, func(d *draft) *int { return &d.Version }),
		textField("recipe", "Name of the context recipe built into $ragContext before each iteration.", func(d *draft) *string { return &d.Recipe }),
		listField("ragSources", "Or the context sources themselves.", func(d *draft) *[]string { return &d.RAGSources }),
		{name: "inputs", doc: "Run-time parameters: a description of each, or just its type.",
			schema: map[string]any{"type": "object", "propertyNames": map[string]any{"pattern": variablePattern},
				"additionalProperties": map[string]any{"anyOf": []any{
					map[string]any{"enum": inputTypes}, map[string]any{"$ref": "#/$defs/input"}}}},
			decode: (*decoder).inputs, encode: encodeInputs},
		{name: "trigger", doc: "What starts it: one trigger or several.",
			schema: map[string]any{"anyOf": []any{refSchema("trigger"), map[string]any{"type": "array", "items": refSchema("trigger")}}},
			decode: (*decoder).triggers, encode: encodeTriggers},
		{name: "steps", aliases: []string{"pipeline"}, doc: "The steps, carried out in order.", schema: stepsSchema(),
			decode: func(d *decoder, n *node, dst *draft) { dst.Steps = d.steps(n) },
			encode: func(src *draft) json.RawMessage { return encodeSteps(src.Steps) }},
		{name: "loop", doc: "How often the steps are carried out; once if it is missing.", schema: refSchema("loop"),
			decode: func(d *decoder, n *node, dst *draft) { dst.Loop = d.loop(n) },
			encode: func(src *draft) json.RawMessage { return loopFields.encode(&src.Loop) }},
		{name: "tools", doc: "Commands that are useful here; a hint, not a filter.",
			schema: map[string]any{"type": "array", "items": map[string]any{"anyOf": []any{
				map[string]any{"type": "string"}, map[string]any{"type": "object", "required": []string{"name"}}}}},
			decode: (*decoder).tools,
			encode: listField("", "", func(d *draft) *[]string { return &d.Tools }).encode},
		inputOnly(numberField("timeoutMs", "Time limit of a run; with safety.timeoutMs the smaller wins.", 1, func(d *draft) *int64 { return &d.timeoutMs })),
		inputOnly(numberField("maxIterations", "Limit of iterations; with safety.maxIterations the smaller wins.", 1, func(d *draft) *int { return &d.maxIterations })),
		objectField("safety", "Limits of one run.", safetyTable(), func(d *draft) *Safety { return &d.Safety }),
		objectField("budget", "What a run and all its children may spend on models.", budgetTable(), func(d *draft) *Budget { return &d.Budget }),
		{name: "concurrency", doc: "What a trigger does while a run is on; skip if it is missing.",
			schema: map[string]any{"anyOf": []any{map[string]any{"enum": overlaps},
				map[string]any{"type": "object", "properties": map[string]any{"overlap": map[string]any{"enum": overlaps}}, "additionalProperties": false}}},
			decode: (*decoder).concurrency,
			encode: textField("", "", func(d *draft) *Overlap { return &d.Concurrency }).encode},
		textField("workspace", "Folder the run works in, absolute or relative to the file's folder.", func(d *draft) *string { return &d.Workspace }),
		listField("tags", "Words to find it by.", func(d *draft) *[]string { return &d.Tags }),
		flagField("isPublic", "Whether others may see it.", func(d *draft) *bool { return &d.IsPublic }),
		textField("createdBy", "Who made it.", func(d *draft) *string { return &d.CreatedBy }),
	}
	for _, name := range extras {
		definitionFields = append(definitionFields, extraField(name))
	}
	for _, name := range runFacts {
		definitionFields = append(definitionFields, field[draft]{name: name, quiet: true, doc: "Of an exported entity; not kept.", schema: true,
			decode: func(*decoder, *node, *draft) {}})
	}
}

const variablePattern = "^[A-Za-z_][A-Za-z0-9_]{0,63}$"

var schemaID = map[string]any{"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]{0,63}$"}

// idField reads a slug. A wrong one is kept for the rest of the decoding, so that it is
// one problem and not also a missing name.
func idField(name, doc string, at func(*draft) *ID) field[draft] {
	f := textField(name, doc, at)
	f.schema = schemaID
	f.decode = func(d *decoder, n *node, dst *draft) {
		text, ok := d.mustText(n)
		if !ok {
			return
		}
		if id := ID(text); !id.Valid() {
			d.add(n, KindValue, fmt.Sprintf("%q would do", Slug(text)), "%q is no id: lower-case letters, digits, - and _, at most %d", text, maxName)
		}
		*at(dst) = ID(text)
	}
	return f
}

// extraField keeps a key as written, so that a file which is written back loses
// nothing that belongs to others.
func extraField(name string) field[draft] {
	return field[draft]{name: name, quiet: true, doc: "Kept, not used.", schema: true,
		decode: func(d *decoder, n *node, dst *draft) {
			if dst.Extra == nil {
				dst.Extra = make(map[string]json.RawMessage)
			}
			dst.Extra[name] = n.raw()
		},
		encode: func(src *draft) json.RawMessage { return src.Extra[name] }}
}

// inputOnly makes a field that is merged into another one and stored there.
func inputOnly[T any](f field[T]) field[T] {
	f.encode = nil
	return f
}

// definition reads the definition at n and checks what concerns all of it.
func (d *decoder) definition(n *node) Definition {
	var out draft
	d.recipe = n.member("pipeline") != nil
	if d.recipe {
		d.outputs = recipeOutputs(n.member("pipeline"))
	}
	d.seen = definitionFields.read(d, n, &out)
	if d.seen == nil {
		return out.Definition
	}
	d.name(n, &out)
	if _, ok := d.seen["steps"]; !ok {
		d.add(n, KindMissing, "", "steps are missing")
	}
	if out.Loop.Type == "" {
		out.Loop.Type = LoopOnce
	}
	out.Safety.TimeoutMs = smaller(out.Safety.TimeoutMs, out.timeoutMs)
	out.Safety.MaxIterations = smaller(out.Safety.MaxIterations, out.maxIterations)
	d.bound(n, &out)
	if _, ok := out.Extra["ragTemplate"]; ok && out.Recipe == "" {
		out.Recipe = string(out.ID) // the file is its own recipe
	}
	return out.Definition
}

// name settles id and name, each of which can give the other.
func (d *decoder) name(n *node, out *draft) {
	if out.uniqueID != "" {
		out.ID = out.uniqueID
	}
	if _, given := d.seen["name"]; given || out.Name != "" {
		if out.ID == "" && out.Name != "" {
			out.ID = Slug(out.Name)
		}
		return
	}
	switch {
	case out.ID != "":
		out.Name = string(out.ID)
	case d.label != "":
		out.Name, out.ID = d.label, Slug(d.label)
	default:
		d.add(n, KindMissing, "", "name is missing")
	}
}

// smaller returns the smaller limit; 0 is none.
func smaller[N int | int64](a, b N) N {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// bound refuses a loop that nothing ends.
func (d *decoder) bound(n *node, out *draft) {
	switch out.Loop.Type {
	case LoopUntil, LoopWhile, LoopContinuous, LoopEvent:
	default:
		return
	}
	if out.Safety.MaxIterations > 0 || out.Safety.TimeoutMs > 0 {
		return
	}
	// A limit that is there but wrong has its own problem.
	for _, at := range []*node{n.member("timeoutMs"), n.member("maxIterations"), n.member("safety")} {
		if at != nil && (at.kind != '{' || at.member("timeoutMs") != nil || at.member("maxIterations") != nil) {
			return
		}
	}
	at := n
	if loop := n.member("loop"); loop != nil {
		at = loop
	}
	d.add(at, KindBound, `add "timeoutMs", or "maxIterations" in "safety"`, "nothing ends a loop of type %q: it needs maxIterations or timeoutMs", out.Loop.Type)
}

// tools accepts the objects that recipes have in place of names.
func (d *decoder) tools(n *node, dst *draft) {
	if !d.want(n, '[', "an array of command names") {
		return
	}
	for _, item := range n.items {
		if item.kind == '{' {
			name := item.member("name")
			if name == nil {
				d.add(item, KindMissing, "", "name is missing")
				continue
			}
			item = name
		}
		if s, ok := d.mustText(item); ok {
			dst.Tools = append(dst.Tools, s)
		}
	}
}

var overlaps = []string{string(OverlapSkip), string(OverlapQueue), string(OverlapParallel), string(OverlapRestart)}

// concurrency reads the policy, alone or as the object that leaves room for more.
func (d *decoder) concurrency(n *node, dst *draft) {
	if n.kind == '{' {
		overlapFields.read(d, n, &dst.Definition)
		return
	}
	if !d.want(n, '"', "a policy or {\"overlap\": policy}") {
		return
	}
	if s, ok := d.choice(n, overlaps); ok {
		dst.Concurrency = Overlap(s)
	}
}

// recipeOutputs returns the variables that a pipeline sets, wherever.
func recipeOutputs(n *node) []output {
	var outputs []output
	for _, item := range n.items {
		outputs = append(outputs, recipeOutputs(item)...)
	}
	for _, m := range n.members {
		if m.name == "outputTo" && m.value.kind == '"' {
			outputs = append(outputs, output{m.value.text, m.value})
		} else {
			outputs = append(outputs, recipeOutputs(m.value)...)
		}
	}
	return outputs
}

// nested reads the definition in a field of step; path is the step's.
func (d *decoder) nested(n *node, step *Step, path string) json.RawMessage {
	if !d.want(n, '{', "a definition or {\"$ref\": name}") {
		return nil
	}
	if ref := n.member("$ref"); ref != nil {
		for _, m := range n.members {
			if m.name != "$ref" {
				d.unknownKey(m, []string{"$ref"})
			}
		}
		if s, ok := d.mustText(ref); ok && !ID(s).Valid() {
			d.add(ref, KindValue, fmt.Sprintf("%q would do", Slug(s)), "%q is no id of a sentinel", s)
		}
		return n.raw()
	}
	if d.depth+1 >= maxDefinitions {
		d.add(n, KindLimit, "", "definitions stand within each other more than %d deep", maxDefinitions)
		return nil
	}
	inner := &decoder{session: d.session, depth: d.depth + 1, ids: make(map[string]int), label: labelOf(step, path)}
	def := inner.definition(n)
	return compact(&def)
}

// labelOf names a definition after the step it stands in.
func labelOf(step *Step, path string) string {
	switch {
	case step.Name != "":
		return step.Name
	case step.ID != "":
		return step.ID
	}
	digits := strings.FieldsFunc(path, func(r rune) bool { return r < '0' || r > '9' })
	return "step-" + strings.Join(digits, "-")
}
