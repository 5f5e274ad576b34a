package host_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
)

// A fieldRow is what is known of the effect of a field.
type fieldRow struct {
	about   string // what the effect is about: fields about different things have their effects beside each other
	value   string // plausible, in JSON
	needs   string // members beside which alone it has an effect
	without string // members beside which it has none
}

// ignored are fields that are accepted for other programs and have no effect by design.
const ignored = "nothing"

// commonRows are the fields of every step. The time of a step is that of its attempts; what is
// in doubt after a crash is decided before a retry.
var commonRows = map[string]fieldRow{
	"id": {about: "address", value: `"i"`}, "name": {about: "title", value: `"n"`}, "condition": {about: "whether", value: `"$iteration > 1"`},
	"outputTo": {about: "result", value: `"o"`}, "parse": {about: "form of the result", value: `"json"`, needs: `"outputTo":"p"`},
	"comment": {about: ignored, value: `"c"`}, "onError": {about: "failure", value: `"skip"`}, "timeoutMs": {about: "time", value: "900"}, "onInterrupt": {about: "crash", value: `"fail"`},
}

// fieldObjects are the objects of the format with a required part and what is around them.
var fieldObjects = map[string]struct {
	base, around string // $ in around is the object
	rows         map[string]fieldRow
}{
	"definition": {`"name": "n", "steps": []`, "$", map[string]fieldRow{
		"roles": {about: ignored, value: `[]`}, "sentinelTemplates": {about: ignored, value: `[]`}, "room": {about: ignored, value: `{}`}, "view": {about: ignored, value: `{}`}, "entityType": {about: ignored, value: `"Recipe"`},
		"$schema": {about: ignored, value: `"s"`}, "displayName": {about: ignored, value: `"d"`}, "strategy": {about: ignored, value: `"s"`}, "layout": {about: ignored, value: `{}`},
		"locked": {about: ignored, value: "true"}, "lastRunAt": {about: ignored, value: `"2026-01-01T00:00:00Z"`}, "runCount": {about: ignored, value: "1"}, "averageDurationMs": {about: ignored, value: "1"},
		"id": {about: "identity", value: `"i"`}, "uniqueId": {about: "identity", value: `"u"`}, "name": {about: "title", value: `"m"`},
		"description": {about: "purpose", value: `"d"`}, "version": {about: "version", value: "2"}, "createdBy": {about: "author", value: `"a"`}, "tags": {about: "search", value: `["t"]`}, "isPublic": {about: "visibility", value: "true"},
		"recipe": {about: "context", value: `"coding"`}, "ragSources": {about: "context", value: `["git"]`}, "ragTemplate": {about: "context", value: `{"messageHistory": {"maxMessages": 5}}`},
		"inputs": {about: "inputs", value: `{"p": "string"}`}, "variables": {about: "variables", value: `{"v": 1}`}, "env": {about: "environment", value: `{"E": "e"}`}, "envFiles": {about: "environment", value: `["e.env"]`},
		"trigger": {about: "start", value: `{"type": "event", "event": "a:b"}`}, "concurrency": {about: "overlap", value: `"queue"`},
		"steps": {about: "work", value: `[{"type": "set", "values": {"w": 1}}]`}, "loop": {about: "repetition", value: `{"type": "count", "max": 3}`}, "tools": {about: "tools", value: `["code/read"]`},
		"timeoutMs": {about: "time", value: "900"}, "maxIterations": {about: "number of iterations", value: "2", needs: `"loop": {"type": "count", "max": 3}`},
		"safety": {about: "time", value: `{"timeoutMs": 800}`}, "budget": {about: "spending", value: `{"calls": 9}`},
		"onFailure": {about: "a failed end", value: `[{"type": "set", "values": {"w": 1}}]`}, "finally": {about: "the end", value: `[{"type": "set", "values": {"w": 1}}]`}, "onError": {about: "a step that fails", value: `"skip"`}, "notify": {about: "messages", value: "false"}, "workspace": {about: "folder", value: `"."`},
	}},
	"definition inline": {`"name": "n", "steps": [{"type": "set", "values": {"w": 1}}]`, `{"name": "o", "steps": [{"type": "sentinel", "definition": $}]}`, nil},
	"safety": {``, `{"name": "n", "steps": [], "finally": [{"type": "set", "values": {"w": 1}}], "loop": {"type": "count", "max": 3}, "safety": $}`, map[string]fieldRow{
		"maxIterations": {about: "number of iterations", value: "2"}, "timeoutMs": {about: "time of a run", value: "900"}, "maxStepTimeoutMs": {about: "time of a step", value: "90"}, "maxMemoryMb": {about: "memory", value: "99"},
		"maxSteps": {about: "number of steps", value: "9"}, "finallyTimeoutMs": {about: "time of finally", value: "9"}, "onTimeout": {about: "what is done at a limit", value: `"pause"`, needs: `"timeoutMs": 900`}, "onInterrupt": {about: "crash", value: `"ask"`},
	}},
	"budget": {``, `{"name": "n", "steps": [], "budget": $}`, map[string]fieldRow{
		"tokens": {about: "tokens", value: "9"}, "costUsd": {about: "money", value: "9"}, "calls": {about: "calls", value: "9"},
	}},
	"input": {``, `{"name": "n", "steps": [], "inputs": {"i": $}}`, map[string]fieldRow{
		"type": {about: "type", value: `"integer"`}, "description": {about: "purpose", value: `"d"`}, "enum": {about: "values", value: "[1, 2]"},
		"required": {about: "a run without a value", value: "true"}, "default": {about: "a run without a value", value: "1"},
	}},
	"onError":    {``, `{"name": "n", "steps": [{"type": "shell", "command": "true", "onError": $}]}`, map[string]fieldRow{"retry": {about: "failure", value: `{"maxRetries": 2}`}}},
	"loop count": {`"type": "count", "max": 3`, `{"name": "n", "steps": [], "loop": $}`, loopRows}, "loop until": {`"type": "until", "check": "$iteration > 3"`, `{"name": "n", "steps": [], "timeoutMs": 900, "loop": $}`, loopRows},
	"loop event": {`"type": "event", "event": "a:b"`, `{"name": "n", "steps": [], "timeoutMs": 900, "loop": $}`, loopRows}, "loop continuous": {`"type": "continuous"`, `{"name": "n", "steps": [], "timeoutMs": 900, "loop": $}`, loopRows},
	"step command": {`"command": "code/read", "params": {"path": "p"}`, inSteps, map[string]fieldRow{
		"command": {about: "work", value: `"code/read"`}, "params": {about: "parameters", value: `{"path": "q"}`}, "allow": {about: "rules of models, which a list applies to the call", value: `["code/read"]`},
	}},
	"step approve": {`"type": "approve", "prompt": "p"`, inSteps, map[string]fieldRow{"prompt": {about: "question", value: `"q"`}, "approvers": {about: "people", value: `["ann"]`}}},
	"step llm": {`"type": "llm", "prompt": "p", "model": "openai/gpt-6-sol"`, inSteps, map[string]fieldRow{
		"prompt": {about: "prompt", value: `"q"`}, "system": {about: "system prompt", value: `"s"`}, "context": {about: "context", value: `{"add": false}`}, "model": {about: "model", value: `"openai/gpt-6-luna"`},
		"temperature": {about: "randomness", value: "1"}, "maxTokens": {about: "length of a reply", value: "99"}, "tools": {about: "tools", value: `["code/read"]`}, "schema": {about: "form of the reply", value: `{"type": "object"}`},
		"parseToolCalls": {about: "execution of calls", value: "true", without: `"tools": []`}, "maxTurns": {about: "replies", value: "9"}, "checks": {about: "acceptance", value: `[{"type": "set", "values": {"w": 1}}]`},
		"maxToolCalls": {about: "number of calls", value: "9", needs: `"tools": ["code/read"]`, without: `"tools": ["code/read"], "parseToolCalls": false`},
		"confirm":      {about: "approval of calls", value: `{"commands": ["code/read"]}`, needs: `"parseToolCalls": true`, without: `"tools": [], "parseToolCalls": true`},
		"maxChecks":    {about: "number of checks", value: "9", needs: `"checks": [{"type": "set", "values": {"w": 1}}]`},
	}},
	"step watch": {`"type": "watch", "executionId": "e"`, inSteps, map[string]fieldRow{
		"executionId": {about: "what is watched", value: `"f"`}, "run": {about: "what is watched", value: `"r"`}, "event": {about: "what is watched", value: `"a:b"`}, "file": {about: "what is watched", value: `"f"`},
		"from": {about: "beginning", value: `"start"`, needs: `"executionId": null, "file": "f", "timeoutMs": 9`}, "rules": {about: "classes", value: `[{"pattern": "p", "classification": "error"}]`}, "until": {about: "end", value: `"error"`},
	}},
	"step condition": {`"check": "$iteration > 1"`, inSteps, map[string]fieldRow{
		"check": {about: "the branch", value: `"$iteration > 2"`}, "then": {about: "first branch", value: `[{"type": "set", "values": {"w": 1}}]`}, "else": {about: "second branch", value: `[{"type": "set", "values": {"w": 1}}]`},
	}},
	"step sentinel": {`"type": "sentinel", "definition": {"name": "k", "steps": []}`, inSteps, map[string]fieldRow{
		"definition": {about: "work", value: `{"name": "l", "inputs": {"p": "string"}, "steps": []}`}, "inputs": {about: "inputs", value: `{"p": "q"}`}, "await": {about: "waiting", value: "false"},
	}},
	"step emit": {`"type": "emit", "event": "a:b"`, inSteps, map[string]fieldRow{"event": {about: "name", value: `"a:c"`}, "data": {about: "data", value: "1"}}},
	"step loop": {`"type": "loop", "steps": [], "count": 2`, inSteps, map[string]fieldRow{
		"steps": {about: "work", value: `[{"type": "set", "values": {"w": 1}}]`}, "count": {about: "iterations", value: "3"}, "while": {about: "iterations", value: `"$index < 3"`}, "until": {about: "iterations", value: `"$index > 3"`}, "each": {about: "iterations", value: "[1]"},
		"as": {about: "variable of the item", value: `"one"`, needs: `"count": null, "each": [1]`}, "indexAs": {about: "variable of the number", value: `"k"`}, "maxIterations": {about: "limit", value: "9"},
		"maxConcurrent": {about: "number at once", value: "2", needs: `"count": null, "each": [1]`}, "onItemError": {about: "an item that fails", value: `"stop"`, needs: `"count": null, "each": [1]`},
		"onFailure": {about: "a failed end", value: `[{"type": "set", "values": {"w": 1}}]`}, "finally": {about: "the end", value: `[{"type": "set", "values": {"w": 1}}]`}, "finallyTimeoutMs": {about: "limit of the end", value: "9", needs: `"finally": []`},
	}},
	"step group": {`"type": "group", "steps": []`, inSteps, map[string]fieldRow{
		"steps":     {about: "work", value: `[{"type": "set", "values": {"w": 1}}]`},
		"onFailure": {about: "a failed end", value: `[{"type": "set", "values": {"w": 1}}]`}, "finally": {about: "the end", value: `[{"type": "set", "values": {"w": 1}}]`}, "finallyTimeoutMs": {about: "limit of the end", value: "9", needs: `"finally": []`},
	}},
	"step fail": {`"type": "fail", "message": "m"`, inSteps, map[string]fieldRow{"message": {about: "message", value: `"n"`}, "code": {about: "code", value: `"c"`}}},
	"step stop": {`"type": "stop"`, inSteps, map[string]fieldRow{"status": {about: "status", value: `"failed"`}, "message": {about: "message", value: `"n"`}}},
	"step parallel": {`"type": "parallel", "branches": [[], []]`, inSteps, map[string]fieldRow{
		"branches": {about: "work", value: `[[], [], []]`}, "failFast": {about: "a branch that fails", value: "true"}, "allowFailure": {about: "a branch that fails", value: "true"}, "maxConcurrent": {about: "number at once", value: "1"},
	}},
	"step shell": {`"type": "shell"`, inSteps, map[string]fieldRow{
		"command": {about: "program", value: `"true"`}, "argv": {about: "program", value: `["true"]`}, "env": {about: "environment", value: `{"E": "e"}`, needs: `"command": "true"`}, "cwd": {about: "folder", value: `"sub"`, needs: `"command": "true"`},
		"stdin": {about: "input", value: `"s"`, needs: `"command": "true"`}, "allowFailure": {about: "exit code", value: "true", needs: `"command": "true"`},
	}},
	"step http": {`"type": "http", "url": "https://a.example", "method": "POST"`, inSteps, map[string]fieldRow{
		"url": {about: "place", value: `"https://b.example"`}, "method": {about: "method", value: `"PUT"`}, "query": {about: "query", value: `{"q": 1}`}, "headers": {about: "headers", value: `{"X": "y"}`},
		"json": {about: "body", value: "1"}, "form": {about: "body", value: `{"f": 1}`}, "body": {about: "body", value: `"b"`}, "auth": {about: "authorization", value: `{"bearer": "t"}`},
		"timeoutMs": {about: "time", value: "900"}, "redirects": {about: "redirects", value: "1"}, "expect": {about: "success", value: "201"}, "allowFailure": {about: "another status", value: "true"},
		"idempotencyKey": {about: "repetition", value: "true"},
	}},
	"step wait": {`"type": "wait"`, inSteps, map[string]fieldRow{
		"durationMs": {about: "what is awaited", value: "9"}, "until": {about: "what is awaited", value: `"2026-01-31T08:00:00Z"`}, "event": {about: "what is awaited", value: `"a:b"`}, "run": {about: "what is awaited", value: `"r"`},
	}},
	"step set": {`"type": "set", "values": {"a": 1}`, inSteps, map[string]fieldRow{"values": {about: "work", value: `{"b": 1}`}}},
	"step verify": {`"type": "verify", "ticketId": "T-1"`, inSteps, map[string]fieldRow{
		"ticketId": {about: "ticket", value: `"T-2"`}, "branchName": {about: "branch", value: `"b"`}, "token": {about: "claim", value: "1"},
	}},
	"step plan": {`"type": "plan", "skills": ["code/read"]`, inSteps, map[string]fieldRow{
		"skills": {about: "work", value: `["code/list"]`}, "maxRisk": {about: "risk", value: `"low"`}, "plan": {about: "plan", value: "1"}, "failed": {about: "earlier plans", value: "[]"}, "autofix": {about: "repair", value: "true"},
		"step": {about: "work", value: `{}`}, "results": {about: "results", value: "[]", needs: `"skills": null, "step": {}`}, "outcome": {about: "outcome", value: "1", needs: `"skills": null, "step": {}`}, "log": {about: "log", value: "[]", needs: `"skills": null, "step": {}`},
	}},
}

const inSteps = `{"name": "n", "steps": [$]}`

var loopRows = map[string]fieldRow{
	"type": {about: "kind", value: ""}, "max": {about: "iterations", value: "4"}, "check": {about: "iterations", value: `"$iteration > 4"`}, "intervalMs": {about: "delay", value: "9"}, "event": {about: "iterations", value: `"a:c"`},
}

// together are pairs of fields about one thing that have their effects beside each other.
var together = map[string]string{
	"definition env envFiles":        "env has precedence name by name, and files may have further names",
	"definition ragSources recipe":   "the sources of both are used",
	"definition inline env envFiles": "as above", "definition inline ragSources recipe": "as above",
}

// TestPairsOfFields: of each two fields of an object of the format, both have an effect, or
// validate reports the one that is ignored. Those of triggers have a test beside their kinds, those
// of a retry one beside its delays.
func TestPairsOfFields(t *testing.T) {
	h := open(t, environment("OPENAI_API_KEY", "k"))
	for _, name := range []string{"sub/e.env", "e.env"} {
		if err := os.MkdirAll(h.Workspace()+"/sub", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(h.Workspace()+"/"+name, []byte("F=f\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	known := schemaFields(t, h)
	pairs, unused := 0, maps.Clone(together)
	for object, o := range fieldObjects {
		rows := maps.Clone(o.rows)
		if object == "definition inline" {
			rows = maps.Clone(fieldObjects["definition"].rows)
		}
		if strings.HasPrefix(object, "step ") {
			for name, row := range commonRows {
				if _, own := rows[name]; !own {
					rows[name] = row
				}
			}
		}
		report := func(members ...string) (problems []string) {
			t.Helper()
			all := map[string]json.RawMessage{}
			for _, text := range append([]string{o.base}, members...) {
				if err := json.Unmarshal([]byte("{"+text+"}"), &all); err != nil {
					t.Fatalf("%s: %v", text, err)
				}
			}
			maps.DeleteFunc(all, func(_ string, v json.RawMessage) bool { return string(v) == "null" })
			text, err := json.Marshal(all)
			if err != nil {
				t.Fatal(err)
			}
			_, problems = validated(t, h, strings.Replace(o.around, "$", string(text), 1), nil)
			return problems
		}
		names := slices.Sorted(maps.Keys(rows))
		for _, name := range known[object] {
			if !slices.Contains(names, name) && len(report(member(name, `"x"`))) == 0 {
				t.Errorf("%s: the effect of %q is not known", object, name)
			}
		}
		for i, name := range names {
			row := rows[name]
			if row.value == "" {
				continue
			}
			if row.needs != "" && len(report(member(name, row.value))) == 0 {
				t.Errorf("%s: %q has no effect without %s, and no problem", object, name, row.needs)
			}
			if row.without != "" && len(report(row.without, member(name, row.value))) == 0 {
				t.Errorf("%s: %q has no effect beside %s, and no problem", object, name, row.without)
			}
			for _, other := range names[i+1:] {
				beside := rows[other]
				if beside.value == "" || beside.about != row.about || row.about == ignored {
					continue
				}
				pairs++
				key := object + " " + name + " " + other
				_, both := unused[key]
				delete(unused, key)
				if got := report(row.needs, beside.needs, member(name, row.value), member(other, beside.value)); (len(got) == 0) != both {
					t.Errorf("%s: %q beside %q: both have an effect: %t, but %q", object, name, other, both, got)
				}
			}
		}
	}
	for _, field := range []string{"trigger", "concurrency", "notify"} {
		text := `{"name": "o", "steps": [{"type": "sentinel", "definition": {"name": "n", "steps": [{"type": "set", "values": {"w": 1}}], ` + member(field, fieldObjects["definition"].rows[field].value) + `}}]}`
		if _, problems := validated(t, h, text, nil); len(problems) == 0 {
			t.Errorf("%q of an inline definition has no effect, and no problem", field)
		}
	}
	for key := range unused {
		t.Errorf("there are no fields %s", key)
	}
	if pairs < 30 {
		t.Errorf("only %d pairs were tested", pairs)
	}
}

// member returns a member of an object.
func member(name, value string) string { return fmt.Sprintf("%q: %s", name, value) }

// schemaFields returns the fields of each object in the schema of a host, by the names of
// fieldObjects. Other names of fields are left out.
func schemaFields(t *testing.T, h *host.Host) map[string][]string {
	t.Helper()
	type object struct {
		Properties map[string]json.RawMessage
		AllOf      []struct {
			If   json.RawMessage
			Then struct{ Properties map[string]json.RawMessage }
		}
	}
	var schema struct {
		object
		Defs map[string]object `json:"$defs"`
	}
	if err := json.Unmarshal(h.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	names := func(all ...map[string]json.RawMessage) (list []string) {
		for _, properties := range all {
			for name, text := range properties {
				if !strings.Contains(string(text), `"Another name of `) {
					list = append(list, name)
				}
			}
		}
		return list
	}
	found := map[string][]string{"definition": names(schema.Properties), "input": names(schema.Defs["input"].Properties), "onError": names(schema.Defs["onError"].Properties)}
	for _, name := range []string{"safety", "budget"} {
		var o object
		if err := json.Unmarshal(schema.Properties[name], &o); err != nil {
			t.Fatal(err)
		}
		found[name] = names(o.Properties)
	}
	for object := range fieldObjects {
		if strings.HasPrefix(object, "loop ") {
			found[object] = names(schema.Defs["loop"].Properties)
		}
	}
	step := schema.Defs["step"]
	for _, branch := range step.AllOf {
		_, rest, _ := strings.Cut(string(branch.If), `"const":"`)
		name, _, _ := strings.Cut(rest, `"`)
		if _, ok := fieldObjects["step "+name]; !ok {
			t.Errorf("the fields of steps of type %q are not known", name)
		}
		found["step "+name] = slices.DeleteFunc(names(step.Properties, branch.Then.Properties), func(field string) bool { return field == "type" })
	}
	return found
}
