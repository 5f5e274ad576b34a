package sentinels

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// A fileDefinition is a definition with the keys that a file may have and the
// stored form has not: they are merged into other fields.
type fileDefinition struct {
	Definition
	uniqueID      ID
	timeoutMs     int64
	maxIterations int
}

// extraKeys are keys of recipes and editors. A run does not use them; they are kept
// as written, so that writing a file does not lose them.
var extraKeys = []string{"$schema", "displayName", "ragTemplate", "strategy", "layout", "locked"}

// statisticKeys are the run statistics of an exported entity. They are accepted and
// dropped, because the store computes them.
var statisticKeys = []string{"lastRunAt", "runCount", "averageDurationMs"}

var (
	definitionFields table[fileDefinition]
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

// init fills the table. It refers to functions that use it again, for nested
// definitions, which an initializer in the declaration cannot do.
func init() {
	definitionFields = table[fileDefinition]{
		idField("id", "Slug of the sentinel; derived from the name if it is missing.", func(d *fileDefinition) *ID { return &d.ID }),
		{name: "uniqueId", hidden: true, doc: "The id in an exported entity or a recipe; it has precedence over id.", schema: schemaID,
			decode: idField("", "", func(d *fileDefinition) *ID { return &d.uniqueID }).decode},
		{name: "name", doc: "The display name.", schema: map[string]any{"type": "string", "minLength": 1},
			decode: func(d *decoder, n *node, dst *fileDefinition) { dst.Name, _ = d.nonEmptyText(n) },
			encode: func(src *fileDefinition) json.RawMessage { return strictjson.AppendString(nil, src.Name) }},
		textField("description", "What it is for.", func(d *fileDefinition) *string { return &d.Description }),
		numberField("version", "The author's own number; the store counts revisions separately.", 0, func(d *fileDefinition) *int { return &d.Version }),
		textField("recipe", "Name of the context recipe built into $ragContext before each iteration.", func(d *fileDefinition) *string { return &d.Recipe }),
		listField("ragSources", "Context sources, as an alternative to recipe.", func(d *fileDefinition) *[]string { return &d.RAGSources }),
		{name: "inputs", doc: "Parameters of a run: an object that describes each, or only its type.",
			schema: map[string]any{"type": "object", "propertyNames": map[string]any{"pattern": variablePattern},
				"additionalProperties": map[string]any{"anyOf": []any{
					map[string]any{"enum": inputTypes}, map[string]any{"$ref": "#/$defs/input"}}}},
			decode: (*decoder).inputs, encode: encodeInputs},
		{name: "trigger", doc: "What starts runs: one trigger or an array of triggers.",
			schema: map[string]any{"anyOf": []any{refSchema("trigger"), map[string]any{"type": "array", "items": refSchema("trigger")}}},
			decode: (*decoder).triggers, encode: encodeTriggers},
		{name: "steps", aliases: []string{"pipeline"}, doc: "The steps, in the order of execution.", schema: stepsSchema(),
			decode: func(d *decoder, n *node, dst *fileDefinition) { dst.Steps = d.steps(n) },
			encode: func(src *fileDefinition) json.RawMessage { return encodeSteps(src.Steps) }},
		{name: "loop", doc: "How often the steps are executed. Default once.", schema: refSchema("loop"),
			decode: func(d *decoder, n *node, dst *fileDefinition) { dst.Loop = d.loop(n) },
			encode: func(src *fileDefinition) json.RawMessage { return loopFields.encode(&src.Loop) }},
		{name: "tools", doc: "Commands that are useful here; a hint, not a filter.",
			schema: map[string]any{"type": "array", "items": map[string]any{"anyOf": []any{
				map[string]any{"type": "string"}, map[string]any{"type": "object", "required": []string{"name"}}}}},
			decode: (*decoder).tools,
			encode: listField("", "", func(d *fileDefinition) *[]string { return &d.Tools }).encode},
		inputOnly(numberField("timeoutMs", "Time limit of a run; the smaller of this and safety.timeoutMs is used.", 1, func(d *fileDefinition) *int64 { return &d.timeoutMs })),
		inputOnly(numberField("maxIterations", "Limit of iterations; the smaller of this and safety.maxIterations is used.", 1, func(d *fileDefinition) *int { return &d.maxIterations })),
		objectField("safety", "Limits of one run.", safetyTable(), func(d *fileDefinition) *Safety { return &d.Safety }),
		objectField("budget", "What a run and all its children may spend on models.", budgetTable(), func(d *fileDefinition) *Budget { return &d.Budget }),
		{name: "concurrency", doc: "What a trigger does while a run is active. Default skip.",
			schema: map[string]any{"anyOf": []any{map[string]any{"enum": overlaps},
				map[string]any{"type": "object", "properties": map[string]any{"overlap": map[string]any{"enum": overlaps}}, "additionalProperties": false}}},
			decode: (*decoder).concurrency,
			encode: textField("", "", func(d *fileDefinition) *Overlap { return &d.Concurrency }).encode},
		textField("workspace", "Working folder of a run, absolute or relative to the file's folder.", func(d *fileDefinition) *string { return &d.Workspace }),
		listField("tags", "Words for searching.", func(d *fileDefinition) *[]string { return &d.Tags }),
		flagField("isPublic", "Whether other users may see it.", func(d *fileDefinition) *bool { return &d.IsPublic }),
		textField("createdBy", "The author.", func(d *fileDefinition) *string { return &d.CreatedBy }),
	}
	for _, name := range extraKeys {
		definitionFields = append(definitionFields, extraField(name))
	}
	for _, name := range statisticKeys {
		definitionFields = append(definitionFields, field[fileDefinition]{name: name, hidden: true, doc: "Statistics in an exported entity; not stored.", schema: true,
			decode: func(*decoder, *node, *fileDefinition) {}})
	}
}

const variablePattern = "^[A-Za-z_][A-Za-z0-9_]{0,63}$"

var schemaID = map[string]any{"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]{0,63}$"}

// idField reads a slug. An invalid one is kept until the end of decoding, so that it
// is not also reported as a missing name.
func idField(name, doc string, at func(*fileDefinition) *ID) field[fileDefinition] {
	f := textField(name, doc, at)
	f.schema = schemaID
	f.decode = func(d *decoder, n *node, dst *fileDefinition) {
		text, ok := d.nonEmptyText(n)
		if !ok {
			return
		}
		if id := ID(text); !id.Valid() {
			d.add(n, KindValue, fmt.Sprintf("for example %q", Slug(text)), "invalid id %q: want lower-case letters, digits, - and _, at most %d", text, maxName)
		}
		*at(dst) = ID(text)
	}
	return f
}

// extraField stores a key as written, so that writing a file back does not lose the
// data of other tools.
func extraField(name string) field[fileDefinition] {
	return field[fileDefinition]{name: name, hidden: true, doc: "Stored, but not used by runs.", schema: true,
		decode: func(d *decoder, n *node, dst *fileDefinition) {
			if dst.Extra == nil {
				dst.Extra = make(map[string]json.RawMessage)
			}
			dst.Extra[name] = n.Canonical()
		},
		encode: func(src *fileDefinition) json.RawMessage { return src.Extra[name] }}
}

// inputOnly returns f as a field that is read but not written, because its value is
// merged into another field.
func inputOnly[T any](f field[T]) field[T] {
	f.encode = nil
	return f
}

// definition reads the definition at n and checks the rules between its fields.
func (d *decoder) definition(n *node) Definition {
	var out fileDefinition
	d.recipe = n.Member("pipeline") != nil
	if d.recipe {
		d.outputs = recipeOutputs(n.Member("pipeline"))
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
	d.requireLimit(n, &out)
	if _, ok := out.Extra["ragTemplate"]; ok && out.Recipe == "" {
		out.Recipe = string(out.ID) // the file is its own recipe
	}
	return out.Definition
}

// name sets the id from the name, or the name from the id, if one is missing.
func (d *decoder) name(n *node, out *fileDefinition) {
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

// smaller returns the smaller of two limits; 0 means no limit.
func smaller[N int | int64](a, b N) N {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// requireLimit reports an unbounded loop.
func (d *decoder) requireLimit(n *node, out *fileDefinition) {
	switch out.Loop.Type {
	case LoopUntil, LoopWhile, LoopContinuous, LoopEvent:
	default:
		return
	}
	if out.Safety.MaxIterations > 0 || out.Safety.TimeoutMs > 0 {
		return
	}
	// A limit that is given but invalid has been reported already.
	for _, at := range []*node{n.Member("timeoutMs"), n.Member("maxIterations"), n.Member("safety")} {
		if at != nil && (at.Kind != '{' || at.Member("timeoutMs") != nil || at.Member("maxIterations") != nil) {
			return
		}
	}
	at := n
	if loop := n.Member("loop"); loop != nil {
		at = loop
	}
	d.add(at, KindBound, `add "timeoutMs", or "maxIterations" in "safety"`, "a loop of type %q is unbounded: set maxIterations or timeoutMs", out.Loop.Type)
}

// tools reads command names. Recipes have objects with a name instead.
func (d *decoder) tools(n *node, dst *fileDefinition) {
	if !d.expect(n, '[', "an array of command names") {
		return
	}
	for _, item := range n.Items {
		if item.Kind == '{' {
			name := item.Member("name")
			if name == nil {
				d.add(item, KindMissing, "", "name is missing")
				continue
			}
			item = name
		}
		if s, ok := d.nonEmptyText(item); ok {
			dst.Tools = append(dst.Tools, s)
		}
	}
}

var overlaps = []string{string(OverlapSkip), string(OverlapQueue), string(OverlapParallel), string(OverlapRestart)}

// concurrency reads an overlap policy: a string, or the object {"overlap": policy}.
func (d *decoder) concurrency(n *node, dst *fileDefinition) {
	if n.Kind == '{' {
		overlapFields.read(d, n, &dst.Definition)
		return
	}
	if !d.expect(n, '"', "a policy or {\"overlap\": policy}") {
		return
	}
	if s, ok := d.choice(n, overlaps); ok {
		dst.Concurrency = Overlap(s)
	}
}

// recipeOutputs returns the variables that a pipeline sets, in nested steps too.
func recipeOutputs(n *node) []output {
	var outputs []output
	for _, item := range n.Items {
		outputs = append(outputs, recipeOutputs(item)...)
	}
	for _, m := range n.Members {
		if m.Name == "outputTo" && m.Value.Kind == '"' {
			outputs = append(outputs, output{m.Value.Text, m.Value})
		} else {
			outputs = append(outputs, recipeOutputs(m.Value)...)
		}
	}
	return outputs
}

// nested reads the definition, or the reference to one, in a field of step; at is the
// step in the text.
func (d *decoder) nested(n *node, step *Step, at *node) json.RawMessage {
	if !d.expect(n, '{', "a definition or {\"$ref\": name}") {
		return nil
	}
	if ref := n.Member("$ref"); ref != nil {
		for _, m := range n.Members {
			if m.Name != "$ref" {
				d.unknownKey(m, []string{"$ref"})
			}
		}
		if s, ok := d.nonEmptyText(ref); ok && !ID(s).Valid() {
			d.add(ref, KindValue, fmt.Sprintf("for example %q", Slug(s)), "invalid sentinel id %q", s)
		}
		return n.Canonical()
	}
	if d.depth+1 >= maxDefinitions {
		d.add(n, KindLimit, "", "definitions are nested more than %d deep", maxDefinitions)
		return nil
	}
	inner := &decoder{decodeState: d.decodeState, depth: d.depth + 1, ids: make(map[string]int), label: labelOf(step, at)}
	def := inner.definition(n)
	return compact(&def)
}

// labelOf returns the name of a definition that has none: that of the step that
// contains it.
func labelOf(step *Step, at *node) string {
	switch {
	case step.Name != "":
		return step.Name
	case step.ID != "":
		return step.ID
	}
	digits := strings.FieldsFunc(at.Path(), func(r rune) bool { return r < '0' || r > '9' })
	return "step-" + strings.Join(digits, "-")
}
