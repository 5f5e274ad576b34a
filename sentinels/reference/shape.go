package reference

import (
	"bytes"
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
	secret     bool // with text: or an object {"secret": NAME}
	properties map[string]*Shape
	items      *Shape
	rest       *Shape // of additional properties
}

// NewShape reads a JSON Schema. It follows properties, items, additional properties
// and references within the schema. A value must be a string if all alternatives
// require it. An object {"secret": NAME} is not an alternative, and beside one neither is a number
// or a boolean: the values of environment variables are texts.
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
	out := &Shape{}
	out.text, out.secret = m.wantsText(s, 0)
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

// wantsText reports whether a schema accepts only strings, and whether it accepts secrets, too.
func (m *Shapes) wantsText(s map[string]any, depth int) (text, secret bool) {
	if m.left--; m.left < 0 {
		return false, false
	}
	if s["type"] != nil {
		return onlyStrings(s["type"], "null"), false
	}
	for _, k := range []string{"anyOf", "oneOf"} {
		list, ok := s[k].([]any)
		if !ok {
			continue
		}
		if depth >= maxAlternatives {
			return false, false
		}
		var values []map[string]any
		for _, v := range list {
			inner, ok := schemacost.Deref(m.root, v)
			switch {
			case !ok:
				return false, false
			case isSecret(inner):
				secret = true
			default:
				values = append(values, inner)
			}
		}
		text = len(values) > 0 && !slices.ContainsFunc(values, func(inner map[string]any) bool {
			if secret && onlyStrings(inner["type"], "null", "number", "integer", "boolean") {
				return false
			}
			only, more := m.wantsText(inner, depth+1)
			secret = secret || more
			return !only
		})
		return text, text && secret
	}
	if enum, ok := s["enum"].([]any); ok {
		return len(enum) > 0 && !slices.ContainsFunc(enum, func(v any) bool { _, ok := v.(string); return !ok }), false
	}
	return false, false
}

// onlyStrings reports whether a type of a schema is that of strings, or a list with it and at most
// some others.
func onlyStrings(t any, others ...any) bool {
	list, ok := t.([]any)
	if !ok {
		return t == "string"
	}
	return slices.Contains(list, any("string")) && !slices.ContainsFunc(list, func(v any) bool { return v != "string" && !slices.Contains(others, v) })
}

// isSecret reports whether a schema is that of {"secret": NAME}.
func isSecret(s map[string]any) bool {
	properties, _ := s["properties"].(map[string]any)
	_, ok := properties["secret"]
	return ok && len(properties) == 1 && s["type"] == "object"
}

// SecretIn returns the name in {"secret": NAME}, the value of an environment variable that
// a secret has; false for any other value.
func SecretIn(value json.RawMessage) (name string, ok bool) {
	if len(value) == 0 || value[0] != '{' {
		return "", false
	}
	n := 0
	strictjson.EachMember(value, func(member, inner []byte) bool {
		n++
		if strictjson.IsString(member, "secret") && inner[0] == '"' {
			name, ok = strictjson.Unquote(inner), true
		}
		return true
	})
	return name, ok && n == 1
}

// asText reports whether s requires the text of a value in place of the value. {"secret": NAME} is none of
// a value: it stays, so that the command can refuse the name of a secret that the step does not name itself.
func (s *Shape) asText(value json.RawMessage) bool {
	if s == nil || !s.text || isPlainText(value) {
		return false
	}
	_, secret := SecretIn(bytes.TrimSpace(value))
	return !s.secret || !secret
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
