package sentinels

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// startInputs warns of inputs that a start leaves out: required ones that no trigger gives, and
// others that are then empty in a text. given are names that the caller sets. Inputs are optional unless they say otherwise.
func (c *checker) startInputs(d *Definition, given []string) {
	var uses map[string]string
	for _, name := range slices.Sorted(maps.Keys(d.Inputs)) {
		in := d.Inputs[name]
		if in.Default != nil || slices.Contains(given, name) || c.Ended() {
			continue
		}
		if uses == nil {
			uses = c.emptyUses(d)
		}
		long := ""
		if in.Description == "" && in.Enum == nil {
			typ := in.Type
			if typ == "" {
				typ = "string"
			}
			long = fmt.Sprintf(`write %q: {"type": %q, `, name, typ)
		}
		automatic := len(d.Triggers) > 0 && !slices.ContainsFunc(d.Triggers, func(t Trigger) bool { return t.Type == "manual" })
		switch at := uses[name]; {
		case in.Required && automatic:
			c.warn("inputs."+name, `give it a "default", or take the value from $event`, "no trigger gives inputs, so each of their firings is refused: a run needs %q", name)
		case in.Required || in.Optional || at == "":
		case automatic:
			c.warn("inputs."+name, `give it a "default"; "required": false says that it may be empty`, "%q is empty in %s: no trigger gives inputs", name, at)
		case long != "":
			c.warn("inputs."+name, long+`"required": true}, or a "default"; "required": false says that it may be empty`, "%q is empty in %s if a start leaves it out", name, at)
		default:
			c.warn("inputs."+name, `add "required": true or a "default"; "required": false says that it may be empty`, "%q is empty in %s if a start leaves it out", name, at)
		}
	}
}

// emptyUses returns the path of the first text that refers to each input which no condition,
// expression or test of a shell line looks at: its author did not think of an empty one.
func (c *checker) emptyUses(d *Definition) map[string]string {
	uses, tested := map[string]string{}, map[string]bool{}
	each := func(text string, f func(name string)) {
		for _, m := range namePattern.FindAllStringSubmatch(text, -1) {
			name := m[1]
			if name == "inputs" {
				key, ok := stepKey(m[2])
				if !ok { // all of them
					for name := range d.Inputs {
						tested[name] = true
					}
					continue
				}
				name = key
			}
			if _, input := d.Inputs[name]; input {
				f(name)
			}
		}
	}
	test := func(source string) { each(source, func(name string) { tested[name] = true }) }
	test(d.Loop.Check)
	d.EachStep(func(path string, s *Step) {
		test(s.Condition)
		for _, name := range setBy(s, c.types) {
			tested[name] = true // it has another value then
		}
		spec, ok := c.types.Lookup(s.Type)
		if !ok {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(s.Fields)) {
			raw, at := s.Fields[name], path+"."+name
			eachExpression(raw, test)
			switch spec.Mark(name) {
			case markExpression, markDefinition, markRaw:
				eachString(raw, test)
			case markShell:
				for _, m := range shellTest.FindAllStringSubmatch(reference.Text(raw), -1) {
					test(m[0])
				}
				fallthrough
			default:
				eachString(raw, func(text string) {
					each(text, func(name string) {
						if uses[name] == "" {
							uses[name] = at
						}
					})
				})
			}
		}
	})
	maps.DeleteFunc(uses, func(name, _ string) bool { return tested[name] })
	return uses
}

// shellTest matches the test of a value in a shell line, and the word of case.
var shellTest = lazyregexp.New(`(?:-[nz]\s|\[\[?\s|\btest\s|\bcase\s)[^;&|\n]*`)

// eachExpression calls f for the source of each {"expr": source} in a value.
func eachExpression(raw json.RawMessage, f func(source string)) {
	if len(raw) == 0 || raw[0] != '{' {
		return
	}
	if source, ok := ExpressionIn(raw); ok {
		f(source)
		return
	}
	strictjson.EachMember(raw, func(_, value []byte) bool { eachExpression(value, f); return true })
}

// ChildInputs returns what is wrong with the inputs that steps give to sentinels which they
// name by {"$ref": id}, see [Definition.CheckGiven]. child returns the definition of one, nil if it is not known.
func (d *Definition) ChildInputs(types *TypeSet, child func(id ID) *Definition) (found Problems) {
	d.EachStep(func(path string, s *Step) {
		spec, ok := types.Lookup(s.Type)
		if !ok {
			return
		}
		for _, mark := range spec.Marks() {
			id := RefOf(s.Fields[mark.Path])
			if mark.Mark != markDefinition || id == "" {
				continue
			}
			if def := child(id); def != nil {
				found = append(found, def.CheckWritten(s.Fields["inputs"], path, path+".inputs")...)
			}
		}
	})
	return found
}

// CheckWritten is CheckGiven for the inputs that a definition writes for a start of d, nil for none. Problems of a value
// have a path below at, those of a missing one the path of the step. Inputs that are the value of a reference are not known.
func (d *Definition) CheckWritten(inputs json.RawMessage, step, at string) Problems {
	given, known := givenInputs(inputs)
	if !known {
		return nil
	}
	found := d.CheckGiven(fmt.Sprintf("sentinel %q", d.ID), given, true)
	for i, p := range found {
		if found[i].Path = at + "." + p.Path; p.Kind == KindMissing {
			found[i].Path, found[i].Hint = step, fmt.Sprintf(`write "inputs": {%q: ...}`, p.Path)
		}
	}
	return found
}

// CheckGiven returns what is wrong with values that are given for the inputs of d: a name that d does not have, a value of
// another type or none of the enum, and a required input without a value. The path of a problem is the name of the input.
// what names d in messages. With written, the values are those of a definition, whose references have no value yet.
func (d *Definition) CheckGiven(what string, given map[string]json.RawMessage, written bool) (found Problems) {
	names := slices.Sorted(maps.Keys(d.Inputs))
	for _, name := range slices.Sorted(maps.Keys(given)) {
		in, ok := d.Inputs[name]
		value := given[name]
		refers := written && len(reference.In(value)) > 0
		switch {
		case !ok && len(names) > 0:
			p := Problem{Path: name, Kind: KindUnknown, Message: fmt.Sprintf("%s has no input %q", what, name)}
			if len(found) < MaxProblems { // more are not shown, and each compares all names
				p.Hint = didYouMean(name, names)
			}
			found = append(found, p)
		case !ok, refers && value[0] == '"' && reference.IsReference(reference.Text(value)):
		case in.Type != "" && !valueHasType(value, in.Type):
			found = append(found, Problem{Path: name, Kind: KindType, Message: fmt.Sprintf("input %q of %s is %s, want %s", name, what, clip(value), in.Type)})
		case !refers && !in.allows(value):
			allowed := make([]string, len(in.Enum))
			for i, v := range in.Enum {
				allowed[i] = clip(v)
			}
			found = append(found, Problem{Path: name, Kind: KindValue,
				Message: fmt.Sprintf("input %q of %s is %s, want one of %s", name, what, clip(value), strings.Join(allowed, ", "))})
		}
	}
	for _, name := range names {
		if in := d.Inputs[name]; in.Required && in.Default == nil && given[name] == nil {
			found = append(found, Problem{Path: name, Kind: KindMissing, Message: fmt.Sprintf("%s requires the input %q", what, name)})
		}
	}
	return found
}

// allows reports whether a value is one of the enum, if there is one.
func (in Input) allows(value json.RawMessage) bool {
	return len(in.Enum) == 0 || slices.ContainsFunc(in.Enum, func(v json.RawMessage) bool { return strictjson.Equal(v, value) })
}

// clip returns the beginning of a JSON value, for messages.
func clip(raw json.RawMessage) string { return textcut.Mark(string(raw), 300) }

// givenInputs returns the inputs that a step gives to its child; known is false if they are the
// value of a variable.
func givenInputs(raw json.RawMessage) (given map[string]json.RawMessage, known bool) {
	if len(raw) == 0 {
		return nil, true
	}
	return given, json.Unmarshal(raw, &given) == nil
}

// valueHasType reports whether v has a type of inputs.
func valueHasType(v json.RawMessage, want string) bool {
	var x any
	if json.Unmarshal(v, &x) != nil {
		return false
	}
	switch x := x.(type) {
	case string:
		return want == "string"
	case bool:
		return want == "boolean"
	case float64:
		return want == "number" || want == "integer" && x == float64(int64(x))
	case []any:
		return want == "array"
	case map[string]any:
		return want == "object"
	}
	return false
}

// inlineInputs reports inputs of an inline definition that its step misspells or gives another type, or that are
// required and neither given nor a variable around it. Other names are variables of the child.
func (c *checker) inlineInputs(s *Step, d *Definition, path string) {
	given, known := givenInputs(s.Fields["inputs"])
	if !known || len(d.Inputs) == 0 || s.Fields["inputs"] == nil && s.Type != "sentinel" {
		return
	}
	names := slices.Sorted(maps.Keys(d.Inputs))
	for _, p := range d.CheckGiven("the definition", given, true) {
		name := p.Path
		switch p.Path = path + ".inputs." + name; p.Kind {
		case KindUnknown:
			if near := c.Suggest(name, names); len(near) > 0 {
				c.warn(p.Path, p.Hint, "%s", p.Message)
			}
		case KindMissing:
			if !c.set[name] {
				p.Path, p.Hint = path, fmt.Sprintf(`write "inputs": {%q: ...}`, name)
				c.Add(p)
			}
		default:
			c.Add(p)
		}
	}
}
