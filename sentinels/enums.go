package sentinels

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels/internal/schemacost"
)

// maxAlternatives is the depth to which nested alternatives of a schema are visited:
// each level can multiply the work.
const maxAlternatives = 3

// normalize changes strings in n to the case that the enums of the field's schema have:
// "Error" where "error" is one of the values. It changes durations such as "5m" in the
// place of milliseconds to their number.
func (f *fieldSet) normalize(field string, n *node) {
	properties, _ := f.raw["properties"].(map[string]any)
	switch f.marks[field] {
	case markSteps, markBranches, markDefinition:
	case markParams: // whose schemas are those of commands
		for _, m := range n.Members {
			if strings.HasSuffix(m.Name, durationSuffix) {
				asDuration(m.Value)
			}
		}
	default:
		normalize(f.raw, properties[field], field, n, 0)
	}
}

// normalize visits every value of the instance, which is finite, and for each value
// the alternatives to a small depth.
func normalize(root, schema any, name string, n *node, depth int) {
	s, ok := schemacost.Deref(root, schema)
	if !ok {
		return
	}
	if enum, ok := s["enum"].([]any); ok && n.Kind == '"' && !slices.Contains(enum, any(n.Text)) {
		if choice, ok := equalFold(n.Text, texts(enum)); ok {
			n.Text = choice
		}
	}
	if strings.HasSuffix(name, durationSuffix) && (s["type"] == "integer" || s["type"] == "number") {
		asDuration(n)
	}
	for _, k := range []string{"anyOf", "oneOf", "allOf"} {
		list, _ := s[k].([]any)
		for _, inner := range list {
			if depth < maxAlternatives {
				normalize(root, inner, name, n, depth+1)
			}
		}
	}
	for _, item := range n.Items {
		normalize(root, s["items"], "", item, 0)
	}
	properties, _ := s["properties"].(map[string]any)
	for _, m := range n.Members {
		if property, ok := properties[m.Name]; ok {
			normalize(root, property, m.Name, m.Value, 0)
		}
	}
}

// durations returns the resolved value of a field with each duration such as "5m" in the place of milliseconds
// as their number: of a value that comes from a reference, the decoder has seen the reference only.
func (f *fieldSet) durations(field string, resolved json.RawMessage) json.RawMessage {
	if !f.timed[field] {
		return resolved
	}
	src, _ := parse("", resolved)
	if src.Root == nil {
		return resolved
	}
	f.normalize(field, src.Root)
	return src.Root.Canonical()
}

// mayHaveDurations reports whether a value of a schema may have milliseconds. It does not follow references within
// the schema, which may have some.
func mayHaveDurations(name string, schema any) bool {
	if strings.HasSuffix(name, durationSuffix) || name == "$ref" {
		return true
	}
	switch s := schema.(type) {
	case map[string]any:
		for key, inner := range s {
			if mayHaveDurations(key, inner) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(s, func(inner any) bool { return mayHaveDurations("", inner) })
	}
	return false
}

// propertyNames returns the names of the properties of the schema at an instance
// location.
func propertyNames(root any, location []string) []string {
	schema := root
	for _, token := range location {
		s, ok := schemacost.Deref(root, schema)
		if !ok {
			return nil
		}
		if _, err := strconv.Atoi(token); err == nil && s["items"] != nil {
			schema = s["items"]
			continue
		}
		properties, _ := s["properties"].(map[string]any)
		schema = properties[token]
	}
	s, _ := schemacost.Deref(root, schema)
	properties, _ := s["properties"].(map[string]any)
	return slices.Sorted(maps.Keys(properties))
}
