package sentinels

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
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
// name by {"$ref": id}: one that the sentinel does not have, one that it requires and is not
// given, and a value of another type. child returns the definition of one, nil if it is not known.
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
			def := child(id)
			if def == nil {
				continue
			}
			given, known := givenInputs(s)
			if !known {
				continue
			}
			names := slices.Sorted(maps.Keys(def.Inputs))
			for _, name := range slices.Sorted(maps.Keys(given)) {
				at := path + ".inputs." + name
				in, ok := def.Inputs[name]
				if !ok && len(names) > 0 {
					found = append(found, Problem{Path: at, Kind: KindUnknown, Message: fmt.Sprintf("sentinel %q has no input %q", id, name), Hint: didYouMean(name, names)})
				} else if got := literalType(given[name]); ok && in.Type != "" && got != "" && got != in.Type && !(got == "integer" && in.Type == "number") {
					found = append(found, Problem{Path: at, Kind: KindType, Message: fmt.Sprintf("is of type %s, but the type of the input of sentinel %q is %s", got, id, in.Type)})
				}
			}
			for _, name := range names {
				if in := def.Inputs[name]; in.Required && in.Default == nil && given[name] == nil {
					found = append(found, Problem{Path: path, Kind: KindMissing, Message: fmt.Sprintf("sentinel %q requires the input %q", id, name), Hint: fmt.Sprintf(`write "inputs": {%q: ...}`, name)})
				}
			}
		}
	})
	return found
}

// givenInputs returns the inputs that a step gives to its child; known is false if they are the
// value of a variable.
func givenInputs(s *Step) (given map[string]json.RawMessage, known bool) {
	raw := s.Fields["inputs"]
	if len(raw) == 0 {
		return nil, true
	}
	return given, json.Unmarshal(raw, &given) == nil
}

// literalType returns the type of a value as inputs name it, "" for one with a reference.
func literalType(raw json.RawMessage) string {
	switch raw[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "boolean"
	case 'n':
		return ""
	case '"':
		if reference.IsReference(reference.Text(raw)) {
			return ""
		}
		return "string"
	}
	if strings.ContainsAny(string(raw), ".eE") {
		return "number"
	}
	return "integer"
}

// inlineInputs reports inputs of an inline definition that its step misspells, or that are
// required and neither given nor a variable around it.
func (c *checker) inlineInputs(s *Step, d *Definition, path string) {
	given, known := givenInputs(s)
	if !known || len(d.Inputs) == 0 || s.Fields["inputs"] == nil && s.Type != "sentinel" {
		return
	}
	names := slices.Sorted(maps.Keys(d.Inputs))
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, ok := d.Inputs[name]; ok {
			continue
		}
		if near := c.Suggest(name, names); len(near) > 0 {
			c.warn(path+".inputs."+name, "did you mean "+quotedList(near, " or ")+"?", "the definition has no input %q", name)
		}
	}
	for _, name := range names {
		if in := d.Inputs[name]; in.Required && in.Default == nil && given[name] == nil && !c.set[name] {
			c.Add(Problem{Path: path, Kind: KindMissing, Message: fmt.Sprintf("the definition requires the input %q", name), Hint: fmt.Sprintf(`write "inputs": {%q: ...}`, name)})
		}
	}
}
