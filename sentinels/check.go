package sentinels

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels/reference"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// Check returns the parts of a valid definition that are probably mistakes, as
// problems of [KindWarning] without line and column; see [Problems.Locate].
// known are names of variables that the caller will set.
//
// A variable is known if it is reserved, an input, the outputTo of any step, or
// named by a field that is marked as the name of a variable, such as the item of
// a loop.
func Check(d *Definition, types *TypeSet, known ...string) Problems {
	c := checker{types: types, set: make(map[string]bool), results: make(map[string]result)}
	for _, name := range slices.Concat(Reserved, known) {
		c.set[name] = true
	}
	for name := range d.Inputs {
		c.set[name] = true
	}
	c.booleanTexts(d.Inputs)
	c.collect(d.Steps)
	c.definition(d, "")
	return c.problems
}

type checker struct {
	types    *TypeSet
	set      map[string]bool
	results  map[string]result // what is known about their values, by variable
	problems Problems
}

// collect records the variables that the steps set.
func (c *checker) collect(steps []Step) {
	for i := range steps {
		s := &steps[i]
		if s.OutputTo != "" {
			c.set[s.OutputTo] = true
			c.setResult(s.OutputTo, c.resultOf(s))
		}
		for _, name := range c.ownNames(s) {
			c.set[name] = true
		}
		for _, block := range s.Blocks {
			c.collect(block)
		}
	}
}

// ownNames returns the variables that a step's marked fields name, explicitly or by
// the default in the schema.
func (c *checker) ownNames(s *Step) []string {
	spec, ok := c.types.Lookup(s.Type)
	if !ok {
		return nil
	}
	properties, _ := spec.compiled.raw["properties"].(map[string]any)
	var names []string
	for _, mark := range spec.Marks() {
		if mark.Mark != markVariable {
			continue
		}
		if raw, ok := s.Fields[mark.Path]; ok {
			names = append(names, reference.Text(raw))
			continue
		}
		property, _ := properties[mark.Path].(map[string]any)
		if name, ok := property["default"].(string); ok {
			names = append(names, name)
		}
	}
	return names
}

// warn adds a warning. [Problems.Locate] adds line and column, because a Definition
// has no reference to its text.
func (c *checker) warn(path, hint, format string, args ...any) {
	c.problems = append(c.problems, Problem{Path: path, Kind: KindWarning, Hint: hint, Message: fmt.Sprintf(format, args...)})
}

// definition checks d; prefix is the path of the field that contains it.
func (c *checker) definition(d *Definition, prefix string) {
	c.steps(d.Steps, prefix+"steps")
	c.names(prefix+"loop.check", reference.NamesInExpression(d.Loop.Check))
	c.truthiness(prefix+"loop.check", d.Loop.Check)
	c.names(prefix+"loop.max", reference.Names(d.Loop.Max))
}

func (c *checker) steps(steps []Step, path string) {
	for i := range steps {
		c.step(&steps[i], path+"["+strconv.Itoa(i)+"]")
	}
}

// step checks each field as it will be used at run time: as a condition, a shell
// line, or text with references.
func (c *checker) step(s *Step, path string) {
	c.names(path+".condition", reference.NamesInExpression(s.Condition))
	c.truthiness(path+".condition", s.Condition)
	spec, _ := c.types.Lookup(s.Type)
	for _, name := range slices.Sorted(maps.Keys(s.Fields)) {
		raw := s.Fields[name]
		mark := ""
		if spec != nil {
			mark = spec.Mark(name)
		}
		switch at := path + "." + name; mark {
		case markExpression:
			c.names(at, reference.NamesInExpression(reference.Text(raw)))
			if spec.hasConditions() {
				c.truthiness(at, reference.Text(raw))
			}
		case markShell:
			c.shell(at, raw)
		case markDefinition:
			c.nested(at, raw)
		case markRaw:
		case markParams:
			// A parameter may be a shell line, in which $HOME belongs to the shell.
			// Only the command defines which parameters are.
			c.names(at, slices.DeleteFunc(reference.Names(raw), func(name string) bool { return name == strings.ToUpper(name) }))
		default:
			c.names(at, reference.Names(raw))
		}
	}
	for _, field := range slices.Sorted(maps.Keys(s.Blocks)) {
		name, index, branch := strings.Cut(field, ".")
		at := path + "." + name
		if branch {
			at += "[" + index + "]"
		}
		c.steps(s.Blocks[field], at)
	}
}

// names warns about variables that are never set.
func (c *checker) names(path string, names []string) {
	for _, name := range names {
		if c.set[name] {
			continue
		}
		hint := `declare it under "inputs", or write "$$" for a dollar`
		if near := Suggest(name, slices.Sorted(maps.Keys(c.set))); len(near) > 0 {
			hint = "did you mean " + quotedList(near, " or ") + "?"
		}
		c.warn(path, hint, "$%s is never set", name)
	}
}

// shell warns about references in single quotes. Names that are never set are
// variables of the shell.
func (c *checker) shell(path string, raw json.RawMessage) {
	lines := []json.RawMessage{raw}
	if len(raw) > 0 && raw[0] == '[' {
		lines = nil
		strictjson.EachItem(raw, func(line []byte) bool { lines = append(lines, line); return true })
	}
	for _, line := range lines {
		reference.EachInShellLine(reference.Text(line), func(ref reference.Reference, quoted bool) {
			if quoted && c.set[ref.Name] {
				c.warn(path, "use double quotes", "%s is in single quotes, where the shell does not expand it", ref)
			}
		})
	}
}

// nested checks an inline definition. The variables around it are known in it too.
func (c *checker) nested(path string, raw json.RawMessage) {
	d, problems := Decode(raw, DecodeOptions{Types: c.types})
	if len(problems) > 0 || len(d.Steps) == 0 {
		return // {"$ref": name}
	}
	for _, p := range Check(d, c.types, slices.Collect(maps.Keys(c.set))...) {
		p.Path = path + "." + p.Path
		c.problems = append(c.problems, p)
	}
}

// shellCommand is the command whose result is that of a shell line.
const shellCommand = "code/shell/execute"

// result is what is known about the value of a variable.
type result int

const (
	resultStep     result = iota // the output of a step: "text" is a string
	resultShell                  // the output of a shell line: "output", "stdout" and "stderr" are strings too
	resultBoolText               // a string that is used as a boolean
)

// resultOf returns what is known about the output of a step.
func (c *checker) resultOf(s *Step) result {
	spec, ok := c.types.Lookup(s.Type)
	if !ok {
		return resultStep
	}
	for _, mark := range spec.Marks() {
		if mark.Mark == markShell || mark.Mark == markParams && reference.Text(s.Fields["command"]) == shellCommand {
			return resultShell
		}
	}
	return resultStep
}

// setResult records what is known about a variable. If several steps set it, it keeps
// what is true for all of them.
func (c *checker) setResult(name string, r result) {
	if before, ok := c.results[name]; ok && before != r {
		r = resultStep
	}
	c.results[name] = r
}

// booleanTexts records the inputs that are declared as string and have the value 'true'
// or 'false'.
func (c *checker) booleanTexts(inputs map[string]Input) {
	for name, in := range inputs {
		values := append(slices.Clone(in.Enum), in.Default)
		for _, v := range values {
			if in.Type == "string" && (string(v) == `"true"` || string(v) == `"false"`) {
				c.results[name] = resultBoolText
			}
		}
	}
}

// truthiness warns about a condition that tests a string: 'false' is true, like every
// string that is not empty.
func (c *checker) truthiness(path, source string) {
	for _, ref := range reference.TestedIn(source) {
		r, known := c.results[ref.Name]
		field := strings.Join(ref.Fields, ".")
		switch {
		case !known:
		case field == "" && r == resultBoolText:
			c.warn(path, "write "+ref.Text+` === 'true', or declare the input with type "boolean"`,
				"%s is a text, and every text that is not empty is true, also 'false'", ref.Text)
		case field == "" && r == resultShell:
			c.warn(path, "write "+ref.Text+".success, or "+ref.Text+".text === 'true'",
				"%s is an object, the result of a shell line, and every object is true", ref.Text)
		case field == "text":
			c.warn(path, "write "+ref.Text+" === 'true', or "+ref.Text+" !== '' to accept any text",
				"%s is a text, and every text that is not empty is true, also 'false'", ref.Text)
		case (field == "output" || field == "stdout" || field == "stderr") && r == resultShell:
			trimmed := strings.TrimSuffix(ref.Text, ".trim()") + ".trim()"
			c.warn(path, "write "+trimmed+" === 'true', or "+trimmed+" !== '' to accept any text",
				"%s is a text, and every text that is not empty is true, also 'false'", ref.Text)
		}
	}
}
