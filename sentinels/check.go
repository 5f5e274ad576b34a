package sentinels

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// Check returns what is probably wrong with a definition beside the problems of [Inspect]:
// warnings, and errors for references that can never have a value ([KindUnknown]), both
// without line and column; see [Problems.Locate]. known are names of variables that the
// caller will set. Fields of steps whose type is not in types are not checked.
//
// A variable is known if it is reserved, an input, one of "variables", the outputTo of
// any step, the id of a step, or named by a field that is marked as the name of a
// variable, such as the item of a loop.
//
// A check whose context ends returns what it has found so far.
func Check(ctx context.Context, d *Definition, types *TypeSet, known ...string) Problems {
	c := checker{Findings: NewFindings(ctx), typos: make(map[string]bool), types: types, set: make(map[string]bool), assigned: make(map[string]bool), kept: make(map[string]string), results: make(map[string]result)}
	for _, name := range slices.Concat(Reserved, known) {
		c.set[name], c.assigned[name] = true, true
	}
	c.definition(d, "")
	c.startInputs(d, known)
	return c.Problems
}

type checker struct {
	types      *TypeSet
	set        map[string]bool              // names that have a value at some time
	kept       map[string]string            // names that steps set and keep to themselves: what to do instead
	assigned   map[string]bool              // names that may have a value at the step in question, in the first iteration
	results    map[string]result            // what is known about their values, by variable
	inputs     map[string]bool              // of the definition and those around it
	fields     map[string]map[string]string // JSON types of the fields of outputs, by variable
	ids        []string                     // of the steps of the definition
	text       string                       // the text that is being checked
	dashedIn   string                       // the text of dashedRefs
	dashedRefs map[string]string            // answers of dashed for the text

	open  bool            // a step of another plugin, or of unknown type, may set any variable
	typos map[string]bool // answers of isTypo
	*Findings

	texts    map[string]bool            // inputs of type string, and variables that stay the text that they begin with; true if no step sets a variable of that name
	inShell  bool                       // the text is a shell line
	env      map[string]json.RawMessage // the environment of the definition
	stepEnv  json.RawMessage            // and of the step that is being checked
	shellOf  Interpreter                // of the definition
	lastOf   map[*Step]bool             // the last steps of nested lists, whose output is that of the list
	usesLast bool                       // a step reads $last
}

// collect records the variables that the steps set.
func (c *checker) collect(steps []Step) {
	eachStep(steps, "", func(_ string, s *Step) {
		c.usesLast = c.usesLast || strings.Contains(s.Condition, "$last")
		for _, raw := range s.Fields {
			c.usesLast = c.usesLast || bytes.Contains(raw, []byte("$last"))
		}
		if s.OutputTo != "" && s.Parse == "" {
			c.setResult(s.OutputTo, c.resultOf(s))
		}
		if spec, ok := c.types.Lookup(s.Type); !ok || spec.Plugin != builtIn {
			c.open = true
		}
	})
}

// builtIn is the plugin whose step types set no other variables than their fields name.
const builtIn = "builtin"

// warn adds a warning. [Problems.Locate] adds line and column, because a Definition
// has no reference to its text.
func (c *checker) warn(path, hint, format string, args ...any) {
	c.Add(Problem{Path: path, Kind: KindWarning, Hint: hint, Message: fmt.Sprintf(format, args...)})
}

// definition checks d; prefix is the path of the field that contains it.
func (c *checker) definition(d *Definition, prefix string) {
	c.env = d.Env
	if len(d.Shell) > 0 {
		c.shellOf = d.Shell
	}
	names := VariablesOf(d, c.types)
	for name := range names.set {
		c.set[name] = true
	}
	for id := range names.kept {
		c.set[id] = true
	}
	inputs := maps.Clone(c.inputs)
	if inputs == nil {
		inputs = make(map[string]bool)
	}
	for name := range d.Inputs {
		c.assigned[name], inputs[name] = true, true
	}
	for name, in := range d.Inputs {
		for _, used := range reference.Names(in.Default) {
			if c.set[used] || slices.Contains(Reserved, used) {
				c.warn(prefix+"inputs."+name+".default", "compute it with a step of type set", "references in a default are not resolved: $%s stays as it is written", used)
				break
			}
		}
	}
	c.inputs = inputs
	d.EachStep(func(_ string, s *Step) {
		if s.ID != "" {
			c.ids = append(c.ids, s.ID)
		}
	})
	for name, value := range d.Variables {
		c.assigned[name] = true
		if len(reference.Names(value)) > 0 {
			c.warn(prefix+"variables."+name, "compute it with a step of type set", "references in initial values are not resolved")
		}
	}
	for name, value := range d.Env {
		c.secretsIn(prefix+"env."+name, value)
		for _, variable := range reference.Names(value) {
			if c.set[variable] {
				c.warn(prefix+"env."+name, `give it in the "env" of the steps that need it`, "$%s stays as written: references in the environment of a definition are not resolved", variable)
			}
		}
	}
	c.booleanTexts(d.Inputs)
	for _, list := range d.Lists() {
		c.collect(list.Steps)
	}
	c.findTexts(d)
	c.outputs(d)
	c.filters(d, prefix)
	for _, ref := range reference.In(d.Loop.Max) {
		if c.set[ref.Name] {
			c.reference(prefix+"loop.max", ref)
		} else { // it cannot stay as written
			c.unknown(prefix+"loop.max", ref.Name, true, "")
		}
	}
	for _, list := range d.Lists() {
		c.list(nil, list.Key, list.Steps, prefix+list.Key)
	}
	c.expression(prefix+"loop.check", d.Loop.Check)
	c.truthiness(prefix+"loop.check", d.Loop.Check)
	c.alwaysFalse(prefix+"loop.check", d.Loop.Check)
	c.retry(prefix+"onError.retry.", d.OnError.Retry)
	c.limits(d, prefix)
}

// list checks the steps of a key; s is nil for those of the definition. onFailure and finally have $result, and what
// they and items of a loop with maxConcurrent set is gone behind them.
func (c *checker) list(s *Step, key string, steps []Step, path string) {
	instead := ""
	switch {
	case key == BlockOnFailure || key == BlockFinally:
		set := c.set[varResult]
		defer func() { c.set[varResult] = set }()
		c.set[varResult], instead = true, "what onFailure and finally set stays in them"
	case s != nil && s.Type == "loop" && len(s.Fields["maxConcurrent"]) > 0:
		instead = `give the loop "outputTo": "all" and use $all.results, the outputs of the items`
		if key == "steps" {
			c.lostUpdates(s, steps, path)
		}
	}
	if s != nil && len(steps) > 0 && key != BlockOnFailure && key != BlockFinally {
		if c.lastOf == nil {
			c.lastOf = make(map[*Step]bool)
		}
		c.lastOf[&steps[len(steps)-1]] = true
	}
	if instead == "" {
		c.steps(steps, path)
		return
	}
	before := maps.Clone(c.assigned)
	if key != "steps" {
		c.assigned[varResult] = true
	}
	c.steps(steps, path)
	for name := range c.assigned {
		if name != "" && !before[name] {
			c.kept[name] = instead
		}
	}
	c.assigned = before
}

func (c *checker) steps(steps []Step, path string) {
	for i := range steps {
		if c.Ended() {
			return
		}
		c.step(&steps[i], path+"["+strconv.Itoa(i)+"]")
	}
}

// step checks each field as it will be used at run time: as a condition, a shell
// line, or text with references. Then the step's variables may have values.
func (c *checker) step(s *Step, path string) {
	c.expression(path+".condition", s.Condition)
	c.truthiness(path+".condition", s.Condition)
	c.alwaysFalse(path+".condition", s.Condition)
	spec, _ := c.types.Lookup(s.Type)
	c.stepEnv = s.Fields["env"]
	for _, name := range slices.Sorted(maps.Keys(s.Fields)) {
		if spec == nil {
			break // the fields mean nothing
		}
		raw := s.Fields[name]
		if name == "argv" {
			c.argv(path+".argv", raw)
		}
		if source, ok := ExpressionIn(raw); ok && spec.Evaluates(name) {
			c.expression(path+"."+name+".expr", source)
			continue
		}
		if c.secretsIn(path+"."+name, raw) {
			continue
		}
		switch at := path + "." + name; spec.Mark(name) {
		case markExpression:
			c.expression(at, reference.Text(raw))
			if spec.hasConditions() {
				c.truthiness(at, reference.Text(raw))
			}
			c.alwaysFalse(at, reference.Text(raw))
		case markShell:
			if i, _ := spec.Interpreter(s, c.shellOf); i.IsShell() {
				c.shell(at, raw, i)
			} else {
				c.otherLine(at, raw, i)
			}
		case markInterpreter:
			if _, ok := InterpreterOf(raw); !ok {
				c.Add(Problem{Path: at, Kind: KindValue, Message: "is not an interpreter: want " + wantInterpreter, Hint: `such as "bash"`})
			}
		case markDefinition:
			c.nested(s, path, at, raw)
		case markValues:
			c.values(at, raw)
		case markRaw:
		case markParams:
			c.params(at, raw, reference.Text(s.Fields["command"]) == ShellCommand)
		default:
			c.references(at, raw)
			if s.Type == "loop" && name == "each" {
				c.listOfEach(at, reference.Text(raw))
			}
		}
	}
	c.retry(path+".onError.retry.", s.OnError.Retry)
	c.requestSecrets(s, path)
	c.output(s, path)
	c.childTools(s, path)
	c.unused(s, path)
	c.event(s, path)
	for _, name := range setBy(s, c.types) {
		if name != s.OutputTo {
			c.assigned[name] = true
		}
	}
	for _, field := range sortedBlocks(s) {
		c.list(s, field, s.Blocks[field], path+"."+BlockPath(field))
	}
	c.assigned[s.OutputTo], c.assigned[s.ID] = true, true
}

// event warns of a pattern of events that a wait probably does not mean, and refuses names of events
// that no pattern matches. Plugins cannot: only the engine knows the events of runs.
func (c *checker) event(s *Step, path string) {
	at, name := path+".event", reference.Text(s.Fields["event"])
	switch {
	case strings.Contains(name, "$") || strings.Contains(name, "{{"):
		return // known when it is resolved, or a template of another system
	case s.Type == "emit" && name != "": // an empty one is refused by the step type
		if problem, hint := CheckEventName(name); problem != "" {
			c.Add(Problem{Path: at, Kind: KindValue, Hint: hint, Message: problem})
		}
		return
	case s.Type != "wait" && s.Type != "watch":
		return
	}
	if names := alternatives(name); names != nil {
		c.warn(at, "write "+quoted(alternativesPattern.ReplaceAllString(name, "*"))+", which matches any word there, or a trigger with a list of events",
			bracesText, name)
	}
	if problem, hint := CheckRunPattern(name); problem != "" && reference.Text(s.Fields["source"]) != string(SourceUser) {
		c.warn(at, hint, "%s", problem)
	}
	if missesRuns(name) {
		c.warn(at, missesRunsHint, missesRunsText, name)
	}
	if s.Fields["source"] != nil && s.Fields["event"] != nil && !IsRunEvent(name) {
		c.warn(path+".source", "", "source has no effect: it is about events of the form sentinel:ID:WORD")
	}
}

// values checks the entries of a field that is marked as values.
func (c *checker) values(path string, raw json.RawMessage) {
	strictjson.EachMember(raw, func(name, value []byte) bool {
		at := path + "." + strictjson.Unquote(name)
		if source, ok := ExpressionIn(value); ok {
			c.expression(at+".expr", source)
			c.alwaysFalse(at+".expr", source)
			c.mayBeUndefined(at, source)
		} else {
			c.references(at, value)
			c.computation(at, reference.Text(value))
		}
		return true
	})
}

// params checks the parameters of a command. One may be a shell line, in which $HOME
// belongs to the shell; only the command defines which parameters are.
func (c *checker) params(path string, raw json.RawMessage, shell bool) {
	if len(raw) == 0 || raw[0] != '{' {
		c.references(path, raw)
		return
	}
	strictjson.EachMember(raw, func(name, value []byte) bool {
		at := path + "." + strictjson.Unquote(name)
		if field := strictjson.Unquote(name); shell && (field == "cmd" || field == "command") {
			c.shell(at, value, nil)
			return true
		}
		for _, ref := range reference.In(value) {
			if ref.Name != strings.ToUpper(ref.Name) || c.set[ref.Name] {
				c.reference(at, ref)
			}
		}
		c.foreign(at, value)
		return true
	})
}

// references checks the references in the strings of a value.
func (c *checker) references(path string, raw json.RawMessage) {
	c.text = string(raw)
	for _, ref := range reference.In(raw) {
		c.reference(path, ref)
	}
	c.variableIndex(path, c.text)
	c.foreign(path, raw)
}

// reference reports a reference without a value: for ever, or in the first iteration.
func (c *checker) reference(path string, ref reference.Reference) {
	if c.Ended() || ref.Braces && !c.set[ref.Name] {
		return // with braces it is of another language, such as a template of JavaScript
	}
	c.member(path, ref)
	c.pathOfText(path, ref)
	switch {
	case !c.set[ref.Name]:
		c.unknown(path, ref.Name, ref.Path != "" && !strings.HasPrefix(ref.Path, "?"), "stays as written")
	case !c.assigned[ref.Name] && c.kept[ref.Name] != "":
		c.warn(path, c.kept[ref.Name], "$%s has no value here: the steps that set it keep it to themselves", ref.Name)
	case !c.assigned[ref.Name]:
		c.warn(path, `set it before, with "variables" or a step of type set`, "$%s has no value here in the first iteration: a later step sets it", ref.Name)
	}
}

// runFields are the fields of $run.
var runFields = []string{"id", "iteration", "sentinel", "workspace"}

// member reports a reference to an input, a step or a field of the run that does not exist.
func (c *checker) member(path string, ref reference.Reference) {
	var known []string
	switch ref.Name {
	case "inputs":
		known = slices.Sorted(maps.Keys(c.inputs))
	case varSteps:
		known = c.ids
	case "run":
		known = runFields
	default:
		return
	}
	m := namePattern.FindStringSubmatch(ref.String())
	if m == nil || strings.HasPrefix(m[2], "?") {
		return
	}
	key, ok := stepKey(m[2])
	if !ok || slices.Contains(known, key) {
		return
	}
	c.noMember(path, ref.Name, key, known)
}

// noMember reports a member that $inputs, $steps or $run does not have.
func (c *checker) noMember(path, name, key string, known []string) {
	hint := ""
	if near := c.Suggest(key, known); len(near) > 0 {
		hint = "did you mean " + quotedList(near, " or ") + "?"
	} else if c.Suggests() && len(known) > 0 {
		hint = "known: " + strings.Join(known, ", ")
	} else if len(known) == 0 {
		hint = map[string]string{"inputs": `declare it under "inputs"`, varSteps: `give a step an "id"`}[name]
	}
	c.Add(Problem{Path: path, Kind: KindUnknown, Hint: hint, Message: fmt.Sprintf("$%s has no %q", name, key)})
}

// expression reports the names in a condition that never have a value. A name whose
// value comes later is undefined, which a condition can test.
func (c *checker) expression(path, source string) {
	c.text = source
	names := reference.NamesInExpression(source)
	for _, m := range namePattern.FindAllStringSubmatch(source, -1) {
		if i := slices.Index(names, m[1]); i >= 0 && !c.set[m[1]] {
			names = slices.Delete(names, i, i+1)
			c.unknown(path, m[1], m[2] != "" && !strings.HasPrefix(strings.TrimSpace(m[2]), "?"), "is undefined")
		} else if i >= 0 && m[1] == varSteps {
			if key, ok := stepKey(m[2]); ok && !strings.HasPrefix(m[2], "?") && !slices.Contains(c.ids, key) && !isMethodOfText(source, m[0]) {
				c.noMember(path, varSteps, key, c.ids)
			}
		} else if i >= 0 && m[1] == "inputs" {
			if key, ok := stepKey(m[2]); ok && !strings.HasPrefix(m[2], "?") && !c.inputs[key] && reference.IsName(key) {
				hint := ""
				if c.Suggests() {
					hint = didYouMean(key, slices.Sorted(maps.Keys(c.inputs)))
				}
				c.warn(path, cmp.Or(hint, `declare it under "inputs"`), "$inputs has no %q, so it is undefined", key)
			}
		}
	}
}

// unknown reports a name that nothing sets: an error if it has a path or is one edit from
// a known name, because a text does not have that by accident.
// effect says what happens to others.
func (c *checker) unknown(path, name string, hasPath bool, effect string) {
	if own := c.dashed(name); own != "" {
		c.Add(Problem{Path: path, Kind: KindUnknown, Hint: "write " + own, Message: fmt.Sprintf("unknown variable $%s", name)})
		return
	}
	var known, near []string
	if c.Suggests() {
		known = slices.Sorted(maps.Keys(c.set))
		near = references(Suggest(name, known))
	}
	if (hasPath || c.isTypo(name)) && !c.open {
		hint := `declare it under "inputs" or "variables", or write "$$" for a dollar`
		if own := c.ofLists(name); own != "" {
			hint = own
		} else if len(near) > 0 {
			hint = "did you mean " + quotedList(near, " or ") + "?"
		} else if own := slices.DeleteFunc(known, func(n string) bool { return slices.Contains(Reserved, n) }); len(own) > 0 && len(own) <= 40 {
			hint = "known: " + strings.Join(references(own), ", ")
		}
		c.Add(Problem{Path: path, Kind: KindUnknown, Hint: hint, Message: fmt.Sprintf("unknown variable $%s", name)})
		return
	}
	hint := `declare it under "inputs", or write "$$" for a dollar`
	if own := c.ofLists(name); own != "" {
		hint = own
	} else if len(near) > 0 {
		hint = "did you mean " + quotedList(near, " or ") + "?"
	}
	c.warn(path, hint, "$%s is never set and %s", name, effect)
}

// dashed returns the reference to the step whose id begins with a name and a dash, if the
// text has that id: $steps["build-it"].exitCode for $build-it.exitCode.
func (c *checker) dashed(name string) string {
	if c.dashedIn != c.text {
		c.dashedIn, c.dashedRefs = c.text, map[string]string{}
		for _, m := range dashedPattern.FindAllStringSubmatch(c.text, -1) {
			ref := m[0]
			first, _, _ := strings.Cut(ref[1:], "-")
			if c.dashedRefs[first] != "" {
				continue
			}
			if id, rest := dashedID(ref, func(id string) bool { return slices.Contains(c.ids, id) }); id != "" {
				c.dashedRefs[first] = `$steps["` + id + `"]` + rest
			}
		}
	}
	return c.dashedRefs[name]
}

// references returns names as they are referred to.
func references(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = "$" + name
	}
	return out
}

// isTypo reports whether a name is one edit from a known one.
func (c *checker) isTypo(name string) bool {
	if len(name) <= 2 || len(name) > maxSuggested || c.Ended() {
		return false
	}
	typo, asked := c.typos[name]
	if asked {
		return typo
	}
	for known := range c.set {
		if oneEdit(known, name) && !slices.Contains(BuiltIn, known) {
			typo = true
			break
		}
	}
	c.typos[name] = typo
	return typo
}

// foreign warns about other systems' forms of references.
func (c *checker) foreign(path string, raw json.RawMessage) {
	eachString(raw, func(text string) {
		for _, m := range foreignPattern.FindAllStringSubmatch(text, -1) {
			switch name := m[2] + m[4]; {
			case m[1] != "" && !strings.HasPrefix(m[1], "secret."):
				first, rest := splitPath(m[1])
				c.warn(path, c.ownForm(first, rest), "%s stays as written", m[0])
			case m[4] != "" && c.set[name]:
				c.warn(path, "write $"+name, "%s stays as written", m[0])
			}
		}
	})
}

// ownForm says how to write a reference that stands in double braces. The forms of the
// original system begin with steps, input, named, loop or env.
func (c *checker) ownForm(first, rest string) string {
	const rewrite = "; `sentinel import --from-continuum FILE` rewrites such files"
	switch {
	case c.set[first] && first != "steps":
		return "write $" + first + rest
	case first == "steps":
		_, field, _ := strings.Cut(strings.TrimPrefix(rest, "."), ".")
		return `write $steps["ID"].` + cmp.Or(field, "output") + `, with the id of the step` + rewrite
	case first == "input" || first == "inputs":
		return "write $inputs" + rest + rewrite
	case first == "named" && rest != "":
		return "write $" + strings.TrimPrefix(rest, ".") + rewrite
	case first == "env" && rest != "":
		return "write ${" + strings.TrimPrefix(rest, ".") + "} in a shell line" + rewrite
	case first == "loop":
		return `write $index, or the name that "outputTo" gives a value` + rewrite
	}
	return `a reference is $name, where name is the "outputTo" of a step, an input or one of "variables"`
}

// foreignPattern matches {{name.path}}, ${name.path} and %name%.
var foreignPattern = lazyregexp.New(`\{\{\s*\$?([A-Za-z_][\w.\[\]-]*)\s*\}\}|\$\{([A-Za-z_]\w*)([.\[][\w.\[\]-]*)?\}|%([A-Za-z_]\w*)%`)

// splitPath splits "a.b[0]" after its first name.
func splitPath(text string) (name, path string) {
	if end := strings.IndexAny(text, ".["); end > 0 {
		return text[:end], text[end:]
	}
	return text, ""
}

// IsExpression reports whether an entry of a field that is marked as values is
// {"expr": source}.
func IsExpression(entry json.RawMessage) bool { _, ok := ExpressionIn(entry); return ok }

// ExpressionIn returns the source of {"expr": source}; ok is false for any other value.
func ExpressionIn(raw json.RawMessage) (source string, ok bool) {
	if len(raw) == 0 || raw[0] != '{' {
		return "", false
	}
	n := 0
	strictjson.EachMember(raw, func(name, value []byte) bool {
		n++
		if strictjson.IsString(name, "expr") && value[0] == '"' {
			source, ok = strictjson.Unquote(value), true
		}
		return true
	})
	return source, ok && n == 1
}

// nested checks an inline definition of a step, which sees the variables around it.
func (c *checker) nested(s *Step, stepPath, path string, raw json.RawMessage) {
	if len(raw) == 0 || raw[0] != '{' {
		c.references(path, raw)
		return
	}
	d, problems := Decode(raw, DecodeOptions{Types: c.types})
	if len(problems) > 0 || len(d.Steps) == 0 {
		return // {"$ref": name}
	}
	inner := checker{
		Findings: c.within(), typos: make(map[string]bool), types: c.types, set: maps.Clone(c.set), assigned: maps.Clone(c.assigned), kept: maps.Clone(c.kept),
		results: maps.Clone(c.results), inputs: c.inputs, open: c.open, fields: c.fields, texts: c.texts, shellOf: c.shellOf,
	}
	c.inlineInputs(s, d, stepPath)
	inner.inline(d, "")
	d.Triggers, d.Concurrency = nil, ""
	inner.definition(d, "")
	for _, p := range inner.Problems {
		p.Path = path + "." + p.Path
		c.Add(p)
	}
}

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
		if mark.Mark == markShell || mark.Mark == markParams && reference.Text(s.Fields["command"]) == ShellCommand {
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
