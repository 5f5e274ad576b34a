package sentinels

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sentinel-runtime/sentinel/sentinels/internal/schemacost"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
)

// A TypeSet is the set of step types that a definition may use. The runtime builds
// one from the manifests of its plugins. The order is used for inference and for
// suggestions.
//
// # Concurrency
//
// A TypeSet is immutable after [NewTypeSet] and safe for concurrent use.
type TypeSet struct {
	specs []TypeSpec
	index map[StepType]int
}

// A TypeSpec describes one step type: its fields, and the marks of those that are not
// plain data (see Keyword in package sdk/abi).
type TypeSpec struct {
	Type    StepType
	Summary string
	Fields  json.RawMessage   // JSON Schema of type object, with x-sentinel marks
	Output  json.RawMessage   // JSON Schema of the output, nil if it is not known
	Infer   []string          // a step without type that has one of these fields or aliases is of this type
	Aliases map[string]string // accepted name -> stored name
	Plugin  string            // name of the plugin that provides it
	Digest  string            // and its digest
	// Known says that the schema of Fields is a part of the program and is known to be within the
	// limits and to compile: it is compiled when a field is first checked. Default false.
	Known bool

	compiled *fieldSet // set by NewTypeSet, never changed
}

// A FieldMark is the mark of the field at Path, which is always a top-level name.
type FieldMark struct {
	Path string
	Mark string
}

// keyword is abi.Keyword.
const keyword = "x-sentinel"

// A fieldSet is the compiled schema of a type.
type fieldSet struct {
	raw    map[string]any    // the schema itself
	names  []string          // of the fields, sorted
	free   map[string]bool   // fields of whose value the schema describes at most the type
	marks  map[string]string // by field
	timed  map[string]bool   // fields without a mark that may have milliseconds
	open   bool              // other fields are allowed
	check  func() *jsonschema.Schema
	size   schemacost.Size
	shapes map[string]*reference.Shape
}

// has reports whether the type has a field with that stored name.
func (f *fieldSet) has(name string) bool {
	_, ok := slices.BinarySearch(f.names, name)
	return ok
}

// HasField reports whether the type has a field, by its stored name.
func (s *TypeSpec) HasField(name string) bool { return s.compiled != nil && s.compiled.has(name) }

// Evaluates reports whether a field may be {"expr": source} as a whole, which its plugin evaluates.
func (s *TypeSpec) Evaluates(field string) bool {
	return s.compiled != nil && s.compiled.evaluates(field)
}

func (f *fieldSet) evaluates(name string) bool {
	properties, _ := f.raw["properties"].(map[string]any)
	property, _ := properties[name].(map[string]any)
	inner, _ := property["properties"].(map[string]any)
	expr, _ := inner["expr"].(map[string]any)
	return expr[keyword] == markExpression
}

// named reports whether a field that holds branches takes them by name too.
func (f *fieldSet) named(name string) bool {
	properties, _ := f.raw["properties"].(map[string]any)
	property, _ := properties[name].(map[string]any)
	types, _ := property["type"].([]any)
	return slices.Contains(types, any("object"))
}

// describesExpr reports whether the schema of a field has a key "expr" of its own, so that
// {"expr": ...} in it is data of the type.
func (f *fieldSet) describesExpr(name string) bool {
	properties, _ := f.raw["properties"].(map[string]any)
	return hasKey(properties[name], "expr")
}

// hasKey reports whether an object within v has a key.
func hasKey(v any, key string) bool {
	switch v := v.(type) {
	case map[string]any:
		for name, item := range v {
			if name == key || hasKey(item, key) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return hasKey(item, key) })
	}
	return false
}

// NewTypeSet compiles the schemas of specs. Those of specs from [TypeSet.Lookup] are
// compiled already. The error is that of [CheckTypes], or lists every invalid spec: an
// invalid or duplicate name, a schema that cannot be compiled, an unknown mark, alias
// or inference field.
func NewTypeSet(specs []TypeSpec) (*TypeSet, error) {
	if err := CheckTypes(specs); err != nil {
		return nil, err
	}
	t := &TypeSet{specs: slices.Clone(specs), index: make(map[StepType]int, len(specs))}
	var errs []error
	for i := range t.specs {
		spec := &t.specs[i]
		if name := string(spec.Type); !reference.IsName(name) || name != strings.ToLower(name) || name[0] == '_' || len(name) > maxName {
			errs = append(errs, fmt.Errorf("step type %q: the name is not lower_snake", name))
		}
		if _, duplicate := t.index[spec.Type]; duplicate {
			errs = append(errs, fmt.Errorf("step type %q: duplicate name", spec.Type))
		}
		t.index[spec.Type] = i
		if spec.compiled != nil {
			continue
		}
		fields, err := compileFields(spec)
		if err != nil {
			errs = append(errs, fmt.Errorf("step type %q: %w", spec.Type, err))
		}
		spec.compiled = fields
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return t, nil
}

// CheckTypes checks the step types in the manifests of plugins against the limits of
// ABI clause A8.4. It takes milliseconds and compiles nothing. [NewTypeSet] calls it.
func CheckTypes(specs []TypeSpec) error {
	types, parts := map[string]int{}, map[string]int{}
	for i := range specs {
		spec := &specs[i]
		if spec.compiled != nil || spec.Known {
			continue // it has been checked before
		}
		if n := max(len(spec.Aliases), len(spec.Infer)); n > schemacost.MaxProperties {
			return fmt.Errorf("step type %q: %d aliases or fields to infer it from, the limit is %d each", spec.Type, n, schemacost.MaxProperties)
		}
		size, err := schemacost.Check(spec.schemaText())
		if err != nil {
			return fmt.Errorf("step type %q: fields: %w", spec.Type, err)
		}
		types[spec.Plugin]++
		parts[spec.Plugin] += size.Parts
		switch {
		case types[spec.Plugin] > schemacost.MaxTypes:
			return fmt.Errorf("plugin %q: more than %d step types", spec.Plugin, schemacost.MaxTypes)
		case parts[spec.Plugin] > schemacost.MaxAllParts:
			return fmt.Errorf("plugin %q: its schemas have more than %d objects, arrays and booleans; %s", spec.Plugin, schemacost.MaxAllParts, schemacost.Hint)
		}
	}
	return nil
}

// schemaText returns the schema of the type's fields; the default accepts any object.
func (s *TypeSpec) schemaText() []byte {
	if text := bytes.TrimSpace(s.Fields); len(text) > 0 {
		return text
	}
	return []byte(`{"type":"object"}`)
}

// Lookup returns the spec of a type. The spec must not be changed.
func (t *TypeSet) Lookup(name StepType) (*TypeSpec, bool) {
	if t == nil {
		return nil, false
	}
	i, ok := t.index[name]
	if !ok {
		return nil, false
	}
	return &t.specs[i], true
}

// Types returns the names of all types, in order.
func (t *TypeSet) Types() []StepType {
	if t == nil {
		return nil
	}
	types := make([]StepType, len(t.specs))
	for i := range t.specs {
		types[i] = t.specs[i].Type
	}
	return types
}

func (t *TypeSet) names() []string {
	names := make([]string, len(t.specs))
	for i := range t.specs {
		names[i] = string(t.specs[i].Type)
	}
	return names
}

// Marks returns the marked fields of a type, sorted by name. It is empty for a
// spec that did not come from a [TypeSet].
func (s *TypeSpec) Marks() []FieldMark {
	if s.compiled == nil {
		return nil
	}
	var out []FieldMark
	for _, name := range slices.Sorted(maps.Keys(s.compiled.marks)) {
		out = append(out, FieldMark{Path: name, Mark: s.compiled.marks[name]})
	}
	return out
}

// Mark returns the mark of a field, "" if it has none.
func (s *TypeSpec) Mark(field string) string {
	if s.compiled == nil {
		return ""
	}
	return s.compiled.marks[field]
}

// hasConditions reports whether the expressions of a type are conditions, which are
// only tested for truth. That is assumed of types with nested steps; other types may
// use the value of an expression.
func (s *TypeSpec) hasConditions() bool {
	return slices.ContainsFunc(s.Marks(), func(m FieldMark) bool { return m.Mark == markSteps || m.Mark == markBranches })
}

// ResolveField is [reference.Resolve] for the value of one field, with its schema.
func (s *TypeSpec) ResolveField(field string, raw json.RawMessage, lookup reference.Lookup) (json.RawMessage, reference.Notes, error) {
	if s.compiled == nil {
		return reference.Resolve(raw, lookup)
	}
	resolved, notes, err := s.compiled.shapes[field].Resolve(raw, lookup)
	if err != nil || bytes.Equal(resolved, raw) {
		return resolved, notes, err
	}
	return s.compiled.durations(field, resolved), notes, nil
}

// stored returns the stored name of a field or alias.
func (s *TypeSpec) stored(name string) string {
	if to, ok := s.Aliases[name]; ok {
		return to
	}
	return name
}

// otherNames returns the names that a text may have for a key of any object of the
// format or of a type.
func (t *TypeSet) otherNames(name string) []string {
	names := otherNames(name)
	if t == nil {
		return names
	}
	for i := range t.specs {
		for alias, stored := range t.specs[i].Aliases {
			if stored == name {
				names = append(names, alias)
			}
		}
	}
	return names
}

// isCommonField reports whether a field is common to all types, so that a type cannot
// define it.
func isCommonField(name string) bool {
	f := format.step.find(name)
	return f != nil && !f.replaceable
}

// localOnly is a loader that refuses references to files and URLs.
type localOnly struct{}

func (localOnly) Load(url string) (any, error) {
	return nil, fmt.Errorf("the schema refers to %q, but only references within it are supported", url)
}

// compileFields reads and checks the spec of a type, which comes from the manifest of a
// plugin and is not trusted.
func compileFields(spec *TypeSpec) (*fieldSet, error) {
	size, err := schemacost.Check(spec.schemaText())
	if err != nil {
		return nil, fmt.Errorf("fields: %w", err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(spec.schemaText()))
	if err != nil {
		return nil, fmt.Errorf("fields: %w", err)
	}
	f := &fieldSet{size: size, marks: make(map[string]string), timed: make(map[string]bool), shapes: make(map[string]*reference.Shape)}
	var ok bool
	if f.raw, ok = doc.(map[string]any); !ok {
		return nil, errors.New("fields: the schema is not an object")
	}
	properties, _ := f.raw["properties"].(map[string]any)
	f.names = slices.Sorted(maps.Keys(properties))
	if extra, given := f.raw["additionalProperties"]; given && extra != false {
		f.open = true
	}
	shapes := reference.NewShapes(f.raw)
	for _, name := range f.names {
		if isCommonField(name) {
			return nil, fmt.Errorf("fields: %q is common to all steps, a type cannot define it", name)
		}
		if err := f.mark(name, properties[name]); err != nil {
			return nil, err
		}
		f.shapes[name] = shapes.Of(properties[name])
		f.timed[name] = f.marks[name] == "" && mayHaveDurations(name, properties[name])
	}
	f.free = freeFields(f.raw)
	for _, name := range spec.Infer {
		if _, alias := spec.Aliases[name]; !f.has(name) && !alias {
			return nil, fmt.Errorf("infer: unknown field %q", name)
		}
	}
	for alias, name := range spec.Aliases {
		if !f.has(name) || f.has(alias) || format.step.find(alias) != nil {
			return nil, fmt.Errorf("aliases: %q cannot stand for %q", alias, name)
		}
	}
	check := sync.OnceValues(func() (*jsonschema.Schema, error) { return compileCheck(f, string(spec.Type)) })
	if !spec.Known {
		if _, err := check(); err != nil {
			return nil, err
		}
	}
	f.check = func() *jsonschema.Schema {
		schema, err := check()
		if err != nil {
			panic(fmt.Sprintf("step type %q is part of the program: %v", spec.Type, err))
		}
		return schema
	}
	return f, nil
}

// mark records the mark of a property.
func (f *fieldSet) mark(name string, property any) error {
	schema, _ := property.(map[string]any)
	value, given := schema[keyword]
	if !given {
		return nil
	}
	mark, _ := value.(string)
	if !slices.Contains(marks, mark) {
		return fmt.Errorf("fields: %q has the unknown mark %v", name, value)
	}
	f.marks[name] = mark
	return nil
}

// compileCheck compiles the schema that values are validated against. The decoder
// checks unknown keys, nested steps and nested definitions, so these are left out.
func compileCheck(f *fieldSet, name string) (*jsonschema.Schema, error) {
	schema := maps.Clone(f.raw)
	if !f.open {
		delete(schema, "additionalProperties")
	}
	properties := make(map[string]any, len(f.names))
	given, _ := schema["properties"].(map[string]any)
	for field, property := range given {
		switch f.marks[field] {
		case markSteps, markBranches:
			counted := map[string]any{}
			if p, ok := property.(map[string]any); ok {
				for _, k := range []string{"minItems", "maxItems"} {
					if v, ok := p[k]; ok {
						counted[k] = v
					}
				}
			}
			property = counted
		case markDefinition:
			property = true
		}
		properties[field] = property
	}
	schema["properties"] = properties
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(localOnly{})
	c.AssertFormat()
	c.UseRegexpEngine(schemacost.CompilePattern)
	url := "https://sentinel.invalid/steps/" + name + ".json"
	if err := c.AddResource(url, schema); err != nil {
		return nil, fmt.Errorf("fields: %w", err)
	}
	check, err := c.Compile(url)
	if err != nil {
		return nil, schemaError(err)
	}
	return check, nil
}

// schemaError returns, in one line, why a schema does not compile. The error of the
// library has one line for each violated rule of the metaschema.
func schemaError(err error) error {
	var invalid *jsonschema.SchemaValidationError
	var broken *jsonschema.ValidationError
	if !errors.As(err, &invalid) || !errors.As(invalid.Err, &broken) {
		return fmt.Errorf("fields: %.500s", strings.Join(strings.Fields(err.Error()), " "))
	}
	for len(broken.Causes) > 0 {
		broken = broken.Causes[len(broken.Causes)-1]
	}
	text := "a rule is violated"
	if unit := broken.BasicOutput(); unit.Error != nil {
		text = strings.Join(strings.Fields(unit.Error.String()), " ")
	}
	return fmt.Errorf("fields: the schema violates the metaschema at %.200q: %.200s", "/"+strings.Join(broken.InstanceLocation, "/"), text)
}
