package sentinels

import (
	"encoding/json"
	"strconv"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// EachStep calls f for every step with its path, such as "steps[3].then[0]", a step
// before those nested in it. Steps of inline definitions are not included.
func (d *Definition) EachStep(f func(path string, s *Step)) {
	for _, list := range d.Lists() {
		eachStep(list.Steps, list.Key, f)
	}
}

// A StepList is one of the lists of steps of a definition.
type StepList struct {
	Key   string // steps, onFailure or finally
	Steps []Step
}

// Prefix returns what the addresses of the steps in the list begin with.
func (l StepList) Prefix() string {
	if l.Key == "steps" {
		return ""
	}
	return EndAddress + "." + l.Key + "."
}

// Lists returns the lists of steps of the definition itself, in the order of their execution.
func (d *Definition) Lists() []StepList {
	lists := []StepList{{"steps", d.Steps}}
	if len(d.OnFailure) > 0 {
		lists = append(lists, StepList{BlockOnFailure, d.OnFailure})
	}
	if len(d.Finally) > 0 {
		lists = append(lists, StepList{BlockFinally, d.Finally})
	}
	return lists
}

func eachStep(steps []Step, list string, f func(path string, s *Step)) {
	for i := range steps {
		s, at := &steps[i], list+"["+strconv.Itoa(i)+"]"
		f(at, s)
		for _, field := range sortedBlocks(s) {
			eachStep(s.Blocks[field], at+"."+BlockPath(field), f)
		}
	}
}

// Walk calls f for the definition and for every inline definition in its steps. prefix
// is the path of the definition with a dot behind it, "" for d itself.
func (d *Definition) Walk(types *TypeSet, f func(prefix string, d *Definition)) { d.walk(types, "", f) }

func (d *Definition) walk(types *TypeSet, prefix string, f func(prefix string, d *Definition)) {
	f(prefix, d)
	d.EachStep(func(path string, s *Step) {
		spec, ok := types.Lookup(s.Type)
		if !ok {
			return
		}
		for _, mark := range spec.Marks() {
			raw := s.Fields[mark.Path]
			if mark.Mark != markDefinition || len(raw) == 0 || RefOf(raw) != "" {
				continue
			}
			// What is wrong with its format was reported when d was decoded.
			if inner := Lenient(raw, DecodeOptions{Types: types}); inner != nil {
				inner.walk(types, prefix+path+"."+mark.Path+".", f)
			}
		}
	})
}

// RefOf returns the id in {"$ref": id}, "" for any other value of a field that holds a
// definition.
func RefOf(raw json.RawMessage) (id ID) {
	strictjson.EachMember(raw, func(name, value []byte) bool {
		if !strictjson.IsString(name, "$ref") {
			return true
		}
		if value[0] == '"' {
			id = ID(strictjson.Unquote(value))
		}
		return false
	})
	return id
}

// References returns the stored sentinels that steps refer to, also those of inline
// definitions: the id by the path of its "$ref".
func (d *Definition) References(types *TypeSet) map[string]ID {
	found := map[string]ID{}
	d.Walk(types, func(prefix string, d *Definition) {
		d.EachStep(func(path string, s *Step) {
			spec, ok := types.Lookup(s.Type)
			if !ok {
				return
			}
			for _, mark := range spec.Marks() {
				if id := RefOf(s.Fields[mark.Path]); mark.Mark == markDefinition && id != "" {
					found[prefix+path+"."+mark.Path+".$ref"] = id
				}
			}
		})
	})
	return found
}
