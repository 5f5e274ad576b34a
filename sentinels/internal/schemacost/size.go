package schemacost

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sentinel-runtime/sentinel/internal/boundedregexp"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// Limits of the step types of one plugin and of the schema of each, ABI clause
// A8.4. The schema library compiles in a time that grows with the cube of the depth
// and the square of the number of subschemas, and keeps every pattern compiled: 24 KB
// took longer than a minute, 190 KB two gigabytes. So all limits are checked before
// a schema is compiled. The limits of validating a value are in evaluation.go.
const (
	MaxTypes      = 64    // step types of one plugin
	MaxAllParts   = 5_000 // of all its schemas
	maxParts      = 1_000 // objects, arrays and booleans of one schema
	MaxProperties = 500   // of one schema, at all levels; also aliases of one type
	maxReferences = 200   // of one schema
	maxPatterns   = 100   // of one schema
	maxPattern    = 1 << 10
	maxProgram    = 2_000  // instructions of one compiled pattern
	maxPrograms   = 20_000 // of all patterns of one schema
	maxSchemaKey  = 64     // bytes
)

// schemaText limits the text of one schema. The limits of a manifest are lower.
var schemaText = strictjson.Limits{Bytes: 1 << 20, Depth: 64, Keys: 10_000, StringBytes: 16 << 10}

// Hint tells plugin authors what to do about a limit.
const Hint = "simplify the schema and check the rest in the plugin's validate"

// Size counts the parts of one schema.
type Size struct {
	Parts, properties, references, patterns int
	program                                 int // instructions of its patterns
}

// Check checks one schema against the limits and returns its size. It takes milliseconds.
func Check(text []byte) (Size, error) {
	var size Size
	if err := strictjson.Check(text, schemaText); err != nil {
		return size, err
	}
	root, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return size, err
	}
	if err := size.add(root, ""); err != nil {
		return size, err
	}
	for _, c := range []struct {
		what       string
		have, most int
	}{
		{"objects, arrays and booleans", size.Parts, maxParts},
		{"properties", size.properties, MaxProperties},
		{"references", size.references, maxReferences},
		{"patterns", size.patterns, maxPatterns},
		{"instructions in its patterns", size.program, maxPrograms},
	} {
		if c.have > c.most {
			return size, fmt.Errorf("the schema has %d %s, the limit is %d; %s", c.have, c.what, c.most, Hint)
		}
	}
	return size, (&references{root: root, seen: map[string]bool{}}).schema(root, true)
}

// add counts a value and all values in it. It counts every value as a schema, also
// those in examples and defaults: that is simpler than finding out which of them a
// reference refers to. key is the key of the value.
func (s *Size) add(v any, key string) error {
	switch v := v.(type) {
	case bool:
		s.Parts++
	case []any:
		s.Parts++
		for _, item := range v {
			if err := s.add(item, ""); err != nil {
				return err
			}
		}
	case map[string]any:
		s.Parts++
		if key == "properties" {
			s.properties += len(v)
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if err := s.member(key, name, v[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

// member counts one member of an object; key is the key of that object.
func (s *Size) member(key, name string, v any) error {
	text, isText := v.(string)
	switch {
	case key == "patternProperties":
		if err := s.pattern(name); err != nil {
			return err
		}
	case len(name) > maxSchemaKey:
		return fmt.Errorf("the key %.40q... has %d bytes, the limit is %d", name, len(name), maxSchemaKey)
	case name == "pattern" && isText:
		if err := s.pattern(text); err != nil {
			return err
		}
	case name == "$ref":
		s.references++
	}
	return s.add(v, name)
}

// pattern counts a pattern.
func (s *Size) pattern(text string) error {
	n, err := patternSize(text)
	s.patterns++
	s.program += n
	return err
}

// patternSize returns the number of instructions of a pattern, or an error if it
// exceeds a limit. It returns 0 for a pattern that does not parse, because the error
// of the compiler is more precise.
func patternSize(text string) (int, error) {
	if len(text) > maxPattern {
		return 0, fmt.Errorf("the pattern %.40q... has %d bytes, the limit is %d", text, len(text), maxPattern)
	}
	n, err := boundedregexp.Instructions(text)
	if err != nil {
		return 0, nil //nolint:nilerr // see above
	}
	if n > maxProgram {
		return 0, fmt.Errorf("the pattern %.40q compiles to %d instructions, the limit is %d; use smaller repetitions, or maxLength", text, n, maxProgram)
	}
	return n, nil
}

// CompilePattern compiles a pattern that is within the limits. Besides those of the
// schema, which have been counted, it gets values with the format "regex".
func CompilePattern(text string) (jsonschema.Regexp, error) {
	if _, err := patternSize(text); err != nil {
		return nil, err
	}
	return regexp.Compile(text)
}

// references checks the references of a schema, and refuses keywords that change the
// meaning of references.
type references struct {
	root any
	seen map[string]bool
}

// schema checks one schema and all schemas in it.
func (r *references) schema(v any, isRoot bool) error {
	s, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	for _, keyword := range slices.Sorted(maps.Keys(s)) {
		text, isText := s[keyword].(string)
		switch keyword {
		case "$ref":
			if err := r.follow(text); err != nil {
				return err
			}
		case "$id", "id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef":
			if isText && !(isRoot && keyword == "$id") {
				return fmt.Errorf("%q is not supported within a schema; refer to its parts by path, such as #/$defs/NAME", keyword)
			}
		}
		for inner := range subschemas(keyword, s[keyword]) {
			if err := r.schema(inner, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// follow checks the target of a reference, once.
func (r *references) follow(ref string) error {
	if r.seen[ref] {
		return nil
	}
	r.seen[ref] = true
	target, ok := Pointer(r.root, ref)
	if !ok {
		return fmt.Errorf("the schema refers to %q, but only references within it are supported, such as #/$defs/NAME", ref)
	}
	return r.schema(target, false)
}

// subschemas returns the schemas in the value of a keyword, in no particular order.
func subschemas(keyword string, v any) iter.Seq[any] {
	switch keyword {
	case "properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions":
		members, _ := v.(map[string]any)
		return maps.Values(members)
	case "allOf", "anyOf", "oneOf", "prefixItems", "items", "additionalItems", "unevaluatedItems", "contains", "not", "if", "then", "else",
		"additionalProperties", "unevaluatedProperties", "propertyNames", "contentSchema":
		if list, ok := v.([]any); ok {
			return slices.Values(list)
		}
		return slices.Values([]any{v})
	}
	return slices.Values([]any(nil))
}
