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
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// outputs reports references to fields that a value cannot have: the output of a step, also by
// its id, the event that starts the run, and how a list of steps ended.
func (v *check) outputs() {
	known := v.shapes()
	ends := v.endResult()
	look := func(path string, uses []use) {
		of := known
		if sentinels.InEnd(path) {
			of = maps.Clone(known)
			of[resultVariable] = ends
		}
		v.uses(path, uses, of)
	}
	retry := func(path string, p sentinels.RetryPolicy) {
		p.Conditions(func(key, source string) {
			uses := slices.DeleteFunc(inExpression(source), func(u use) bool { return u.name == "error" }) // that of the attempt
			look(path+".onError.retry."+key, uses)
		})
	}
	look("loop.check", inExpression(v.definition.Loop.Check))
	look("loop.max", inText(v.definition.Loop.Max))
	v.eventInFilters()
	lost, successes := v.lostOutputs(), v.successSteps()
	v.status("loop.check", v.definition.Loop.Check, successes)
	v.definition.EachStep(func(path string, s *sentinels.Step) {
		look(path+".condition", inExpression(s.Condition))
		v.status(path+".condition", s.Condition, successes)
		v.elseOfSuccess(path, s, successes)
		retry(path, s.OnError.Retry)
		v.eachUse(path, s, func(at string, uses []use, source string) {
			look(at, uses)
			v.status(at, source, successes)
			if source == "" && s.Condition == "" {
				v.lost(path, at, uses, lost)
				v.nullError(path, at, uses, ends)
			}
		})
	})
}

// eachUse calls f with the references in each field of a step, and the source of a field that is an
// expression; in a text, without one, a reference without a value is an error of the step.
func (v *check) eachUse(path string, s *sentinels.Step, f func(at string, uses []use, source string)) {
	spec, ok := v.types.Lookup(s.Type)
	if !ok {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.Fields)) {
		raw, at := s.Fields[name], path+"."+name
		source, isExpression := sentinels.ExpressionIn(raw)
		switch mark := spec.Mark(name); {
		case mark == abi.MarkExpression:
			f(at, inExpression(reference.Text(raw)), reference.Text(raw))
		case isExpression && spec.Evaluates(name):
			f(at+".expr", inExpression(source), source)
		case mark == abi.MarkValues:
			strictjson.EachMember(raw, func(name, value []byte) bool {
				at := at + "." + strictjson.Unquote(name)
				if source, ok := sentinels.ExpressionIn(value); ok {
					f(at, inExpression(source), source)
				} else {
					f(at, inText(value), "")
				}
				return true
			})
		case mark == abi.MarkShell:
			reference.EachInShellLine(reference.Text(raw), func(ref reference.Reference, quoted bool, _ string, _ int) {
				if !quoted {
					f(at, []use{{ref.String(), ref.Name, ref.Path}}, "")
				}
			})
		case mark == abi.MarkRaw || mark == abi.MarkDefinition:
		default:
			f(at, inText(raw), "")
		}
	}
}

// otherNamesOfText are what other systems call the text of an output.
var otherNamesOfText = []string{"body", "content", "data", "response", "result", "value", "message", "output", "reply", "answer", "completion"}

// A use is a reference as it is written, its variable and the path behind it.
type use = struct{ text, name, path string }

// uses reports those of uses whose path the variable cannot have.
func (v *check) uses(path string, uses []use, known map[string]*shape) {
	for _, u := range uses {
		if v.Ended() {
			return
		}
		at, whole := known[u.name], "$"+u.name
		var around *shape
		for _, part := range parts.FindAllStringSubmatch(u.path, -1) {
			name := part[1] + part[2] + part[3]
			if at == nil || name == "" || at.list && name == "length" {
				break
			}
			if at.text {
				if _, beside := around.fields[name]; u.name == stepsVariable && name != "length" { // of others the format reports it
					hint := "leave it out"
					if beside {
						hint = "write " + strings.TrimSuffix(whole, ".output") + "." + name
					}
					v.add(path, sentinels.KindUnknown, hint, "%s: %s is a text, which has no field %q", u.text, whole, name)
				}
				break
			}
			inner, ok := at.fields[name]
			if !ok {
				if at.others == nil || !at.others(name, strings.HasPrefix(part[0], "?")) {
					v.noField(path, u.text, whole, name, at)
				}
				break
			}
			around, at = at, inner
			if reference.IsName(name) {
				whole += "." + name
			} else {
				whole += "['" + name + "']"
			}
		}
	}
}

// noField reports a field that a value of a shape does not have.
func (v *check) noField(path, written, whole, name string, at *shape) {
	if at.list {
		v.add(path, sentinels.KindUnknown, fmt.Sprintf("write %s[0] for the first item, or %s.length", whole, whole), "%s: %s is a list, which has no field %q", written, whole, name)
		return
	}
	names := slices.Sorted(maps.Keys(at.fields))
	hint := ""
	if at.instead != nil {
		hint = at.instead(name)
	}
	if _, program := at.fields["executionId"]; hint == "" && program && slices.Contains([]string{"stop", "kill", "end", "terminate"}, name) {
		hint = fmt.Sprintf(`a step ends the program: {"command": "code/shell/kill", "params": {"executionId": "%s.executionId"}}`, whole)
	}
	if _, text := at.fields["text"]; hint == "" && text && slices.Contains(otherNamesOfText, name) {
		hint = fmt.Sprintf("write %s.text", whole)
	} else if near := v.Suggest(name, names); hint == "" && len(near) > 0 {
		hint = fmt.Sprintf("did you mean %q?", whole+"."+near[0])
	}
	kind := sentinels.KindUnknown
	if at.unlikely != "" {
		kind = sentinels.KindWarning
		hint = strings.TrimPrefix(hint+"; "+at.unlikely, "; ")
	}
	v.add(path, kind, hint, "%s: %s has no field %q; it has %s", written, whole, name, strings.Join(names, ", "))
}

var (
	// parts matches one part of a path: a field, or an index without one.
	parts = lazyregexp.New(`\??\.([A-Za-z_][A-Za-z0-9_]*)|\??\.?\[(?:[0-9]+|"([^"]*)"|'([^']*)')\]`)
	// inSource matches strings and comments of JavaScript, and references with their paths.
	// A call ends a path, so that methods are not fields.
	inSource = lazyregexp.New(`"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|/\*(?s:.*?)\*/|//[^\n]*|\$([A-Za-z_][A-Za-z0-9_]*)((?:\??\.[A-Za-z_][A-Za-z0-9_]*|(?:\?\.)?\[(?:[0-9]+|"[^"]*"|'[^']*')\])*)(\s*\(|\s*=[^=])?`)
	// inPlain matches references with their paths in text, and the escaped dollar.
	inPlain = lazyregexp.New(`\$\$|\$([A-Za-z_][A-Za-z0-9_]*)((?:\??\.[A-Za-z_][A-Za-z0-9_]*|(?:\?\.)?\[(?:[0-9]+|"[^"]*"|'[^']*')\])*)`)
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
			path = strings.TrimSuffix(path[:max(0, strings.LastIndexByte(path, '.'))], "?")
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
