package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
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

// A lazySchema is a JSON Schema whose text is made, and which is compiled, when that is first
// needed: most starts of a program call one command of more than a hundred, or none.
type lazySchema struct {
	text     func() json.RawMessage
	compiled func() (*schema, error)
}

func newLazySchema(text func() json.RawMessage) *lazySchema {
	l := &lazySchema{text: sync.OnceValue(text)}
	l.compiled = sync.OnceValues(func() (*schema, error) { return compileSchema(l.text()) })
	return l
}

// json returns the text, nil if there is no schema.
func (l *lazySchema) json() json.RawMessage {
	if l == nil {
		return nil
	}
	return l.text()
}

// schemaKey identifies the schema of a type.
type schemaKey struct {
	t         reflect.Type
	dir       direction
	recursive string
}

// schemas holds the schemas of types, a *lazySchema by its schemaKey: a process that opens
// several hosts makes each once.
var schemas sync.Map

// schemaOf returns the schema of a type. Its text panics if there is none. Lists of a
// recursive type refer to its definition in $defs.
func schemaOf(name string, t reflect.Type, dir direction, recursive ...reflect.Type) *lazySchema {
	key := schemaKey{t, dir, fmt.Sprint(recursive)}
	if s, ok := schemas.Load(key); ok {
		return s.(*lazySchema)
	}
	s, _ := schemas.LoadOrStore(key, newLazySchema(func() json.RawMessage {
		if t == reflect.TypeFor[json.RawMessage]() || t.Kind() == reflect.Interface {
			return json.RawMessage(`{}`)
		}
		return generate(name, t, dir, recursive)
	}))
	return s.(*lazySchema)
}

// parameterNames returns the sorted names of the properties that the schema of a struct has.
func parameterNames(t reflect.Type) []string {
	names := []string{}
	for _, f := range reflect.VisibleFields(t) {
		tag, tagged := f.Tag.Lookup("json")
		name, _, _ := strings.Cut(tag, ",")
		if !f.IsExported() || tag == "-" || f.Anonymous && (!tagged || name == "") {
			continue
		}
		names = append(names, cmp.Or(name, f.Name))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// generate generates the text of [schemaOf].
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
