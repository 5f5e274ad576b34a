package schemacost

import "fmt"

// Limits of one check of a step's fields against the schema of its type. The
// schema library evaluates a subschema once for each way that leads to it, and
// needs 600 bytes and 4 us for each evaluation that fails: 1.5 KB of references
// that double at each level take hours for one value, an array of 100,000 numbers
// against 490 alternatives takes 17 GB. The time of a pattern is proportional to its
// instructions times the length of the text.
const (
	maxEvaluations = 500_000
	maxMatching    = 1_000_000_000 // instructions of all patterns, times bytes of text
	maxEvaluating  = 1_000         // depth of nested evaluations
)

// TooCostly returns why validating the fields of a step against a schema of this size would
// exceed the limits, or "".
func (s Size) TooCostly(schema, fields map[string]any) string {
	values, length := measure(fields)
	if int64(length)*int64(s.program) > maxMatching {
		return fmt.Sprintf("%d bytes of text are too many for the patterns of the schema, the limit is %d", length, maxMatching/s.program)
	}
	if s.Cheap(values) {
		return ""
	}
	e := evaluation{root: schema, targets: map[string]any{}, left: maxEvaluations}
	if e.evaluate(schema, fields, 0); e.left > 0 {
		return ""
	}
	return fmt.Sprintf("checking %d values against the schema takes more than %d evaluations; the plugin's schema has too many alternatives, or refers to itself in several of them", values, maxEvaluations)
}

// Cheap reports whether a check of that many values is always within the limit:
// without references, a value is evaluated at most once against a part of the schema.
func (s Size) Cheap(values int) bool {
	return s.references == 0 && int64(values)*int64(s.Parts) < maxEvaluations
}

// measure returns the number of values in v, and the bytes of its strings.
func measure(v any) (values, length int) {
	values = 1
	add := func(inner any) {
		n, l := measure(inner)
		values, length = values+n, length+l
	}
	switch v := v.(type) {
	case string:
		length = len(v)
	case []any:
		for _, item := range v {
			add(item)
		}
	case map[string]any:
		for name, member := range v {
			length += len(name)
			add(member)
		}
	}
	return values, length
}

// evaluation counts the evaluations of the schema library. It counts every
// alternative, also those that the library skips.
type evaluation struct {
	root    any
	targets map[string]any // by reference
	left    int
}

// target returns the schema that a reference refers to.
func (e *evaluation) target(ref string) any {
	target, ok := e.targets[ref]
	if !ok {
		target, _ = Pointer(e.root, ref) // a schema with an unresolved reference has been refused
		e.targets[ref] = target
	}
	return target
}

// evaluate counts one schema for one value.
func (e *evaluation) evaluate(schema, v any, depth int) {
	e.left--
	if depth++; depth > maxEvaluating {
		e.left = 0
	}
	s, ok := schema.(map[string]any)
	if !ok || e.left <= 0 {
		return
	}
	if ref, ok := s["$ref"].(string); ok {
		e.evaluate(e.target(ref), v, depth)
	}
	object, _ := v.(map[string]any)
	array, _ := v.([]any)
	for keyword, inner := range s {
		switch keyword {
		case "allOf", "anyOf", "oneOf", "not", "if", "then", "else":
			for sub := range subschemas(keyword, inner) {
				e.evaluate(sub, v, depth)
			}
		case "properties", "dependentSchemas", "dependencies":
			members, _ := inner.(map[string]any)
			for name, sub := range members {
				value, ok := object[name]
				switch {
				case !ok:
				case keyword == "properties":
					e.evaluate(sub, value, depth)
				default:
					e.evaluate(sub, v, depth)
				}
			}
		case "patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames":
			for _, value := range object {
				for sub := range subschemas(keyword, inner) {
					e.evaluate(sub, value, depth)
				}
			}
		case "items", "prefixItems", "additionalItems", "unevaluatedItems", "contains":
			for _, item := range array {
				for sub := range subschemas(keyword, inner) {
					e.evaluate(sub, item, depth)
				}
			}
		}
	}
}
