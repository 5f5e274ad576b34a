package sentinels

import (
	"maps"
	"slices"
	"strconv"

	"github.com/sentinel-runtime/sentinel/sentinels/internal/schemacost"
)

// maxAlternatives is the depth to which nested alternatives of a schema are visited:
// each level can multiply the work.
const maxAlternatives = 3

// normalizeEnums changes strings in n to the case that the enums of the field's schema
// have: "Error" where "error" is one of the values.
func (f *fieldSet) normalizeEnums(field string, n *node) {
	properties, _ := f.raw["properties"].(map[string]any)
	switch f.marks[field] {
	case markSteps, markBranches, markDefinition:
	default:
		normalizeEnums(f.raw, properties[field], n, 0)
	}
}

// normalizeEnums visits every value of the instance, which is finite, and for each value
// the alternatives to a small depth.
func normalizeEnums(root, schema any, n *node, depth int) {
	s, ok := schemacost.Deref(root, schema)
	if !ok {
		return
	}
	if enum, ok := s["enum"].([]any); ok && n.Kind == '"' && !slices.Contains(enum, any(n.Text)) {
		if choice, ok := equalFold(n.Text, texts(enum)); ok {
			n.Text = choice
		}
	}
	for _, k := range []string{"anyOf", "oneOf", "allOf"} {
		list, _ := s[k].([]any)
		for _, inner := range list {
			if depth < maxAlternatives {
				normalizeEnums(root, inner, n, depth+1)
			}
		}
	}
	for _, item := range n.Items {
		normalizeEnums(root, s["items"], item, 0)
	}
	properties, _ := s["properties"].(map[string]any)
	for _, m := range n.Members {
		if property, ok := properties[m.Name]; ok {
			normalizeEnums(root, property, m.Value, 0)
		}
	}
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
