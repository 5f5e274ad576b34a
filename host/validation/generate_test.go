package validation_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// choices is a sequence of decisions: those of its bytes, then always the first.
type choices struct{ bytes []byte }

// n returns a number below k.
func (c *choices) n(k int) int {
	if len(c.bytes) == 0 || k < 2 {
		return 0
	}
	v := int(c.bytes[0])
	c.bytes = c.bytes[1:]
	if k > 256 && len(c.bytes) > 0 {
		v = v<<8 | int(c.bytes[0])
		c.bytes = c.bytes[1:]
	}
	return v % k
}

func (c *choices) one(list ...string) string { return list[c.n(len(list))] }

// often is true once in k decisions.
func (c *choices) often(k int) bool { return c.n(k) == 1 }

// A generator makes definitions from the JSON Schema of definitions and those of the
// parameters of commands. What a schema does not say, such as what is an expression, is
// known by the marks of fields and by the names of keys.
type generator struct {
	*choices
	types    *sentinels.TypeSet
	commands []command.Command
	schema   object
	own      map[string]object // fields by step type
	steps    int               // that were made
	set      []string          // references that have a value
}

type object = map[string]any

func newGenerator(schema json.RawMessage, types *sentinels.TypeSet, commands []command.Command) (*generator, error) {
	g := &generator{types: types, commands: commands, own: map[string]object{}}
	if err := json.Unmarshal(schema, &g.schema); err != nil {
		return nil, err
	}
	for _, rule := range g.def("step")["allOf"].([]any) {
		when := rule.(object)["if"].(object)["anyOf"].([]any)[0].(object)["properties"].(object)["type"].(object)["const"].(string)
		g.own[when] = rule.(object)["then"].(object)
	}
	for _, t := range types.Types() {
		if g.own[string(t)] == nil {
			return nil, fmt.Errorf("the schema has no fields of %q", t)
		}
	}
	return g, nil
}

func (g *generator) def(name string) object { return g.schema["$defs"].(object)[name].(object) }

// definition returns a definition that is meant to be valid.
func (g *generator) definition() object {
	g.steps = 0
	g.set = []string{"$n", "$word", "$list", "$deep.a.b", "$iteration", "$run.id", "$event?.data", "$inputs.given"}
	d := g.some(g.schema["properties"].(object), 14, func(name string) bool {
		return !slices.Contains([]string{"id", "uniqueId", "pipeline", "recipe", "ragSources", "workspace", "$schema", "steps", "loop", "variables", "inputs", "tools"}, name)
	})
	d["name"] = g.one("generated", "Ein Name", "n1")
	d["variables"] = object{"n": 3, "word": "w", "list": []any{"one", "two"}, "deep": object{"a": object{"b": true}}}
	d["inputs"] = object{"given": object{"type": "integer", "default": 5}, "free": object{"default": "x", "description": "any"}}
	d["loop"] = g.loop()
	d["maxIterations"] = 1 + g.n(2)
	d["steps"] = g.list(0)
	if g.often(4) {
		d["tools"] = []any{"code/read", object{"name": "code/search"}}
	}
	return d
}

func (g *generator) loop() object {
	switch kind := g.one("once", "count", "until", "while", "once", "once"); kind {
	case "count":
		return object{"type": kind, "max": []any{1, 2, "$n"}[g.n(3)]}
	case "until", "while":
		return object{"type": kind, g.one("check", "if"): g.expression()}
	default:
		return object{"type": kind}
	}
}

func (g *generator) list(depth int) []any {
	out := []any{}
	for range 1 + g.n(3) {
		if g.steps++; g.steps > 12 {
			break
		}
		out = append(out, g.step(depth))
	}
	return out
}

func (g *generator) step(depth int) object {
	id := g.steps
	types := g.types.Types()
	kind := types[g.n(len(types))]
	spec, _ := g.types.Lookup(kind)
	if nested := slices.ContainsFunc(spec.Marks(), func(m sentinels.FieldMark) bool {
		return m.Mark == abi.MarkSteps || m.Mark == abi.MarkBranches || m.Mark == abi.MarkDefinition
	}); nested && depth > 1 {
		kind = "shell"
		spec, _ = g.types.Lookup(kind)
	}
	s := g.some(g.def("step")["properties"].(object), 12, func(name string) bool { return name != "type" && name != "outputTo" && name != "id" && name != "parse" })
	s["type"] = string(kind)
	fields := g.own[string(kind)]["properties"].(object)
	required := g.required(spec)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		_, alias := spec.Aliases[name]
		if !alias && (slices.Contains(required, name) || g.often(3)) {
			s[name] = g.field(spec, name, fields[name].(object), depth)
		}
	}
	g.agree(string(kind), s)
	if g.often(2) {
		name := fmt.Sprintf("r%d", id)
		s["outputTo"] = name
		g.set = append(g.set, "$"+name)
		if kind == "shell" || s["command"] == "code/shell/execute" {
			g.set = append(g.set, "$"+name+".exitCode", "$"+name+".output")
		}
		for _, c := range g.commands {
			if c.Name == s["command"] && kind == "command" {
				var output object
				_ = json.Unmarshal(c.Output(), &output) // the registry has compiled it
				properties, _ := output["properties"].(object)
				for _, field := range slices.Sorted(maps.Keys(properties)) {
					g.set = append(g.set, "$"+name+"."+field)
				}
			}
		}
	}
	if g.often(4) {
		s["id"] = fmt.Sprintf("step-%d", id)
	}
	return s
}

func (g *generator) required(spec *sentinels.TypeSpec) []string {
	var schema struct{ Required []string }
	_ = json.Unmarshal(spec.Fields, &schema) // it was compiled before
	return schema.Required
}

// agree makes fields of a step agree with each other, where its schema does not say how.
func (g *generator) agree(kind string, s object) {
	only := func(names ...string) {
		keep := names[g.n(len(names))]
		for _, name := range names {
			if name != keep {
				delete(s, name)
			} else if s[name] == nil {
				s[name] = g.field(must(g.types.Lookup(sentinels.StepType(kind))), name, g.own[kind]["properties"].(object)[name].(object), 2)
			}
		}
	}
	if s["onFailure"] == nil && s["finally"] == nil {
		delete(s, "finallyTimeoutMs")
	}
	if _, text := s["timeoutMs"].(string); text { // the schema of all steps permits any where a step type has its own
		s["timeoutMs"] = []any{5, "3ms"}[g.n(2)]
	}
	switch kind {
	case "shell":
		only("command", "argv")
		if s["argv"] != nil {
			delete(s, "shell")
		}
		if ready, is := s["ready"].(object); is {
			s["background"] = true
			keep := []string{"http", "tcp", "match"}[g.n(3)]
			s["ready"] = object{keep: object{"http": "http://localhost:1", "tcp": 1, "match": "$word"}[keep]}
			if ready["timeoutMs"] != nil {
				s["ready"].(object)["timeoutMs"] = ready["timeoutMs"]
			}
		} else if s["background"] != true {
			delete(s, "ready")
		}
	case "wait":
		only("durationMs", "until", "event")
		if s["event"] == nil {
			delete(s, "source")
		}
		delete(s, "run")
	case "loop":
		only("count", "each", "while", "until")
		if _, is := s["each"].(object); is { // its forms exclude each other
			s["each"] = []any{object{"expr": "$list"}, object{"from": 1, "to": 2}, object{"files": "*.go"}}[g.n(3)]
		}
		s["maxIterations"] = 2
		if s["each"] == nil {
			delete(s, "as")
			delete(s, "maxConcurrent")
			delete(s, "onItemError")
		}
		if s["count"] != nil || s["each"] != nil {
			delete(s, "maxIterations")
		}
	case "parallel":
		if _, numbers := s["allowFailure"].([]any); numbers {
			s["allowFailure"] = []any{0}
		}
		if s["failFast"] == true {
			delete(s, "allowFailure")
		}
	case "watch":
		only("event", "file")
		for _, name := range []string{"executionId", "run", "rules", "from", "until", "source"} {
			delete(s, name)
		}
		s["timeoutMs"] = 5
	case "http":
		only("json", "form", "body")
		g.request(s)
	case "llm":
		s["model"] = []any{"ollama/any", []any{"ollama/any", "openai/gpt-6-sol"}}[g.n(2)]
		if s["tools"] == nil {
			delete(s, "parseToolCalls")
			delete(s, "maxToolCalls")
		}
	case "command":
		c := g.commands[g.n(len(g.commands))]
		s["command"] = c.Name
		s["params"] = g.params(c)
		if s["allow"] != nil {
			s["allow"] = []any{c.Name}
		}
	case "plan":
		only("skills", "step")
		others := []string{"plan", "failed", "maxRisk", "autofix"}
		if s["step"] == nil {
			others = []string{"results", "outcome", "log"}
		}
		for _, name := range others {
			delete(s, name)
		}
	}
}

func must[T any](v T, _ bool) T { return v }

func (g *generator) params(c command.Command) object {
	var schema object
	_ = json.Unmarshal(c.Input(), &schema) // the registry has compiled it
	params := object{}
	properties, _ := schema["properties"].(object)
	required, _ := schema["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if slices.Contains(required, any(name)) || g.often(3) {
			if slices.Contains(c.Shell, name) {
				params[name] = g.line()
			} else {
				params[name] = g.value(properties[name], name)
			}
		}
	}
	if c.Name == "http/request" {
		g.request(params)
	}
	return params
}

// request makes the fields of a request valid where their schemas do not say how.
func (g *generator) request(fields object) {
	fields["url"], fields["method"] = g.one("https://a.example/$word", "$word"), g.one("POST", "PUT", "PATCH")
	delete(fields, "auth")
	if _, is := fields["headers"].(object); is { // a secret goes to a host that is written out
		fields["headers"] = object{"KEY": g.one("$word", "text")}
	}
	if g.often(3) {
		fields["auth"] = []any{object{"bearer": "$word"}, object{"basic": object{"username": "u", "password": "p"}}}[g.n(2)]
	}
	if fields["expect"] != nil {
		fields["expect"] = []any{201, "2xx", "200-204", []any{200, "3xx"}}[g.n(4)]
	}
}

// field returns a value of a field of a step.
func (g *generator) field(spec *sentinels.TypeSpec, name string, schema object, depth int) any {
	switch spec.Mark(name) {
	case abi.MarkInterpreter:
		return g.value(schema, "shell")
	case abi.MarkSteps:
		return g.list(depth + 1)
	case abi.MarkBranches:
		return []any{g.list(depth + 1), g.list(depth + 1)}
	case abi.MarkDefinition:
		before := g.set // what it sets stays its own
		defer func() { g.set = before }()
		return object{"steps": g.list(depth + 1)}
	case abi.MarkExpression:
		return g.expression()
	case abi.MarkShell:
		return g.line()
	case abi.MarkVariable:
		return g.one("item", "index") + fmt.Sprint(g.steps)
	case abi.MarkValues:
		name := fmt.Sprintf("v%d", g.steps)
		g.set = append(g.set, "$"+name)
		return object{name: []any{1, "$word", object{"expr": g.expression()}, []any{"$n"}, nil}[g.n(5)]}
	case abi.MarkTools:
		return []any{g.one("code/read", "code/*", "data/list", "*")}
	case abi.MarkRaw:
		return object{"type": "object"}
	case abi.MarkParams:
		return object{}
	}
	return g.value(schema, name)
}

// some returns some of the properties of an object, one of k of those that want accepts.
func (g *generator) some(properties object, k int, want func(name string) bool) object {
	out := object{}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if want(name) && g.often(k) {
			out[name] = g.value(properties[name], name)
		}
	}
	return out
}

// value returns a value that a schema accepts. name is that of its key.
func (g *generator) value(schema any, name string) any {
	if name == "shell" { // of a step or a definition
		return []any{"sh", "bash", []any{"bash", "-eu", "-c"}}[g.n(3)]
	}
	s, ok := schema.(object)
	if !ok {
		return g.text(name)
	}
	if ref, ok := s["$ref"].(string); ok {
		switch part := strings.TrimPrefix(ref, "#/$defs/"); part {
		case "steps":
			return g.list(1)
		case "trigger":
			return g.trigger()
		default:
			return g.value(g.def(part), name)
		}
	}
	if only, ok := s["const"]; ok {
		return only
	}
	if list, ok := s["enum"].([]any); ok {
		return list[g.n(len(list))]
	}
	for _, of := range []string{"anyOf", "oneOf"} {
		list, ok := s[of].([]any)
		if !ok || s["properties"] != nil {
			continue
		}
		if last, ok := list[len(list)-1].(object); ok && last["pattern"] == `\$[A-Za-z_]` { // a reference instead
			first, _ := list[0].(object)
			if ref := fitting[fmt.Sprint(first["type"])]; ref != "" && first["maximum"] == nil && g.often(4) {
				return ref
			}
			return g.value(list[0], name)
		}
		return g.value(list[g.n(len(list))], name)
	}
	kind, _ := s["type"].(string)
	if list, ok := s["type"].([]any); ok {
		kind = list[g.n(len(list))].(string)
	}
	switch kind {
	case "integer", "number":
		v := float64(1 + g.n(3))
		if low, ok := s["minimum"].(float64); ok {
			v = max(low, v)
		}
		if high, ok := s["maximum"].(float64); ok {
			v = min(high, v)
		}
		return v
	case "boolean":
		return g.n(2) == 1
	case "null":
		return nil
	case "array":
		return []any{g.value(s["items"], name)}
	case "object":
		out := object{}
		properties, _ := s["properties"].(object)
		required, _ := s["required"].([]any)
		for _, key := range slices.Sorted(maps.Keys(properties)) {
			if slices.Contains(required, any(key)) || g.often(3) {
				out[key] = g.value(properties[key], key)
			}
		}
		if rest, ok := s["additionalProperties"].(object); ok && len(properties) == 0 && rest["not"] == nil {
			out["KEY"] = g.value(rest, "KEY")
		}
		return out
	case "string":
		if pattern, ok := s["pattern"].(string); ok {
			for _, text := range []string{"word", "$n", "1", "KEY", "3ms"} {
				if regexp.MustCompile(pattern).MatchString(text) {
					return text
				}
			}
		}
	}
	return g.text(name)
}

// fitting are references with a value of a type.
var fitting = map[string]string{"integer": "$n", "number": "$n", "boolean": "$deep.a.b", "array": "$list", "object": "$deep", "string": "$word"}

func (g *generator) trigger() object {
	return []object{
		{"type": "manual"},
		{"type": "immediate", "on": "create"},
		{"type": "schedule", "cronExpression": "*/5 * * * *", "timeZone": "Europe/Berlin", "filter": "$event.data.missed === 0"},
		{"type": "cron", "schedule": "@daily", "jitterMs": 5},
		{"type": "event", "event": "build:*", "debounceMs": 10, "maxWaitMs": 100},
		{"type": "file", "paths": []any{"**/*.go"}, "on": []any{"created"}, "ignore": []any{"out/**"}},
		{"type": "webhook", "insecure": true, "methods": []any{"POST"}, "event": "hook"},
	}[g.n(7)]
}

func (g *generator) expression() string {
	return g.one("$iteration < 2", "$n + 1 > 2", "$word === 'w' || false", "$list.length", "$deep.a?.b", "true", "$event?.data?.x === undefined", "['a', 'b'].includes($word)")
}

func (g *generator) line() string {
	return g.one("true", `echo "$word $n"`, "x=1; echo $x", "for f in *; do echo $f; done", `echo "$list[0]" | wc -l`, "echo $HOME $(pwd) 100%")
}

// text returns a text for a key.
func (g *generator) text(name string) string {
	switch name {
	case "condition", "filter", "when", "unless":
		return g.expression()
	case "until":
		return "2020-01-02T03:04:05Z"
	case "event":
		return g.one("build:done", "a:b:c")
	case "outputTo":
		return fmt.Sprintf("out%d", g.steps)
	case "pattern":
		return g.one("^error", "warn")
	case "glob":
		return "**/*.go"
	case "field":
		return "id"
	}
	if g.often(3) {
		return g.set[g.n(len(g.set))]
	}
	return g.one("text", "two words", "with $word in it", "a$$b", "sentinel-1")
}
