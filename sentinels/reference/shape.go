package reference

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sentinel-runtime/sentinel/sentinels/internal/schemacost"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
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
	return NewShapes(root).Of(root), nil
}

// Shapes creates the shapes of the parts of one schema. A reference has one shape,
// created before that of its target, so that schemas may be recursive.
type Shapes struct {
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

// NewShapes returns a Shapes for a schema as package json decodes it into an any, in
// which the references of its parts are resolved.
func NewShapes(root any) *Shapes {
	return &Shapes{root: root, refs: make(map[string]*Shape), left: maxVisits}
}

// Of returns the shape of a part of the schema, nil if it requires no strings, so that resolving
// can skip it.
func (m *Shapes) Of(schema any) *Shape {
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
			if found := m.Of(target); found != nil {
				*shape = *found
			}
		}
		return shape
	}
	out := &Shape{text: m.wantsText(s, 0)}
	if properties, ok := s["properties"].(map[string]any); ok {
		for name, property := range properties {
			if inner := m.Of(property); inner != nil {
				if out.properties == nil {
					out.properties = make(map[string]*Shape)
				}
				out.properties[name] = inner
			}
		}
	}
	out.items = m.Of(s["items"])
	out.rest = m.Of(s["additionalProperties"])
	if !out.text && out.properties == nil && out.items == nil && out.rest == nil {
		return nil
	}
	return out
}

// wantsText reports whether a schema accepts only strings.
func (m *Shapes) wantsText(s map[string]any, depth int) bool {
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
				inner, ok := schemacost.Deref(m.root, v)
				return !ok || !m.wantsText(inner, depth+1)
			})
		}
	}
	if enum, ok := s["enum"].([]any); ok {
		return len(enum) > 0 && !slices.ContainsFunc(enum, func(v any) bool { _, ok := v.(string); return !ok })
	}
	return false
}

// property and item return the shape of a member and of an item, nil for a nil shape.
func (s *Shape) property(name []byte) *Shape {
	if s == nil {
		return nil
	}
	if inner, ok := s.properties[strictjson.Unquote(name)]; ok {
		return inner
	}
	return s.rest
}

func (s *Shape) item() *Shape {
	if s == nil {
		return nil
	}
	return s.items
}
