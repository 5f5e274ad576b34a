package command

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// direction says which side of a command a schema describes. A parameter is
// never null; a result may hold a nil slice or pointer.
type direction bool

const (
	input  direction = true
	output direction = false
)

// typeSchemas are the types whose JSON differs from their Go shape.
var typeSchemas = map[reflect.Type]*jsonschema.Schema{
	reflect.TypeFor[abi.JSON]():        {Description: "any JSON value"},
	reflect.TypeFor[json.RawMessage](): {Description: "any JSON value"}, // without words it would be written as true, which some models refuse
	reflect.TypeFor[time.Time]():       {Type: "string", Format: "date-time"},
	reflect.TypeFor[EnvValue]():        envValueSchema,
}

// A generator makes the schemas of one side of one command.
type generator struct {
	dir   direction
	types map[reflect.Type]*jsonschema.Schema // schemas that are not generated
}

// schemaKey identifies a generated schema.
type schemaKey struct {
	t   reflect.Type
	dir direction
}

// schemaTexts holds the generated schemas without recursive types, as strings by their
// schemaKey: a process that opens several hosts generates the schema of a type once.
var schemaTexts sync.Map

// mustSchema generates the schema of T and panics if there is none. Lists of a
// recursive type refer to its definition in $defs.
func mustSchema[T any](name string, dir direction, recursive ...reflect.Type) json.RawMessage {
	t := reflect.TypeFor[T]()
	if t == reflect.TypeFor[json.RawMessage]() || t.Kind() == reflect.Interface {
		return json.RawMessage(`{}`)
	}
	if len(recursive) > 0 {
		return generate(name, t, dir, recursive)
	}
	key := schemaKey{t, dir}
	if text, ok := schemaTexts.Load(key); ok {
		return json.RawMessage(text.(string))
	}
	text := generate(name, t, dir, nil)
	schemaTexts.Store(key, string(text))
	return text
}

// generate generates the schema of t for [mustSchema].
func generate(name string, t reflect.Type, dir direction, recursive []reflect.Type) json.RawMessage {
	g := generator{dir: dir, types: maps.Clone(typeSchemas)}
	for _, r := range recursive {
		list := &jsonschema.Schema{Types: []string{"null", "array"}, Items: &jsonschema.Schema{Ref: "#/$defs/" + r.Name()}}
		g.types[reflect.SliceOf(r)], g.types[reflect.SliceOf(reflect.PointerTo(r))] = list, list
	}
	s := g.must(name, t)
	for _, r := range recursive {
		if s.Defs == nil {
			s.Defs = map[string]*jsonschema.Schema{}
		}
		s.Defs[r.Name()] = g.must(name, r)
	}
	if dir == input && s.Type != "object" {
		panic(fmt.Sprintf("command %q: parameters must be a struct, not %s", name, t))
	}
	text, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("command %q: schema of %s: %v", name, t, err))
	}
	return text
}

// must generates the schema of one type.
func (g generator) must(name string, t reflect.Type) *jsonschema.Schema {
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: g.types})
	if err == nil {
		err = g.refine(s, t)
	}
	if err != nil {
		panic(fmt.Sprintf("command %q: schema of %s: %v", name, t, err))
	}
	return s
}

// refine applies the tags that the generator does not know, and forbids null
// on the way in. It follows the same types the generator followed, so it ends.
func (g generator) refine(s *jsonschema.Schema, t reflect.Type) error {
	if s == nil {
		return nil
	}
	if g.dir == input && len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if _, fixed := g.types[t]; fixed {
		return nil
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		return g.refine(s.Items, t.Elem())
	case reflect.Map:
		return g.refine(s.AdditionalProperties, t.Elem())
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" {
				name = f.Name
			}
			p := s.Properties[name]
			if !f.IsExported() || p == nil {
				continue
			}
			if err := g.refine(p, f.Type); err != nil {
				return err
			}
			if err := applyTags(p, f.Tag); err != nil {
				return fmt.Errorf("field %q: %w", f.Name, err)
			}
		}
	}
	return nil
}

// applyTags reads enum, minimum and maximum.
func applyTags(p *jsonschema.Schema, tag reflect.StructTag) error {
	if list, ok := tag.Lookup("enum"); ok {
		for word := range strings.SplitSeq(list, ",") {
			p.Enum = append(p.Enum, word)
		}
	}
	for key, at := range map[string]**float64{"minimum": &p.Minimum, "maximum": &p.Maximum} {
		text, ok := tag.Lookup(key)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("tag %s: %w", key, err)
		}
		*at = &n
	}
	return nil
}
