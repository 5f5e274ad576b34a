package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/sentinel-runtime/sentinel/internal/boundedregexp"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// maxProblems bounds how many violations one error message names.
const maxProblems = 8

// maxMatching bounds the patterns of a schema for one value, as instructions times bytes of
// its JSON. Nothing ends a validation before it is done.
const maxMatching = 1_000_000_000

// A schema is a compiled JSON Schema.
type schema struct {
	compiled *jsonschema.Schema
	shape    map[string]any
	program  int // instructions of its patterns, each counted twice: the metaschema has them too
}

// validate validates a value whose JSON has that many bytes. Violations are a
// [jsonschema.ValidationError].
func (s *schema) validate(value any, length int) error {
	if int64(length)*int64(s.program) > maxMatching {
		return fmt.Errorf("%d bytes are too many for the patterns of the schema, the limit is %d", length, maxMatching/s.program)
	}
	return s.compiled.Validate(value)
}

// compileSchema compiles the JSON text of a schema. References to other
// documents are refused: a schema of a foreign tool must not read files.
func compileSchema(text json.RawMessage) (*schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	shape, ok := doc.(map[string]any)
	if !ok {
		return nil, errors.New("not an object")
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	s := &schema{shape: shape}
	c.UseRegexpEngine(func(pattern string) (jsonschema.Regexp, error) {
		n, err := boundedregexp.Instructions(pattern)
		if err != nil {
			return nil, err
		}
		if n > boundedregexp.MaxInstructions {
			return nil, fmt.Errorf("the pattern %.40q compiles to %d instructions, the limit is %d; use smaller repetitions, or maxLength", pattern, n, boundedregexp.MaxInstructions)
		}
		if s.compiled == nil { // else it is a value with the format "regex"
			s.program += n
		}
		return regexp.Compile(pattern)
	})
	if err := c.AddResource("command:input", doc); err != nil {
		return nil, err
	}
	s.compiled, err = c.Compile("command:input")
	return s, err
}

// noLoader refuses every URL.
type noLoader struct{}

// Load refuses the URL.
func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("load schema %q: references to other documents are not followed", url)
}

// propertyNames returns the sorted parameter names of a schema.
func propertyNames(shape map[string]any) []string {
	properties, _ := shape["properties"].(map[string]any)
	return slices.Sorted(maps.Keys(properties))
}

// validate checks params and returns a bad_fields error that names every
// offending field, the first one in Field too.
func (e *entry) validate(params any, length int) error {
	err := e.schema().validate(params, length)
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return &abi.Error{Code: abi.BadFields, Message: fmt.Sprintf("call %q: %v", e.Name, err)}
	}
	var found []problem
	collect(invalid, &found)
	slices.SortStableFunc(found, func(a, b problem) int { return strings.Compare(a.field, b.field) })
	result := &abi.Error{Code: abi.BadFields, Permanent: true}
	var texts []string
	for i, p := range found {
		if i == maxProblems {
			texts = append(texts, fmt.Sprintf("and %d more", len(found)-i))
			break
		}
		if result.Field == "" {
			result.Field = p.field
		}
		texts = append(texts, p.text)
		if p.unknown != "" && result.Hint == "" {
			result.Hint = e.hint(p.unknown)
		}
	}
	result.Message = fmt.Sprintf("call %q: %s", e.Name, strings.Join(texts, "; "))
	return result
}

// hint names the parameter that was probably meant, or all there are.
func (e *entry) hint(unknown string) string {
	names := slices.Concat(e.properties, slices.Sorted(maps.Keys(e.Aliases)))
	if near := nearest(unknown, names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if len(e.properties) == 0 {
		return "it takes no parameters"
	}
	return "it takes " + strings.Join(e.properties, ", ")
}

// problem is one violation. unknown is the name of an unknown top-level field.
type problem struct{ field, text, unknown string }

// collect flattens the tree of a validation error to its leaves.
func collect(v *jsonschema.ValidationError, into *[]problem) {
	at := fieldPath(v.InstanceLocation)
	named := func(name string) string { return fieldPath(append(slices.Clone(v.InstanceLocation), name)) }
	switch k := v.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			*into = append(*into, problem{field: named(name), text: fmt.Sprintf("field %q: is missing", named(name))})
		}
		return
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			p := problem{field: named(name), text: fmt.Sprintf("field %q: is unknown", named(name))}
			if at == "" {
				p.unknown = name
			}
			*into = append(*into, p)
		}
		return
	case *kind.Type:
		*into = append(*into, problem{field: at, text: fmt.Sprintf("field %q: must be %s, not %s", at, strings.Join(k.Want, " or "), k.Got)})
		return
	case *kind.Enum:
		*into = append(*into, problem{field: at, text: fmt.Sprintf("field %q: must be one of %s", at, list(k.Want))})
		return
	}
	if len(v.Causes) == 0 {
		*into = append(*into, problem{field: at, text: fmt.Sprintf("field %q: %s", at, reason(v))})
	}
	for _, cause := range v.Causes {
		collect(cause, into)
	}
}

// reason is the library's own wording for the rarer kinds of violation.
func reason(v *jsonschema.ValidationError) string {
	if unit := v.BasicOutput(); unit != nil && unit.Error != nil {
		return unit.Error.String()
	}
	text := v.Error()
	if i := strings.LastIndex(text, "': "); i >= 0 {
		text = text[i+3:]
	}
	return text
}

// list writes values as JSON, for messages.
func list(values []any) string {
	words := make([]string, len(values))
	for i, v := range values {
		text, err := json.Marshal(v)
		if err != nil {
			text = fmt.Append(nil, v)
		}
		words[i] = string(text)
	}
	return strings.Join(words, ", ")
}

// fieldPath writes a location as people do: edits[0].old.
func fieldPath(location []string) string {
	var b strings.Builder
	for _, part := range location {
		if _, err := strconv.Atoi(part); err == nil {
			b.WriteString("[" + part + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(part)
	}
	return b.String()
}
