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

// A shape is what is known about a value: its fields by name, each with its own shape. A nil
// one may be anything.
type shape struct {
	fields map[string]*shape
	list   bool // it is a list, which has no fields
	text   bool // it is a text, which has none either
	// others reports whether a field that fields lacks may exist; optional is true if the
	// reference allows for its absence with "?.". Default nil: none does.
	others func(name string, optional bool) bool
	// unlikely says in which case the value has such a field all the same: then its absence
	// is a warning. Default "": it is an error.
	unlikely string
	instead  func(name string) string // what to write for such a field, "" for nothing better than a similar name
}

// Variables with a shape of their own.
const (
	eventVariable  = "event"
	stepsVariable  = "steps"
	resultVariable = "result"
)

// approveStep is the step type whose skipped error has all fields of its output.
const approveStep = "approve"

// shapes returns what is known about the values of variables.
func (v *check) shapes() map[string]*shape {
	known := map[string]*shape{}
	set := func(name string, s *shape) {
		if before, again := known[name]; again {
			s = union(before, s)
		}
		known[name] = s
	}
	ids := map[string]*shape{}
	v.definition.EachStep(func(_ string, s *sentinels.Step) {
		if s.ID != "" {
			ids[s.ID] = v.shape(s)
		}
		switch {
		case s.OutputTo != "" && parses(s):
			set(s.OutputTo, nil)
		case s.OutputTo != "":
			set(s.OutputTo, v.shape(s))
		}
		for _, name := range v.otherNames(s) {
			set(name, nil)
		}
	})
	for name := range v.definition.Inputs {
		set(name, nil)
	}
	for name := range v.definition.Variables {
		set(name, nil)
	}
	for id, s := range ids {
		if _, variable := known[id]; !variable && reference.IsName(id) {
			known[id] = s
		}
		if s == nil || s.list {
			continue
		}
		if _, own := s.fields["output"]; !own { // $steps["id"].output always exists
			whole := *s
			whole.fields = maps.Clone(s.fields)
			whole.fields["output"] = s
			ids[id] = &whole
		}
	}
	known[stepsVariable] = &shape{fields: ids, others: func(string, bool) bool { return true }} // an unknown id is reported elsewhere
	known[eventVariable] = v.event()
	maps.DeleteFunc(known, func(_ string, s *shape) bool { return s == nil })
	return known
}

// shape returns the shape of a step's output.
func (v *check) shape(s *sentinels.Step) *shape {
	spec, ok := v.types.Lookup(s.Type)
	if !ok {
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
	out := closed(schema)
	if s.Type == modelStep {
		out = v.reply(s, schema)
	}
	if out != nil && s.OnError.Action == sentinels.ActionSkip {
		out = union(out, &shape{fields: map[string]*shape{"success": nil, "skipped": nil, "error": nil, "exitCode": nil}})
	}
	return out
}

// reply returns the shape of the output of a step of type llm: its own fields, and those of a
// reply that is a JSON object. Only with a "schema" it is known which these are; without one, a
// prompt that names the field, or JSON, may have the model answer with it.
func (v *check) reply(s *sentinels.Step, output map[string]any) *shape {
	properties, _ := output["properties"].(map[string]any)
	out := &shape{fields: map[string]*shape{}}
	for name, property := range properties {
		inner, _ := property.(map[string]any)
		out.fields[name] = closed(inner)
	}
	if len(out.fields) == 0 {
		return nil
	}
	var schema map[string]any
	if json.Unmarshal(s.Fields["schema"], &schema) == nil && schema != nil {
		answer := replySchema(schema)
		if answer == nil || answer.list {
			return answer
		}
		for name, inner := range answer.fields {
			if _, own := out.fields[name]; !own {
				out.fields[name] = inner
			}
		}
		out.fields["json"], out.unlikely = answer, answer.unlikely
		return out
	}
	prompt, system := reference.Text(s.Fields["prompt"]), reference.Text(s.Fields["system"])
	texts := prompt + "\n" + system
	for _, name := range append(reference.Names(s.Fields["prompt"]), reference.Names(s.Fields["system"])...) { // it may have instructions
		texts += "\n" + string(v.definition.Variables[name]) + string(v.definition.Inputs[name].Default)
	}
	texts = strings.ToLower(texts)
	asked := prompt == "" || reference.IsReference(strings.TrimSpace(prompt)) || strings.Contains(texts, "json")
	out.others = func(name string, _ bool) bool { return asked || strings.Contains(texts, strings.ToLower(name)) }
	out.unlikely = `a "schema" of the step makes the model answer with fields`
	return out
}

// replySchema returns the shape of a value that a JSON Schema accepts, nil if it does not say
// which fields objects have.
func replySchema(schema map[string]any) *shape {
	properties, _ := schema["properties"].(map[string]any)
	switch {
	case schema["type"] == "array":
		return &shape{list: true}
	case schema["type"] != "object" || len(properties) == 0:
		return nil
	}
	for name := range schema {
		if !slices.Contains([]string{"type", "properties", "required", "additionalProperties", "title", "description", "$schema", "$id", "examples", "default"}, name) {
			return nil // such as anyOf, which may add fields
		}
	}
	out := &shape{fields: make(map[string]*shape, len(properties))}
	switch schema["additionalProperties"] {
	case false:
	case nil, true:
		out.unlikely = `add it to the "schema" of the reply, if the model is to answer with it`
	default:
		return nil
	}
	for name, property := range properties {
		inner, _ := property.(map[string]any)
		out.fields[name] = replySchema(inner)
	}
	return out
}

// event returns the shape of $event, if all triggers of the definition are of kinds whose data
// has always the same fields.
func (v *check) event() *shape {
	if v.EventData == nil || len(v.definition.Triggers) == 0 || v.definition.Loop.Type == sentinels.LoopEvent {
		return nil
	}
	data := map[string]*shape{}
	for _, t := range v.definition.Triggers {
		names := v.EventData(t.Type)
		if names == nil {
			return nil
		}
		for _, name := range names {
			data[name] = nil
		}
	}
	return eventShape(data, "only a start by hand with --event can give it")
}

// eventShape returns the shape of $event whose data has some fields.
func eventShape(data map[string]*shape, unlikely string) *shape {
	instead := func(name string) string {
		_, files := data["paths"]
		_, planned := data["scheduled"]
		switch {
		case files && slices.Contains([]string{"path", "file", "filename", "filepath", "name"}, name):
			return "write $event.paths[0]; $event.changes has the path and op of each change"
		case planned && slices.Contains([]string{"date", "now", "timestamp", "at", "plannedtime"}, strings.ToLower(name)):
			return "write $event.scheduled"
		}
		return ""
	}
	others := func(_ string, optional bool) bool { return optional }
	inner := &shape{fields: data, others: others, unlikely: unlikely, instead: instead}
	out := &shape{fields: maps.Clone(data), others: others, unlikely: unlikely, instead: instead}
	for _, name := range sentinels.EventFields() {
		out.fields[name] = nil
	}
	out.fields["data"] = inner
	return out
}

// eventInFilters checks $event in the filters of triggers, which see the event of their kind alone.
func (v *check) eventInFilters() {
	for i, t := range v.definition.Triggers {
		if v.EventData == nil || len(t.Options) == 0 {
			continue
		}
		names := v.EventData(t.Type)
		var options struct {
			Filter string `json:"filter"`
		}
		if names == nil || json.Unmarshal(t.Options, &options) != nil {
			continue
		}
		data := map[string]*shape{}
		for _, name := range names {
			data[name] = nil
		}
		path := "trigger.filter"
		if len(v.definition.Triggers) > 1 {
			path = fmt.Sprintf("trigger[%d].filter", i)
		}
		of := eventShape(data, "events of this trigger never have it, so it is undefined")
		v.uses(path, inExpression(options.Filter), map[string]*shape{eventVariable: of})
	}
}

// endResult returns the shape of $result in onFailure and finally, nil if a step in one of them
// sets a variable of that name.
func (v *check) endResult() *shape {
	own := true
	v.definition.EachStep(func(path string, s *sentinels.Step) {
		if sentinels.InEnd(path) && (s.OutputTo == resultVariable || slices.Contains(v.otherNames(s), resultVariable)) {
			own = false
		}
	})
	var schema map[string]any
	if !own || json.Unmarshal([]byte(sentinels.ResultSchema), &schema) != nil {
		return nil
	}
	result := closed(schema)
	failure := result.fields["error"]
	failure.instead = func(name string) string {
		switch {
		case slices.Contains([]string{"msg", "text", "output", "reason", "description"}, name):
			return "write $result.error.message"
		case strings.HasPrefix(strings.ToLower(name), "exit") || name == "status":
			return "write $result.error.exitCode"
		case name == "id" || name == "name":
			return "write $result.error.stepId"
		}
		return ""
	}
	result.instead = func(name string) string {
		if _, inner := failure.fields[name]; inner {
			return "write $result.error?." + name
		}
		return ""
	}
	return result
}

// nullError warns of a text in finally that needs an error: of a run that is completed,
// $result.error is null, and the step would fail.
func (v *check) nullError(path, at string, uses []use, ends *shape) {
	if ends == nil || !directlyFinally.MatchString(path) {
		return
	}
	for _, u := range uses {
		if u.name == resultVariable && strings.HasPrefix(u.path, ".error.") {
			v.add(at, sentinels.KindWarning, fmt.Sprintf(`write "condition": "$result.error", or move the step to "onFailure"; in other fields than a shell line also $result.error?%s`, strings.TrimPrefix(u.path, ".error")),
				"%s: $result.error is null after a run that is completed, and the step then fails", u.text)
			return
		}
	}
}

// directlyFinally matches the path of a step of a list finally.
var directlyFinally = lazyregexp.New(`(^|\.)finally\[[0-9]+\]$`)

// A lostOutput is the output of a step whose errors are skipped, so that it may have none of its
// own fields.
type lostOutput struct {
	path   string // of the step
	fields map[string]*shape
	allow  bool // the step has "allowFailure"
}

// lostOutputs returns the variables that such a step sets and no condition tests.
func (v *check) lostOutputs() map[string]lostOutput {
	found, times := map[string]lostOutput{}, map[string]int{}
	tested := map[string]bool{}
	test := func(source string) {
		for _, name := range reference.NamesInExpression(source) {
			tested[name] = true
		}
	}
	v.definition.EachStep(func(path string, s *sentinels.Step) {
		test(s.Condition)
		v.eachUse(path, s, func(_ string, uses []use, source string) {
			for _, u := range uses {
				tested[u.name] = tested[u.name] || source != ""
			}
		})
		if s.OutputTo != "" {
			times[s.OutputTo]++
		}
		spec, ok := v.types.Lookup(s.Type)
		if !ok || s.OutputTo == "" || s.OnError.Action != sentinels.ActionSkip || parses(s) || s.Type == approveStep {
			return
		}
		if out := v.shape(s); out != nil && !out.list {
			found[s.OutputTo] = lostOutput{path, out.fields, spec.HasField("allowFailure")}
		}
	})
	for name := range v.definition.Variables {
		times[name]++
	}
	test(v.definition.Loop.Check)
	maps.DeleteFunc(found, func(name string, _ lostOutput) bool { return tested[name] || times[name] > 1 })
	return found
}

// lost warns of a step that uses a field of the output of a step before it in the same list,
// whose errors are skipped: after an error that step has no such field, and this one fails.
func (v *check) lost(path, at string, uses []use, lost map[string]lostOutput) {
	for _, u := range uses {
		l, ok := lost[u.name]
		part := parts.FindStringSubmatch(u.path)
		if !ok || part == nil || strings.Contains(u.path, "?") || !sameList(l.path, path) {
			continue
		}
		switch name := part[1] + part[2] + part[3]; name {
		case "", "success", "skipped", "error", "exitCode":
		default:
			if _, own := l.fields[name]; !own {
				continue // reported as unknown
			}
			hint := fmt.Sprintf(`write "condition": "!$%s.skipped" in this step`, u.name)
			if l.allow {
				hint += `, or "allowFailure": true in place of "onError": "skip"`
			}
			v.add(at, sentinels.KindWarning, hint, `%s: after an error of %s, which "onError": "skip" hides, $%s has only success, skipped, error and the exitCode, and this step fails`,
				u.text, l.path, u.name)
			return
		}
	}
}

// sameList reports whether two paths are those of steps of one list.
func sameList(a, b string) bool {
	return a[:strings.LastIndexByte(a, '[')] == b[:strings.LastIndexByte(b, '[')]
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

// closed returns the shape of the objects of a JSON Schema that allows no other fields than it
// names, nil for any other schema.
func closed(schema map[string]any) *shape {
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
	s := &shape{fields: make(map[string]*shape, len(properties))}
	for name, property := range properties {
		inner, _ := property.(map[string]any)
		s.fields[name] = closed(inner)
		if inner["type"] == "string" {
			s.fields[name] = &shape{text: true}
		}
	}
	return s
}

// union returns the shape of a value that has one of two shapes.
func union(a, b *shape) *shape {
	if a == nil || b == nil || a.list != b.list || a.text != b.text {
		return nil
	}
	out := *a
	out.fields = maps.Clone(a.fields)
	for name, inner := range b.fields {
		if before, both := out.fields[name]; both {
			inner = union(before, inner)
		}
		out.fields[name] = inner
	}
	if b.unlikely != "" {
		out.unlikely = b.unlikely
	}
	if ours, theirs := a.others, b.others; theirs != nil {
		out.others = func(name string, optional bool) bool {
			return theirs(name, optional) || ours != nil && ours(name, optional)
		}
	}
	return &out
}
