package sentinels

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// Variables are the names of a definition: which its steps can set, and which its texts
// refer to. It is immutable.
type Variables struct {
	set   map[string]bool
	named map[string]bool
	kept  map[string]bool // ids of steps whose output is kept for $id and $steps
}

// VariablesOf reads the names of a definition. A text of an inline definition counts for
// the definitions around it, because its run sees their variables.
func VariablesOf(d *Definition, types *TypeSet) *Variables {
	v := &Variables{set: make(map[string]bool), named: make(map[string]bool), kept: make(map[string]bool)}
	for name := range d.Inputs {
		v.set[name] = true
	}
	for name := range d.Variables {
		v.set[name] = true
	}
	var ids []string
	d.EachStep(func(_ string, s *Step) {
		for _, name := range setBy(s, types) {
			v.set[name] = true
		}
		if s.ID != "" {
			ids = append(ids, s.ID)
		}
	})
	keys, anyStep := map[string]bool{}, false
	eachText(d, func(text string) {
		for _, m := range namePattern.FindAllStringSubmatch(text, -1) {
			v.named[m[1]] = true
			if m[1] == varSteps {
				key, ok := stepKey(m[2])
				keys[key], anyStep = true, anyStep || !ok
			}
		}
	})
	for _, id := range ids {
		if anyStep || keys[id] || reference.IsName(id) && v.named[id] {
			v.kept[id] = true
		}
	}
	return v
}

// Set reports whether the definition has a variable: an input, an initial value, the
// outputTo or another name that a step sets, or the id of a step that a text refers to.
func (v *Variables) Set(name string) bool { return v.set[name] || v.kept[name] }

// Unset returns the names that texts refer to and nothing in the definition sets, sorted.
func (v *Variables) Unset() []string {
	var names []string
	for name := range v.named {
		if !v.Set(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Named reports whether a text of the definition refers to a name.
func (v *Variables) Named(name string) bool { return v.named[name] }

// Kept reports whether the output of the step with an id is kept, because a text refers
// to it by $id or $steps.
func (v *Variables) Kept(id string) bool { return v.kept[id] }

// KeptIDs returns the ids that Kept reports, sorted.
func (v *Variables) KeptIDs() []string { return slices.Sorted(maps.Keys(v.kept)) }

// varResult is the variable of onFailure and finally. It is not reserved, because steps often call their output so: it
// is a variable of these lists alone.
const varResult = "result"

// ResultSchema is the JSON Schema of $result.
const ResultSchema = `{
  "type": "object",
  "properties": {
    "status": {"type": "string", "enum": ["completed", "failed", "stopped", "timed_out"]},
    "reason": {"type": ["string", "null"], "description": "The limit that was reached; of a loop or group that ends with what is around it also stop, branch, timeout or interrupted; null without one."},
    "error": {"type": ["object", "null"], "properties": {
      "code": {"type": "string"},
      "message": {"type": "string"},
      "step": {"type": "string", "description": "Address of the step that failed, such as 3.then.0; of a limit, the loop or group that has the list, and empty of the run's."},
      "stepId": {"type": "string", "description": "Its id, else its name, else its address."},
      "exitCode": {"type": ["integer", "null"], "description": "Of a program that failed, else null."},
      "data": {"description": "Of the error; null without some."}
    }, "required": ["code", "message", "step", "stepId", "exitCode", "data"], "additionalProperties": false}
  },
  "required": ["status", "reason", "error"],
  "additionalProperties": false
}`

// varSteps is the reserved variable with the outputs of steps by id.
const varSteps = "steps"

// namePattern matches a name after a dollar, and what may be the first key after it.
var namePattern = lazyregexp.New(`\$([A-Za-z_][A-Za-z0-9_]*)((?:\s*\??\.?\s*\[\s*(?:"[^"]*"|'[^']*')\s*\]|\s*\??\.\s*[A-Za-z_][A-Za-z0-9_]*)?)`)

// stepKey returns the key in `["build-it"]` or ".build"; ok is false if there is none
// that can be read without evaluating an expression.
func stepKey(text string) (key string, ok bool) {
	key = strings.Trim(text, " \t\n?.[]\"'")
	return key, key != ""
}

// setBy returns the variables that a step sets: its outputTo and those that its marked
// fields name.
func setBy(s *Step, types *TypeSet) []string {
	var names []string
	if s.OutputTo != "" {
		names = append(names, s.OutputTo)
	}
	spec, ok := types.Lookup(s.Type)
	if !ok {
		return names
	}
	properties, _ := spec.compiled.raw["properties"].(map[string]any)
	for _, mark := range spec.Marks() {
		raw, given := s.Fields[mark.Path]
		switch {
		case mark.Mark == markValues && given && raw[0] == '{':
			strictjson.EachMember(raw, func(name, _ []byte) bool {
				names = append(names, strictjson.Unquote(name))
				return true
			})
		case mark.Mark == markVariable && given:
			names = append(names, reference.Text(raw))
		case mark.Mark == markVariable:
			property, _ := properties[mark.Path].(map[string]any)
			if name, ok := property["default"].(string); ok {
				names = append(names, name)
			}
		}
	}
	return names
}

// CommandsIn returns the commands that the steps of a definition name: those they call,
// that of shell lines, and the entries of their lists of tools. Inline definitions are not
// searched.
func CommandsIn(d *Definition, types *TypeSet) []string {
	names := map[string]bool{}
	d.EachStep(func(_ string, s *Step) {
		spec, ok := types.Lookup(s.Type)
		if !ok {
			return
		}
		if command := spec.Command(); command != "" {
			names[command] = true
		}
		for _, mark := range spec.Marks() {
			raw := s.Fields[mark.Path]
			switch {
			case mark.Mark == markParams && s.Fields["command"] != nil:
				names[reference.Text(s.Fields["command"])] = true
			case mark.Mark == markTools:
				eachString(raw, func(tool string) { names[tool] = true })
			}
		}
		if command := s.Fields["command"]; command != nil && spec.Mark("command") == "" {
			names[reference.Text(command)] = true
		}
	})
	return slices.Sorted(maps.Keys(names))
}

// eachText calls f for every text of a definition that may contain references.
func eachText(d *Definition, f func(text string)) {
	onError := func(e OnError) { e.Retry.Conditions(func(_, source string) { f(source) }) }
	f(d.Loop.Check)
	onError(d.OnError)
	eachString(d.Loop.Max, f)
	d.EachStep(func(_ string, s *Step) {
		f(s.Condition)
		onError(s.OnError)
		for _, raw := range s.Fields {
			eachString(raw, f)
		}
	})
}

// eachString calls f for the strings of a JSON value.
func eachString(raw json.RawMessage, f func(text string)) {
	if len(raw) == 0 {
		return
	}
	switch raw[0] {
	case '{':
		strictjson.EachMember(raw, func(_, value []byte) bool { eachString(value, f); return true })
	case '[':
		strictjson.EachItem(raw, func(value []byte) bool { eachString(value, f); return true })
	case '"':
		f(strictjson.Unquote(raw))
	}
}

// sortedBlocks returns the fields of a step's nested lists: then before else, branches by
// their number or their name, and all others by name.
func sortedBlocks(s *Step) []string { return slices.SortedFunc(maps.Keys(s.Blocks), compareBlocks) }

// compareBlocks orders the paths of nested lists: by field, then numbers as such.
func compareBlocks(a, b string) int {
	field, x, _ := strings.Cut(a, ".")
	other, y, _ := strings.Cut(b, ".")
	if order := cmp.Compare(endRank(field), endRank(other)); order != 0 {
		return order
	}
	if field == other && len(x) != len(y) && !stepID(x) && !stepID(y) {
		return len(x) - len(y)
	}
	return strings.Compare(a, b)
}

// endRank orders the lists of a step that are executed after it behind its others.
func endRank(field string) int { return slices.Index([]string{BlockOnFailure, BlockFinally}, field) }

// BlockPath returns where the list of steps with a field path is in the text of its step: branches[1] for
// "branches.1", branches.lint for "branches.lint".
func BlockPath(field string) string {
	name, index, branch := strings.Cut(field, ".")
	switch {
	case !branch:
		return field
	case stepID(index):
		return strictjson.Join(name, index)
	}
	return name + "[" + index + "]"
}
