package validation

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
)

// A fields is the shape of a value: its fields by name, each with its own shape. A nil one
// may have any fields.
type fields map[string]fields

// outputs reports references to fields that the output of a step cannot have.
func (v *check) outputs() {
	known := map[string]fields{}
	set := func(name string, f fields) {
		if before, again := known[name]; again && (before == nil || f == nil) {
			f = nil
		} else if again {
			f = union(before, f)
		}
		known[name] = f
	}
	v.definition.EachStep(func(_ string, s *sentinels.Step) {
		if s.OutputTo != "" {
			set(s.OutputTo, v.shape(s))
		}
		for _, name := range v.otherNames(s) {
			set(name, nil)
		}
	})
	for name := range v.definition.Inputs {
		set(name, nil)
	}
	maps.DeleteFunc(known, func(_ string, f fields) bool { return f == nil })
	if len(known) == 0 {
		return
	}
	look := func(path string, uses []use) { v.uses(path, uses, known) }
	retry := func(path string, p sentinels.RetryPolicy) {
		p.Conditions(func(key, source string) {
			uses := slices.DeleteFunc(inExpression(source), func(u use) bool { return u.name == "error" }) // that of the attempt
			look(path+".onError.retry."+key, uses)
		})
	}
	look("loop.check", inExpression(v.definition.Loop.Check))
	look("loop.max", inText(v.definition.Loop.Max))
	v.definition.EachStep(func(path string, s *sentinels.Step) {
		look(path+".condition", inExpression(s.Condition))
		retry(path, s.OnError.Retry)
		spec, ok := v.types.Lookup(s.Type)
		if !ok {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(s.Fields)) {
			raw := s.Fields[name]
			switch spec.Mark(name) {
			case abi.MarkExpression:
				look(path+"."+name, inExpression(reference.Text(raw)))
			case abi.MarkShell:
				reference.EachInShellLine(reference.Text(raw), func(ref reference.Reference, quoted bool, _ string) {
					if quoted {
						return
					}
					look(path+"."+name, []use{{ref.String(), ref.Name, ref.Path}})
				})
			case abi.MarkRaw, abi.MarkDefinition:
			default:
				look(path+"."+name, inText(raw))
			}
		}
	})
}

// shape returns the fields of a step's output, nil if it may have any.
func (v *check) shape(s *sentinels.Step) fields {
	spec, ok := v.types.Lookup(s.Type)
	if !ok || parses(s) {
		return nil
	}
	name := spec.Command()
	for _, mark := range spec.Marks() {
		if mark.Mark == abi.MarkParams {
			name = reference.Text(s.Fields["command"])
		}
	}
	output := spec.Output
	if c, ok := v.commands.Lookup(name); ok {
		output = c.Output()
	}
	var schema map[string]any
	if json.Unmarshal(output, &schema) != nil {
		return nil
	}
	f := closed(schema)
	if f != nil && s.OnError.Action == sentinels.ActionSkip {
		f = union(f, fields{"success": nil, "skipped": nil, "error": nil})
	}
	return f
}

// parses reports whether the step replaces its output by a value that it reads from it.
func parses(s *sentinels.Step) bool {
	raw, err := s.MarshalJSON()
	var written struct {
		Parse json.RawMessage `json:"parse"`
	}
	return err != nil || json.Unmarshal(raw, &written) != nil || written.Parse != nil
}

// otherNames returns the variables that a step sets besides outputTo: those that marked
// fields name, and the keys of values.
func (v *check) otherNames(s *sentinels.Step) []string {
	spec, ok := v.types.Lookup(s.Type)
	if !ok {
		return nil
	}
	var names []string
	for _, mark := range spec.Marks() {
		if mark.Mark == abi.MarkVariable {
			names = append(names, reference.Text(s.Fields[mark.Path]))
		}
	}
	var values map[string]json.RawMessage
	if json.Unmarshal(s.Fields["values"], &values) == nil {
		names = slices.AppendSeq(names, maps.Keys(values))
	}
	return names
}

// closed returns the fields of a JSON Schema of type object that allows no others, nil for
// any other schema.
func closed(schema map[string]any) fields {
	// A generated schema has {"not": {}} for false.
	switch extra := schema["additionalProperties"].(type) {
	case bool:
		if extra {
			return nil
		}
	case map[string]any:
		if none, ok := extra["not"].(map[string]any); !ok || len(none) > 0 {
			return nil
		}
	default:
		return nil
	}
	properties, ok := schema["properties"].(map[string]any)
	if !ok {
		return nil
	}
	f := make(fields, len(properties))
	for name, property := range properties {
		inner, _ := property.(map[string]any)
		f[name] = closed(inner)
	}
	return f
}

// union returns the fields that one of two shapes has.
func union(a, b fields) fields {
	out := maps.Clone(a)
	for name, inner := range b {
		if before, both := out[name]; both && before != nil && inner != nil {
			inner = union(before, inner)
		} else if both {
			inner = nil
		}
		out[name] = inner
	}
	return out
}

// otherNamesOfText are what other systems call the text of an output.
var otherNamesOfText = []string{"body", "content", "data", "response", "result", "value"}

// A use is a reference as it is written, its variable and the path behind it.
type use = struct{ text, name, path string }

// uses reports those of uses whose path the variable cannot have.
func (v *check) uses(path string, uses []use, known map[string]fields) {
	for _, u := range uses {
		if v.Ended() {
			return
		}
		at, whole := known[u.name], "$"+u.name
		for _, part := range parts.FindAllStringSubmatch(u.path, -1) {
			if at == nil || part[1] == "" {
				break
			}
			inner, ok := at[part[1]]
			if !ok {
				names := slices.Sorted(maps.Keys(at))
				hint := ""
				if _, text := at["text"]; text && slices.Contains(otherNamesOfText, part[1]) {
					hint = fmt.Sprintf("write %s.text", whole)
				} else if near := v.Suggest(part[1], names); len(near) > 0 {
					hint = fmt.Sprintf("did you mean %q?", whole+"."+near[0])
				}
				v.add(path, sentinels.KindUnknown, hint, "%s: %s has no field %q; it has %s", u.text, whole, part[1], strings.Join(names, ", "))
				break
			}
			at, whole = inner, whole+"."+part[1]
		}
	}
}

var (
	// parts matches one part of a path: a field, or an index without one.
	parts = lazyregexp.New(`\??\.([A-Za-z_][A-Za-z0-9_]*)|\??\.?\[[0-9]+\]`)
	// inSource matches strings and comments of JavaScript, and references with their paths.
	// A call ends a path, so that methods are not fields.
	inSource = lazyregexp.New(`"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|/\*(?s:.*?)\*/|//[^\n]*|\$([A-Za-z_][A-Za-z0-9_]*)((?:\??\.[A-Za-z_][A-Za-z0-9_]*|\[[0-9]+\])*)(\s*\(|\s*=[^=])?`)
	// inPlain matches references with their paths in text, and the escaped dollar.
	inPlain = lazyregexp.New(`\$\$|\$([A-Za-z_][A-Za-z0-9_]*)((?:\??\.[A-Za-z_][A-Za-z0-9_]*|\[[0-9]+\])*)`)
)

// inExpression returns the references of a condition.
func inExpression(source string) []use {
	var uses []use
	for _, m := range inSource.FindAllStringSubmatch(source, -1) {
		if m[1] == "" || m[2] == "" {
			continue
		}
		path := m[2]
		if strings.HasSuffix(strings.TrimSpace(m[3]), "(") {
			path = path[:strings.LastIndexByte(path, '.')]
			path = strings.TrimSuffix(path, "?")
		}
		uses = append(uses, use{"$" + m[1] + path, m[1], path})
	}
	return uses
}

// inText returns the references in the strings of a JSON value.
func inText(raw json.RawMessage) []use {
	var value any
	if len(raw) == 0 || json.Unmarshal(raw, &value) != nil {
		return nil
	}
	var uses []use
	var walk func(value any)
	walk = func(value any) {
		switch value := value.(type) {
		case string:
			for _, m := range inPlain.FindAllStringSubmatch(value, -1) {
				if m[1] != "" && m[2] != "" {
					uses = append(uses, use{m[0], m[1], m[2]})
				}
			}
		case []any:
			for _, item := range value {
				walk(item)
			}
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(value)) {
				walk(value[key])
			}
		}
	}
	walk(value)
	return uses
}
