package sentinels

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/sentinel-runtime/sentinel/sentinels/internal/schemacost"
)

// A Shape is the part of a JSON Schema that [Resolve] uses: which values must be
// strings. A nil Shape requires no strings. Shapes are immutable.
type Shape struct {
	text       bool
	properties map[string]*Shape
	items      *Shape
	rest       *Shape // of additional properties
}

// NewShape reads a JSON Schema. It follows properties, items, additional properties
// and references within the schema. A value must be a string if all alternatives
// require it.
func NewShape(schema json.RawMessage) (*Shape, error) {
	var root any
	if err := json.Unmarshal(schema, &root); err != nil {
		return nil, fmt.Errorf("shape: %w", err)
	}
	return newShape(root, root), nil
}

// newShape reads a schema whose references are resolved in root.
func newShape(root, schema any) *Shape { return newShapes(root).of(schema) }

// shapes creates the shapes of one schema. A reference has one shape, created before
// that of its target, so that schemas may be recursive.
type shapes struct {
	root any
	refs map[string]*Shape
	left int // number of alternatives that may still be visited
}

// maxAlternatives is the depth to which nested alternatives are visited, maxVisits the
// number of visits for one schema: each level can multiply the work.
const (
	maxAlternatives = 3
	maxVisits       = 10_000
)

func newShapes(root any) *shapes {
	return &shapes{root: root, refs: make(map[string]*Shape), left: maxVisits}
}

// of returns the shape of a schema, nil if it requires no strings, so that resolving
// can skip it.
func (m *shapes) of(schema any) *Shape {
	s, ok := schema.(map[string]any)
	if !ok {
		return nil
	}
	if ref, ok := s["$ref"].(string); ok {
		if known, ok := m.refs[ref]; ok {
			return known
		}
		shape := new(Shape)
		m.refs[ref] = shape
		if target, ok := schemacost.Pointer(m.root, ref); ok {
			if found := m.of(target); found != nil {
				*shape = *found
			}
		}
		return shape
	}
	out := &Shape{text: m.wantsText(s, 0)}
	if properties, ok := s["properties"].(map[string]any); ok {
		for name, property := range properties {
			if inner := m.of(property); inner != nil {
				if out.properties == nil {
					out.properties = make(map[string]*Shape)
				}
				out.properties[name] = inner
			}
		}
	}
	out.items = m.of(s["items"])
	out.rest = m.of(s["additionalProperties"])
	if !out.text && out.properties == nil && out.items == nil && out.rest == nil {
		return nil
	}
	return out
}

// wantsText reports whether a schema accepts only strings.
func (m *shapes) wantsText(s map[string]any, depth int) bool {
	if m.left--; m.left < 0 {
		return false
	}
	switch t := s["type"].(type) {
	case string:
		return t == "string"
	case []any:
		return slices.Contains(t, any("string")) && !slices.ContainsFunc(t, func(v any) bool { return v != "string" && v != "null" })
	}
	for _, k := range []string{"anyOf", "oneOf"} {
		if list, ok := s[k].([]any); ok {
			return len(list) > 0 && depth < maxAlternatives && !slices.ContainsFunc(list, func(v any) bool {
				inner, ok := deref(m.root, v)
				return !ok || !m.wantsText(inner, depth+1)
			})
		}
	}
	if enum, ok := s["enum"].([]any); ok {
		return len(enum) > 0 && len(texts(enum)) == len(enum)
	}
	return false
}

// deref follows references within the schema.
func deref(root, schema any) (map[string]any, bool) {
	for range 8 { // longer chains are treated as cycles
		s, ok := schema.(map[string]any)
		if !ok {
			return nil, false
		}
		ref, ok := s["$ref"].(string)
		if !ok {
			return s, true
		}
		if schema, ok = schemacost.Pointer(root, ref); !ok {
			return nil, false
		}
	}
	return nil, false
}

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
	s, ok := deref(root, schema)
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
		s, ok := deref(root, schema)
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
	s, _ := deref(root, schema)
	properties, _ := s["properties"].(map[string]any)
	return slices.Sorted(maps.Keys(properties))
}
