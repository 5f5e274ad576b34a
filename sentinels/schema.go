package sentinels

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

func refSchema(name string) map[string]any { return map[string]any{"$ref": "#/$defs/" + name} }

func stepsSchema() map[string]any { return refSchema("steps") }

// referenceSchema accepts a string with a reference.
var referenceSchema = refSchema("ref")

// SchemaURL is the address of the schema of definitions for "$schema", by which editors find it.
const SchemaURL = "https://raw.githubusercontent.com/sentinel-runtime/sentinel/main/sentinels/schema.json"

// Schema returns the JSON Schema (draft 2020-12) of a definition file, with the
// fields of the given step types and the options of the given kinds of triggers merged in,
// so that an editor can complete them. The keyword x-outputs has the shapes of outputs, of
// step types and of the given commands, by their schemas. Decode is stricter: it also
// checks references, limits and expressions.
func Schema(types *TypeSet, triggers []TriggerKind, commands map[string]json.RawMessage) json.RawMessage {
	root := format.definition.objectSchema()
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"], root["title"] = SchemaURL, "Sentinel definition"
	defs := map[string]any{
		"ref":     map[string]any{"type": "string", "pattern": `\$[A-Za-z_]`},
		"steps":   map[string]any{"type": "array", "items": refSchema("step")},
		"loop":    format.loop.objectSchema(),
		"input":   format.input.objectSchema(),
		"onError": format.onError.objectSchema(),
		"trigger": triggerSchema(triggers),
	}
	defs["step"] = stepSchema(types, defs)
	root["$defs"] = defs
	if outputs := outputShapes(types, commands); len(outputs) > 0 {
		root["x-outputs"] = outputs
	}
	return append(appendLines(nil, root, 3), '\n')
}

// outputShapes returns the shapes of outputs by step type and by command.
func outputShapes(types *TypeSet, commands map[string]json.RawMessage) map[string]any {
	outputs := map[string]any{}
	if types != nil {
		for i := range types.specs {
			if text := Shape(types.specs[i].Output, 2); text != "" {
				outputs[string(types.specs[i].Type)] = text
			}
		}
	}
	// Several commands return the same. Those of one family are in one entry.
	first := map[string]string{} // by shape
	same := map[string]string{}  // the entry of a family, by family and shape
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		text := Shape(commands[name], 1)
		if text == "" {
			continue
		}
		slash := strings.LastIndexByte(name, '/') + 1
		family := name[:slash] + text
		entry, again := same[family]
		if again {
			delete(outputs, entry)
			entry += ", " + name[slash:]
		} else {
			entry = name
		}
		same[family] = entry
		outputs[entry] = text
		if before, known := first[text]; known && before[:strings.LastIndexByte(before, '/')+1] != name[:slash] {
			outputs[entry] = "that of " + before
		} else if !known {
			first[text] = name
		}
	}
	return outputs
}

// appendLines encodes a value. Members and items down to the given depth are on lines of
// their own, so that changes can be read, and all others are compact, because the readers
// are programs and models.
func appendLines(dst []byte, v any, depth int) []byte {
	switch v := v.(type) {
	case map[string]any:
		if depth > 0 && len(v) > 0 {
			open := byte('{')
			for _, name := range slices.Sorted(maps.Keys(v)) {
				dst = append(dst, open, '\n')
				dst = append(appendLines(dst, name, 0), ':')
				dst, open = appendLines(dst, v[name], depth-1), ','
			}
			return append(dst, "\n}"...)
		}
	case []any:
		if depth > 0 && len(v) > 0 {
			open := byte('[')
			for _, item := range v {
				dst = append(dst, open, '\n')
				dst, open = appendLines(dst, item, depth-1), ','
			}
			return append(dst, "\n]"...)
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // "<" as one character
	if err := e.Encode(v); err != nil {
		panic("sentinels: encode schema: " + err.Error()) // cannot happen: it consists of maps and strings
	}
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}

// anyRequired is the schema of an object with at least one of the keys.
func anyRequired(names ...string) map[string]any {
	var alternatives []any
	for _, name := range names {
		alternatives = append(alternatives, map[string]any{"required": []string{name}})
	}
	if len(names) == 1 {
		return map[string]any{"required": names} // the size of the schema is limited
	}
	return map[string]any{"anyOf": alternatives}
}

// triggerSchema suggests types of triggers but accepts all, because the host defines
// which ones exist.
func triggerSchema(kinds []TriggerKind) map[string]any {
	s := format.trigger.objectSchema()
	delete(s, "additionalProperties") // each kind has options of its own
	kind := s["properties"].(map[string]any)["type"].(map[string]any)
	if len(kinds) > 0 {
		kind["examples"] = triggerNames(kinds)
		var fires []string
		for _, k := range kinds {
			fires = append(fires, k.Name+": "+k.Fires+".")
		}
		kind["description"] = "When it fires. " + strings.Join(fires, " ")
		s["unevaluatedProperties"] = false
		for _, o := range kinds[0].Options {
			if !slices.ContainsFunc(kinds, func(k TriggerKind) bool { return !k.Has(o) }) { // every kind has it
				s["properties"].(map[string]any)[o.Name] = o.schema()
			}
		}
		var rules []any
		for _, k := range kinds {
			rules = append(rules, map[string]any{
				"if":   map[string]any{"properties": map[string]any{"type": map[string]any{"enum": append([]string{k.Name}, k.Aliases...)}}},
				"then": k.schemaIn(s["properties"].(map[string]any)),
			})
		}
		s["allOf"] = rules
	}
	return s
}

// Schema returns the JSON Schema of the options of the kind, and of the key that it needs.
func (k TriggerKind) Schema() json.RawMessage {
	s := k.schemaIn(nil)
	s["type"] = "object"
	if k.Field != "" {
		key := string(k.Field)
		s["properties"].(map[string]any)[key] = format.trigger.objectSchema()["properties"].(map[string]any)[key]
	}
	return append(appendLines(nil, s, 2), '\n')
}

// schemaIn returns the schema of the kind's own keys. common has those of all kinds.
func (k TriggerKind) schemaIn(common map[string]any) map[string]any {
	properties, s := map[string]any{}, map[string]any{"description": "$event: " + k.Event + "."}
	var required []string
	if k.Field != "" {
		required = append(required, string(k.Field))
	}
	for _, o := range k.Options {
		own := o.schema()
		if before, ok := common[o.Name].(map[string]any); !ok {
			properties[o.Name] = own
		} else if before["description"] != own["description"] { // the format's own key, with another meaning here
			properties[o.Name] = map[string]any{"description": own["description"]}
		}
		if o.Required {
			required = append(required, o.Name)
		}
	}
	s["properties"] = properties
	if k.Field == TriggerCron { // its other names are accepted too
		required = nil
		s["anyOf"] = anyRequired("cronExpression", "cron", "schedule")["anyOf"]
	}
	if required != nil {
		s["required"] = required
	}
	return s
}

// stepSchema returns the schema of a step: the common fields and, for each type, a
// condition under which the type's own fields are allowed.
func stepSchema(types *TypeSet, defs map[string]any) map[string]any {
	s := format.step.objectSchema()
	delete(s, "additionalProperties")
	if types == nil {
		return s
	}
	s["properties"].(map[string]any)["type"] = map[string]any{"enum": types.names(), "description": "The step type. Default: inferred from the other fields."}
	s["unevaluatedProperties"] = false
	common := s["properties"].(map[string]any)
	var replaced []string // common fields that a type defines itself, in another form
	for i := range format.step {
		name := format.step[i].name
		if format.step[i].replaceable && slices.ContainsFunc(types.specs, func(spec TypeSpec) bool { return spec.compiled.has(name) }) {
			replaced = append(replaced, name)
			defs[name] = common[name]
			common[name] = map[string]any{"description": format.step[i].doc}
		}
	}
	var rules []any
	earlier := "" // definition of the fields from which earlier types are inferred
	for i := range types.specs {
		spec := &types.specs[i]
		own := typeSchema(spec, defs)
		for _, name := range replaced {
			if !spec.compiled.has(name) {
				own["properties"].(map[string]any)[name] = refSchema(name)
			}
		}
		infer := inferenceFields(spec)
		when := []any{map[string]any{"properties": map[string]any{"type": map[string]any{"const": spec.Type}}, "required": []string{"type"}}}
		if len(infer) > 0 {
			inferred := []any{map[string]any{"not": map[string]any{"required": []string{"type"}}}, anyRequired(infer...)}
			before := []any{anyRequired(infer...)}
			if earlier != "" {
				ref := map[string]any{"$ref": earlier}
				inferred = append(inferred, map[string]any{"not": ref})
				before = append(before, ref)
			}
			when = append(when, map[string]any{"allOf": inferred})
			// Each refers to the one before: all fields in each would be the largest part.
			name := "infer_" + string(spec.Type)
			defs[name], earlier = map[string]any{"anyOf": before}, "#/$defs/"+name
		}
		rules = append(rules, map[string]any{"if": map[string]any{"anyOf": when}, "then": own})
	}
	s["allOf"] = rules
	return s
}

// inferenceFields returns the fields from which a type is inferred, and their aliases.
func inferenceFields(spec *TypeSpec) []string {
	names := slices.Clone(spec.Infer)
	for _, alias := range slices.Sorted(maps.Keys(spec.Aliases)) {
		if slices.Contains(spec.Infer, spec.Aliases[alias]) && !slices.Contains(names, alias) {
			names = append(names, alias)
		}
	}
	return names
}

// typeSchema returns the schema of a type's own fields as part of the file's.
func typeSchema(spec *TypeSpec, defs map[string]any) map[string]any {
	f := spec.compiled
	m := merger{prefix: string(spec.Type) + ".", defs: defs}
	inner, _ := f.raw["$defs"].(map[string]any)
	for name, def := range inner {
		defs[m.prefix+name] = m.merge(def)
	}
	out := make(map[string]any)
	for k, v := range f.raw {
		switch k {
		case "$schema", "$id", "$defs", "title", "description", "type", "properties", "required", "additionalProperties":
		default:
			out[k] = m.merge(v)
		}
	}
	if f.open {
		out["additionalProperties"] = m.merge(f.raw["additionalProperties"])
	}
	if spec.Summary != "" {
		out["description"] = spec.Summary
	}
	given, _ := f.raw["properties"].(map[string]any)
	properties := make(map[string]any, len(given))
	for name, property := range given {
		properties[name] = withDuration(name, m.field(f.marks[name], property))
	}
	for alias, name := range spec.Aliases {
		other := documented(properties[name], "").(map[string]any)
		other["description"] = "Another name of " + name + "."
		delete(other, "examples")
		delete(other, "default")
		properties[alias] = other
	}
	out["properties"] = properties
	var required []any
	names, _ := f.raw["required"].([]any)
	for _, name := range texts(names) {
		spellings := []string{name}
		for _, alias := range slices.Sorted(maps.Keys(spec.Aliases)) {
			if spec.Aliases[alias] == name {
				spellings = append(spellings, alias)
			}
		}
		required = append(required, anyRequired(spellings...))
	}
	if len(required) > 0 {
		rest, _ := out["allOf"].([]any)
		out["allOf"] = append(required, rest...)
	}
	return out
}

// A merger converts parts of a type's schema to parts of the file's.
type merger struct {
	prefix string
	defs   map[string]any // of the file
}

// field returns the schema of a type's field. For nested steps and definitions that is
// a reference to the file's own schema, not the one of the type.
func (m merger) field(mark string, property any) any {
	var s map[string]any
	switch mark {
	case markSteps:
		s = refSchema("steps")
	case markBranches:
		s = map[string]any{"type": "array", "items": refSchema("steps")}
		if p, _ := property.(map[string]any); p != nil {
			if types, ok := p["type"].([]any); ok { // by name too
				s["type"], s["propertyNames"], s["additionalProperties"] = types, map[string]any{"pattern": stepIDPattern}, refSchema("steps")
			}
		}
	case markDefinition:
		m.defs["definition"] = map[string]any{"anyOf": []any{map[string]any{"type": "object", "required": []string{"$ref"},
			"properties": map[string]any{"$ref": refIDSchema}, "additionalProperties": false}, map[string]any{"$ref": "#"}, referenceSchema}}
		s = refSchema("definition")
	default:
		return m.merge(property)
	}
	if p, ok := property.(map[string]any); ok && p["description"] != nil {
		s["description"] = p["description"]
	}
	return s
}

// merge copies a schema without marks. Local references get the type's prefix, and
// values that are not strings may also be a reference.
func (m merger) merge(v any) any {
	s, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := make(map[string]any, len(s))
	for k, inner := range s {
		switch k {
		case keyword:
		case "$ref":
			ref, _ := inner.(string)
			name, local := strings.CutPrefix(ref, "#/$defs/")
			if local {
				out[k] = "#/$defs/" + m.prefix + name
			}
		case "properties", "patternProperties", "$defs":
			properties, _ := inner.(map[string]any)
			copied := make(map[string]any, len(properties))
			for name, property := range properties {
				copied[name] = withDuration(name, m.merge(property))
			}
			out[k] = copied
		case "anyOf", "oneOf", "allOf", "prefixItems":
			list, _ := inner.([]any)
			copied := make([]any, len(list))
			for i := range list {
				copied[i] = m.merge(list[i])
			}
			out[k] = copied
		case "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames":
			out[k] = m.merge(inner)
		default:
			out[k] = inner
		}
	}
	if !refusesReference(out) {
		return out
	}
	notes := map[string]any{}
	for _, k := range []string{"description", "default", "examples"} {
		if value, ok := out[k]; ok {
			notes[k] = value
			delete(out, k)
		}
	}
	either := map[string]any{"anyOf": []any{out, referenceSchema}}
	if name := common(out); name != "" { // many fields have it, and the size of the schema is limited
		m.defs[name], either = either, refSchema(name)
	}
	maps.Copy(either, notes)
	return either
}

// withDuration is orDuration for the merged schema of a property in milliseconds, and
// returns that of any other property as it is.
func withDuration(name string, schema any) any {
	if s, ok := schema.(map[string]any); ok && strings.HasSuffix(name, durationSuffix) {
		return orDuration(s)
	}
	return schema
}

// common returns the name of the definition of a schema that many fields have, "" for any
// other schema.
func common(s map[string]any) string {
	kind, _ := s["type"].(string)
	items, _ := s["items"].(map[string]any)
	switch {
	case len(s) == 1:
		return kind
	case len(s) == 2 && kind == "integer" && fmt.Sprint(s["minimum"]) == "1":
		return "positive"
	case len(s) == 2 && kind == "array" && len(items) == 1 && items["type"] == "string":
		return "strings"
	}
	return ""
}

// refusesReference reports whether a schema does not accept a string such as "$name",
// because of its type or its rules for strings.
func refusesReference(s map[string]any) bool {
	switch t := s["type"].(type) {
	case string:
		return t != "string" || s["enum"] != nil || s["format"] != nil || s["pattern"] != nil
	case []any:
		return !slices.Contains(t, any("string"))
	}
	return false
}
