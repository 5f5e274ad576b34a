package sentinels

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// Limits of the step types of one plugin and of the schema of each, ABI clause
// A8.4. The schema library compiles in a time that grows with the cube of the depth
// and the square of the number of subschemas, and keeps every pattern compiled: 24 KB
// took longer than a minute, 190 KB two gigabytes. So all limits are checked before
// the library sees a schema. What a check of a value may cost is in check_limit.go.
const (
	maxStepTypes  = 64    // of one plugin
	maxAllParts   = 5_000 // of all its schemas
	maxParts      = 1_000 // objects, arrays and booleans of one schema
	maxProperties = 500   // of one schema, at all levels; also aliases of one type
	maxReferences = 200   // of one schema
	maxPatterns   = 100   // of one schema
	maxPattern    = 1 << 10
	maxProgram    = 2_000  // instructions of one compiled pattern
	maxPrograms   = 20_000 // of all patterns of one schema
	maxSchemaKey  = 64     // bytes
)

// schemaText bounds the text of one schema; that of a manifest is tighter.
var schemaText = strictjson.Limits{Bytes: 1 << 20, Depth: 64, Keys: 10_000, StringBytes: 16 << 10}

// schemaHint is for authors of plugins who meet a limit.
const schemaHint = "describe the fields less closely and check the rest in the plugin's validate"

// CheckTypes holds what plugins say of their step types to the limits of ABI clause
// A8.4. It takes milliseconds and compiles nothing; [NewTypeSet] begins with it.
func CheckTypes(specs []TypeSpec) error {
	types, parts := map[string]int{}, map[string]int{}
	for i := range specs {
		spec := &specs[i]
		if spec.compiled != nil {
			continue // it was held to the limits then
		}
		if n := max(len(spec.Aliases), len(spec.Infer)); n > maxProperties {
			return fmt.Errorf("step type %q: %d aliases or fields to infer it from, the limit is %d each", spec.Type, n, maxProperties)
		}
		size, err := checkSchema(spec.schemaText())
		if err != nil {
			return fmt.Errorf("step type %q: fields: %w", spec.Type, err)
		}
		types[spec.Plugin]++
		parts[spec.Plugin] += size.parts
		switch {
		case types[spec.Plugin] > maxStepTypes:
			return fmt.Errorf("plugin %q: more than %d step types", spec.Plugin, maxStepTypes)
		case parts[spec.Plugin] > maxAllParts:
			return fmt.Errorf("plugin %q: its schemas have more than %d objects, arrays and booleans; %s", spec.Plugin, maxAllParts, schemaHint)
		}
	}
	return nil
}

// schemaText returns the schema of the type's fields; without one they are any.
func (s *TypeSpec) schemaText() []byte {
	if text := bytes.TrimSpace(s.Fields); len(text) > 0 {
		return text
	}
	return []byte(`{"type":"object"}`)
}

// schemaSize is what one schema consists of.
type schemaSize struct {
	parts, properties, references, patterns int
	program                                 int // instructions of its patterns
}

// checkSchema holds one schema to the limits.
func checkSchema(text []byte) (schemaSize, error) {
	var size schemaSize
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
		{"objects, arrays and booleans", size.parts, maxParts},
		{"properties", size.properties, maxProperties},
		{"references", size.references, maxReferences},
		{"patterns", size.patterns, maxPatterns},
		{"instructions in its patterns", size.program, maxPrograms},
	} {
		if c.have > c.most {
			return size, fmt.Errorf("the schema has %d %s, the limit is %d; %s", c.have, c.what, c.most, schemaHint)
		}
	}
	return size, (&references{root: root, seen: map[string]bool{}}).schema(root, true)
}

// add counts a value and what is in it. It takes every value for a schema: what
// stands in an example or a default counts too, which is simpler than to know
// where a reference may lead. key is the one that the value has.
func (s *schemaSize) add(v any, key string) error {
	switch v := v.(type) {
	case bool:
		s.parts++
	case []any:
		s.parts++
		for _, item := range v {
			if err := s.add(item, ""); err != nil {
				return err
			}
		}
	case map[string]any:
		s.parts++
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

// member counts one member of an object that has a key itself.
func (s *schemaSize) member(key, name string, v any) error {
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
func (s *schemaSize) pattern(text string) error {
	n, err := patternSize(text)
	s.patterns++
	s.program += n
	return err
}

// patternSize returns the instructions of a pattern, 0 of one that does not parse:
// the compiler words that better. The error says which limit it is beyond.
func patternSize(text string) (int, error) {
	if len(text) > maxPattern {
		return 0, fmt.Errorf("the pattern %.40q... has %d bytes, the limit is %d", text, len(text), maxPattern)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0, nil //nolint:nilerr // see above
	}
	n := programSize(parsed)
	if n > maxProgram {
		return 0, fmt.Errorf("the pattern %.40q compiles to more than %d instructions; use smaller repetitions, or maxLength", text, maxProgram)
	}
	return n, nil
}

// compilePattern compiles a pattern within the limits: one of a schema, which has
// been counted, or a value that a schema says is a pattern.
func compilePattern(text string) (jsonschema.Regexp, error) {
	if _, err := patternSize(text); err != nil {
		return nil, err
	}
	return regexp.Compile(text)
}

// programSize estimates the instructions that a pattern compiles to. It stops
// counting beyond maxProgram.
func programSize(re *syntax.Regexp) int {
	n := 0
	for _, sub := range re.Sub {
		n += programSize(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		n = len(re.Rune)
	case syntax.OpCharClass:
		n = 1 + len(re.Rune)/8 // it keeps its ranges
	case syntax.OpConcat:
	case syntax.OpAlternate:
		n += len(re.Sub)
	case syntax.OpRepeat: // its content is copied as often
		n = n*max(re.Min, re.Max, 1) + max(re.Max-re.Min, 0)
	default:
		n += 2
	}
	return min(n, maxProgram+1)
}

// references looks at the references of a schema, and at keywords that would
// change what references mean.
type references struct {
	root any
	seen map[string]bool
}

// schema looks at one schema and at all within it.
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
				return fmt.Errorf("%q is not supported within a schema; refer to its parts by their place, as #/$defs/NAME", keyword)
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

// follow looks at what a reference leads to, once.
func (r *references) follow(ref string) error {
	if r.seen[ref] {
		return nil
	}
	r.seen[ref] = true
	target, ok := pointer(r.root, ref)
	if !ok {
		return fmt.Errorf("the schema refers to %q, but only references within it work, as #/$defs/NAME", ref)
	}
	return r.schema(target, false)
}

// subschemas returns the schemas that the value of a keyword consists of, in no
// order.
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
