package host_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// environment is a host with the given variables only.
func environment(pairs ...string) host.Options {
	env := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		env[pairs[i]] = pairs[i+1]
	}
	return host.Options{Getenv: func(name string) string { return env[name] }, Environ: func() []string { return nil }}
}

// validated calls sentinel/validate and returns each problem with its hint on one line,
// warnings marked.
func validated(t *testing.T, h *host.Host, definition string, params map[string]any) (valid bool, lines []string) {
	t.Helper()
	all := map[string]any{"definition": definition}
	for name, value := range params {
		all[name] = value
	}
	in, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := h.Call(t.Context(), "sentinel/validate", in)
	if err != nil {
		t.Fatal(err)
	}
	var out struct {
		Valid    bool
		Problems sentinels.Problems
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	for _, p := range out.Problems {
		if p.Line == 0 || p.Column == 0 {
			t.Errorf("without a place: %v", p)
		}
		p.File, p.Line, p.Column = "", 0, 0
		line := p.String()
		if p.IsWarning() {
			line = "warning " + line
		}
		if p.Hint != "" {
			line += " | " + p.Hint
		}
		lines = append(lines, line)
	}
	return out.Valid, lines
}

// TestValidatePlaces: "Messages have places", also in a text with aliases and comments.
func TestValidatePlaces(t *testing.T) {
	h := open(t, environment())
	_, problems := h.Runtime().Inspect(t.Context(), []byte(`{"name": "n", // a comment
  "pipeline": [
    {"command": "code/reed"},
    {"if": "true", "then": [{"command": "code/git", "params": {"operation": "x"}}]},
    {"type": "sentinel", "pipeline": {"steps": [{"type": "shell"}]}}
  ]}`), "n.json")
	var got []string
	for _, p := range problems {
		got = append(got, strings.SplitAfterN(p.String(), ": ", 3)[0]+p.Path)
	}
	want := []string{"n.json:3:17: steps[0].command", "n.json:4:77: steps[1].then[0].params.operation", "n.json:5:49: steps[2].definition.steps[0].command"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestValidateNamedChild: "A named one sees its inputs only; validate says so where its
// text names a parent's variable."
func TestValidateNamedChild(t *testing.T) {
	h := open(t, environment())
	must(t, h, "sentinel/create", map[string]any{"definition": `{"id":"reader","inputs":{"file":{"default":"x"}},"steps":[
		{"argv":["cat","$file","$listing","$own","$elsewhere"]},{"values":{"own":1}},{"definition":{"$ref":"around"}}]}`}, nil)
	_, got := validated(t, h, `{"id":"around","inputs":{"file":{}},"steps":[{"cmd":"ls","outputTo":"listing"},{"definition":{"$ref":"reader"}}]}`, nil)
	want := []string{`warning steps[1].definition.$ref: sentinel "reader" refers to $listing, which is set here; a named sentinel sees only its inputs | declare the input "listing" in "reader", give it with "inputs": {"listing": "$listing"}, and write $inputs.listing there`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// Written inline it sees them.
	if _, got := validated(t, h, `{"id":"around","steps":[{"cmd":"ls","outputTo":"listing"},{"definition":{"steps":[{"argv":["cat","$listing"]}]}}]}`, nil); got != nil {
		t.Errorf("inline: %v", got)
	}
}

// TestChildInputs: wrong inputs of another sentinel are reported alike by validate, by a start of the definition, and by
// what stores it, whether a step names the sentinel or calls a command that starts it.
func TestChildInputs(t *testing.T) {
	h := open(t, environment())
	const kid = `{"id": "kid", "inputs": {"n": {"type": "integer", "required": true}, "level": {"enum": ["low", "high"]}, "list": "array"},
		"steps": [{"argv": ["echo", "$n", "$level", "$list"]}]}`
	must(t, h, "sentinel/create", map[string]any{"definition": kid}, nil)
	wrong := []string{
		`input "level" of sentinel "kid" is "mid", want one of "low", "high"`, `input "list" of sentinel "kid" is null, want array`,
		`sentinel "kid" has no input "lvl"`, `sentinel "kid" requires the input "n"`,
	}
	const bad, good = `{"level": "mid", "list": null, "lvl": 1}`, `{"n": "$x", "level": "$x", "list": ["$x"]}`
	for name, step := range map[string]string{
		"a named sentinel": `{"type": "sentinel", "definition": {"$ref": "kid"}, "inputs": %s}`,
		"sentinel/run":     `{"command": "sentinel/run", "params": {"sentinelId": "kid", "inputs": %s}}`,
		"sentinel/start":   `{"type": "parallel", "branches": [[{"command": "sentinel/start", "params": {"sentinelId": "kid", "inputs": %s}}]]}`,
	} {
		definition := func(inputs string) string {
			return `{"id": "parent", "variables": {"x": 1}, "steps": [` + fmt.Sprintf(step, inputs) + `]}`
		}
		messages := func(problems sentinels.Problems) (all []string) {
			for _, p := range problems {
				all = append(all, p.Message)
			}
			slices.Sort(all)
			return all
		}
		var out struct {
			Valid    bool
			Problems sentinels.Problems
			Loaded   []struct{ Problems sentinels.Problems }
		}
		must(t, h, "sentinel/validate", map[string]any{"definition": definition(bad)}, &out)
		if diff := cmp.Diff(wrong, messages(out.Problems)); diff != "" || out.Valid {
			t.Errorf("%s: validate (-want +got):\n%s", name, diff)
		}
		if err := call(t, h, "sentinel/run", map[string]any{"definition": definition(bad)}, nil); abi.CodeOf(err) != abi.BadFields || !strings.Contains(err.Error(), wrong[0]) {
			t.Errorf("%s: run: %v", name, err)
		}
		must(t, h, "sentinel/create", map[string]any{"definition": definition(bad), "replace": true}, &out)
		if diff := cmp.Diff(wrong, messages(out.Problems)); diff != "" {
			t.Errorf("%s: create (-want +got):\n%s", name, diff)
		}
		// The parent is loaded before the sentinel that it names.
		dir := t.TempDir()
		write(t, dir, map[string]string{"a.json": definition(bad), "kid.json": strings.Replace(kid, `"level": {`, `"lvl": {}, "level": {`, 1)})
		must(t, h, "sentinel/load", map[string]any{"path": dir}, &out)
		if diff := cmp.Diff(slices.Concat(wrong[:2], wrong[3:]), messages(out.Loaded[0].Problems)); diff != "" {
			t.Errorf("%s: load (-want +got):\n%s", name, diff)
		}
		must(t, h, "sentinel/create", map[string]any{"definition": kid, "replace": true}, nil)
		if valid, problems := validated(t, h, definition(good), nil); !valid || len(problems) > 0 {
			t.Errorf("%s: right inputs: %q", name, problems)
		}
	}
	// The engine's own check is the same.
	err := call(t, h, "sentinel/run", `{"sentinelId": "kid", "inputs": {"n": 1, "level": "mid"}}`, nil)
	if abi.CodeOf(err) != abi.BadFields || err.Error() != wrong[0] {
		t.Errorf("a start of kid: %v", err)
	}
}

// TestValidateKnows: "validate knows what the binary knows".
func TestValidateKnows(t *testing.T) {
	h := open(t, environment("OPENAI_API_KEY", "sk-test-0123456789abcdef"))
	if _, err := h.Call(t.Context(), "sentinel/create", json.RawMessage(`{"name": "child", "steps": [{"cmd": "true"}]}`)); err != nil {
		t.Fatal(err)
	}
	const llm = `{"type": "llm", "prompt": "p", "model": "ollama/x"`
	for _, c := range []struct {
		says string // the sentence of the specification
		step string
		want []string
	}{
		{"commands", `{"command": "code/reed"}`, []string{`steps[0].command: unknown command "code/reed" | did you mean "code/read"?`}},
		{"commands", `{"command": "code/zzzzzzzz"}`, []string{`steps[0].command: unknown command "code/zzzzzzzz" | known: code/diff, code/edit, …`}},
		{"commands", `{"command": "xxxx/yyyyyyyy"}`, []string{"steps[0].command: unknown command \"xxxx/yyyyyyyy\" | commands begin with ai/, audit/, chat/, …"}},
		{"a command from a value without an allow-list", `{"command": "$which", "condition": "true"}`, []string{`steps[0].command: a command that is the value of a reference needs the field allow | list what may be called: "allow": ["code/read"]`, `…`}},
		{"tools", `{"command": "code/read", "params": {"path": "a"}, "allow": ["code/raed"]}`, []string{`steps[0].allow[0]: unknown tool "code/raed" | did you mean "code/read"?`}},
		{"commands", `{"command": "$which", "allow": ["code/read"]}`, []string{`warning steps[0].command: $which is never set and stays as written | declare it under "inputs", or write "$$" for a dollar`}},
		{`"command": "ls -la" asks "did you mean type shell?"`, `{"command": "ls -la"}`, []string{`steps[0].command: unknown command "ls -la" | did you mean type "shell"?`}},
		{`"command": "ls -la" asks "did you mean type shell?"`, `{"command": "make"}`, []string{`steps[0].command: unknown command "make" | did you mean type "shell"?`}},
		{`{"cmd": "ls"} is a shell step`, `{"cmd": "ls"}`, nil},
		{"parameters", `{"command": "code/read"}`, []string{`steps[0]: command "code/read" needs the parameter "path" | it takes limit, numbered, …`}},
		{"parameters", `{"command": "code/read", "params": {"pth": "a", "path": "b"}}`, []string{`steps[0].params.pth: command "code/read" has no parameter "pth" | did you mean "path"?`}},
		{"parameters", `{"command": "code/edit", "params": {"path": "p", "edits": [{"old": "a", "nwe": "b"}]}}`, []string{`steps[0].params.edits[0].nwe: command "code/edit" has no parameter "nwe" | did you mean "new"?`}},
		{"parameters", `{"command": "code/edit", "params": {"path": "p", "edits": [{"old": "a", "zzzz": "b"}]}}`, []string{`steps[0].params.edits[0].zzzz: command "code/edit" has no parameter "zzzz" | known: new, old, replaceAll`}},
		{"type ... where no reference stands", `{"command": "code/git", "params": {"operation": "log", "limit": "many"}}`, []string{`steps[0].params.limit: is a string, want a whole number`}},
		{"type ... where no reference stands", `{"command": "code/git", "params": {"operation": "log", "limit": "$iteration"}}`, nil},
		{"enum where no reference stands", `{"command": "code/git", "params": {"operation": "statsu"}}`, []string{`steps[0].params.operation: unknown value "statsu" | did you mean "status"?`}},
		{"enum where no reference stands", `{"command": "code/git", "params": {"operation": "$event.x"}}`, nil},
		{"expressions in parameters", `{"command": "events/emit", "params": {"event": "a:b", "data": {"n": [{"expr": "1 + 1"}]}}}`, []string{
			`steps[0].params.data.n[0]: {"expr": ...} is evaluated only as a whole value in "values" of a step of type set, and as "each" of a loop | compute it in a step of type set before this one, and write a $reference here`}},
		{"expressions in parameters", `{"command": "code/write", "params": {"path": {"expr": "'a'"}, "content": "x"}}`, []string{
			`steps[0].params.path: {"expr": ...} is evaluated only as a whole value in "values" of a step of type set, and as "each" of a loop | compute it in a step of type set before this one, and write a $reference here`}},
		{"expressions in parameters", `{"command": "sentinel/create", "params": {"definition": {"name": "m", "steps": [{"type": "set", "values": {"a": {"expr": "1"}}}]}}}`, nil},
		{"expressions in parameters", `{"command": "data/create", "params": {"collection": "c", "data": {"steps": [{"type": "set", "values": {"a": {"expr": "1"}}}]}}}`, nil},
		{"parameters", `{"command": "code/shell/execute", "params": {"command": "ls", "env": {"A": ["x"]}}}`, []string{`steps[0].params.env.A: is an array, want a string`}},
		{"tools", `{"type": "llm", "prompt": "p", "model": "ollama/x", "tools": ["code/raed", "code/*", "cod/*", "*"]}`, []string{
			`steps[0].tools[0]: unknown tool "code/raed" | did you mean "code/read"?`,
			`steps[0].tools[2]: no command is in "cod/*" | did you mean "code/*"?`}},
		{"models", `{"type": "llm", "prompt": "p", "model": "openia/gpt"}`, []string{`steps[0].model: unknown provider "openia" | did you mean "openai/gpt"?`}},
		{"models", `{"type": "llm", "prompt": "p", "model": "$event.model"}`, nil},
		{"models", `{"type": "llm", "prompt": "p", "model": "best"}`, []string{`steps[0].model: unknown model "best" | write provider/name with one of the providers ollama, openai, anthropic`}},
		{"models", `{"type": "llm", "prompt": "p", "model": "openai/gpt-6-soll"}`, []string{`warning steps[0].model: the table of models does not have "openai/gpt-6-soll" | did you mean "openai/gpt-6-sol"?`}},
		{"a model without a key ... is a warning", `{"type": "llm", "prompt": "p", "model": "anthropic/claude-sonnet-5-5"}`, []string{`warning steps[0].model: model "anthropic/claude-sonnet-5-5": provider "anthropic" is not configured | set ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL`}},
		{"step types", `{"type": "condtion", "check": "true", "then": [{"command": "code/reed"}]}`, []string{
			`steps[0].type: unknown step type "condtion" | did you mean "condition"?`,
			`steps[0].then[0].command: unknown command "code/reed" | did you mean "code/read"?`}},
		{"problems inside a step of unknown type and plugins' own come in the same report", `{"type": "zzz", "then": [{"type": "shell"}]}, {"type": "shell"}, {"command": "nope/x"}`, []string{
			`steps[0].type: unknown step type "zzz" | known: command, approve, llm, watch, condition, sentinel, emit, loop, parallel, shell, wait, set, verify, plan, group, fail, stop, http`,
			`steps[1].command: want command or argv`,
			`steps[2].command: unknown command "nope/x" | commands begin with ai/, audit/, chat/, …`}},
		{"references, beside other errors", `{"cmd": "ls", "outputTo": "listing"}, {"comand": "x", "prompt": "$listign.output"}`, []string{
			`steps[1].comand: unknown key "comand" | known: …`,
			`steps[1].prompt: unknown variable $listign | did you mean "$listing"?`}},
		{"$refs", `{"definition": {"$ref": "child"}}`, nil},
		{"a missing child is an error", `{"definition": {"$ref": "chidl"}}`, []string{`steps[0].definition.$ref: no sentinel "chidl" is stored here | did you mean "child"? Else a run can start when it is stored: sentinel create FILE`}},
		{"$refs", `{"definition": {"$ref": "$n"}}`, []string{`steps[0].definition.$ref: invalid sentinel id "$n" | the definition in a variable is the value of the field itself: "$n"`}},
		{"$refs", `{"definition": {"$ref": "My Child"}}`, []string{`steps[0].definition.$ref: invalid sentinel id "My Child" | for example "my-child"`}},
		{"problems of nested definitions", `{"definition": {"steps": [{"command": "code/reed"}, {"type": "shell"}, ` + llm + `, "tools": ["x/*"]}]}}`, []string{
			`steps[0].definition.steps[0].command: unknown command "code/reed" | did you mean "code/read"?`,
			`steps[0].definition.steps[1].command: want command or argv`,
			`steps[0].definition.steps[2].tools[0]: no command is in "x/*" | commands begin with ai/, audit/, chat/, …`}},
	} {
		t.Run(c.says, func(t *testing.T) {
			valid, got := validated(t, h, `{"name": "n", "steps": [`+c.step+`]}`, nil)
			for i := range min(len(got), len(c.want)) {
				if prefix, cut := strings.CutSuffix(c.want[i], "…"); cut && strings.HasPrefix(got[i], prefix) {
					got[i] = c.want[i]
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.step, diff)
			}
			wantValid := true
			for _, line := range c.want {
				wantValid = wantValid && strings.HasPrefix(line, "warning ")
			}
			if valid != wantValid {
				t.Errorf("valid: %v", valid)
			}
		})
	}
}

// TestValidateOutputs: "fields of known outputs" and "A field that an output with a closed
// schema cannot have (exit_code) is an error of validate".
func TestValidateOutputs(t *testing.T) {
	h := open(t, environment("OLLAMA_HOST", "127.0.0.1:1"))
	const shell = `{"type": "shell", "command": "make", "outputTo": "r"}, `
	for _, c := range []struct{ steps, at, field string }{
		{shell + `{"if": "$r.exit_code === 0", "then": []}`, "steps[1].check: $r.exit_code", "exit_code"},
		{shell + `{"if": "$r?.exitcode", "then": []}`, "steps[1].check: $r?.exitcode", "exitcode"},
		{shell + `{"prompt": "why $r.outptu?"}`, "steps[1].prompt: $r.outptu", "outptu"},
		{shell + `{"cmd": "echo $r.outptu"}`, "steps[1].command: $r.outptu", "outptu"},
		{shell + `{"cmd": "true", "condition": "!$r.succes"}`, "steps[1].condition: $r.succes", "succes"},
		{shell + `{"event": "e", "data": {"a": ["$r.code"]}}`, "steps[1].data: $r.code", "code"},
		{`{"command": "code/git", "params": {"operation": "status"}, "outputTo": "r"}, {"prompt": "$r.brunch"}`, "steps[1].prompt: $r.brunch", "brunch"},
		{`{"type": "shell", "command": "a", "outputTo": "r", "onError": "skip"}, {"prompt": "$r.skipped $r.exit"}`, "steps[1].prompt: $r.exit", "exit"},
		// What may have any field, or has it.
		{shell + `{"prompt": "$r.exitCode, $r.output and $$r.x"}`, "", ""},
		{shell + `{"if": "$r.output.trim() === 'x $r.nope' && $r.output.length", "then": []}`, "", ""},
		{shell + `{"prompt": "p as JSON", "outputTo": "r"}, {"prompt": "$r.anything"}`, "", ""},
		{`{"prompt": "p as JSON", "outputTo": "r"}, {"prompt": "$r.anything"}`, "", ""},
		{`{"command": "data/read", "params": {"collection": "c", "id": "x"}, "outputTo": "r"}, {"prompt": "$r.document.data.mine"}`, "", ""},
	} {
		_, got := validated(t, h, `{"name": "n", "steps": [`+c.steps+`]}`, nil)
		switch {
		case c.at == "" && len(got) > 0:
			t.Errorf("%s: %q", c.steps, got)
		case c.at != "" && (len(got) != 1 || !strings.Contains(got[0], c.at+`: $r has no field "`+c.field+`"; it has `) || !strings.Contains(got[0], ", ")):
			t.Errorf("%s: %q", c.steps, got)
		}
	}
	_, got := validated(t, h, `{"name": "n", "steps": [{"cmd": "make", "outputTo": "b"}], "loop": {"type": "until", "check": "$b.exit_code === 0"}, "safety": {"maxIterations": 2}}`, nil)
	if len(got) != 1 || !strings.Contains(got[0], "loop.check: $b.exit_code: $b has no field") || !strings.Contains(got[0], `did you mean "$b.exitCode"?`) {
		t.Errorf("%q", got)
	}
}

// TestValidateHighlights: the tools of a definition are "never a filter", so an unknown one
// is a warning.
func TestValidateHighlights(t *testing.T) {
	h := open(t, environment())
	valid, got := validated(t, h, `{"name": "n", "tools": ["code/read", "code/raed"], "steps": []}`, nil)
	if !valid || len(got) != 1 || got[0] != `warning tools[1]: unknown tool "code/raed" | did you mean "code/read"?` {
		t.Errorf("%v %q", valid, got)
	}
}

// TestValidatePrices: "models and prices (what is known but absent here is a warning)".
func TestValidatePrices(t *testing.T) {
	h := open(t, environment("OPENAI_BASE_URL", "https://gateway.example.com/v1"))
	_, got := validated(t, h, `{"name": "n", "budget": {"costUsd": 1}, "steps": [{"prompt": "p", "model": "openai/mine"}, {"prompt": "p", "model": "openai/gpt-6-sol"}]}`, nil)
	if len(got) != 1 || !strings.HasPrefix(got[0], `warning steps[0].model: the price of model "openai/mine" is not known, so budget.costUsd refuses its calls | `) {
		t.Errorf("%q", got)
	}
	_, got = validated(t, h, `{"name": "n", "steps": [{"prompt": "p", "model": "openai/mine"}]}`, nil)
	if len(got) > 0 {
		t.Errorf("without costUsd: %q", got)
	}
	h = open(t, environment())
	_, got = validated(t, h, `{"name": "n", "steps": [{"prompt": "p"}]}`, nil)
	if len(got) != 1 || !strings.HasPrefix(got[0], `warning steps[0].model: no model is configured, and the step names none | set OLLAMA_HOST`) {
		t.Errorf("without any model: %q", got)
	}
}

// TestValidateStrict: "--strict makes warnings errors", here the parameter of the command.
func TestValidateStrict(t *testing.T) {
	h := open(t, environment())
	const text = `{"name": "n", "steps": [{"type": "wait", "event": "sentinel:a:fail"}]}`
	if valid, got := validated(t, h, text, nil); !valid || len(got) != 1 {
		t.Errorf("%v %q", valid, got)
	}
	if valid, got := validated(t, h, text, map[string]any{"strict": true}); valid || len(got) != 1 {
		t.Errorf("strict: %v %q", valid, got)
	}
	if valid, _ := validated(t, h, `{"name": "n", "steps": []}`, map[string]any{"strict": true}); !valid {
		t.Error("a definition without warnings is not valid")
	}
}

// TestAbsentRefusedAtStart: "What is known but absent here (a plugin not loaded, a model
// without a key, a $ref not yet stored) is a warning, and a refusal at start."
func TestAbsentRefusedAtStart(t *testing.T) {
	h := open(t, environment())
	for step, want := range map[string]string{
		`{"definition": {"$ref": "later"}}`:                                                        `start "n": steps[0].definition.$ref: no sentinel "later" is stored here`,
		`{"prompt": "p", "model": "openai/gpt-6-sol"}`:                                             `start "n": steps[0].model: model "openai/gpt-6-sol": provider "openai" is not configured`,
		`{"definition": {"steps": [{"if": "true", "then": [{"definition": {"$ref": "later"}}]}]}}`: `start "n": steps[0].definition.steps[0].then[0].definition.$ref: no sentinel "later" is stored here`,
	} {
		def, problems := h.Runtime().Decode([]byte(`{"name": "n", "steps": [`+step+`]}`), "n.json")
		if len(problems) > 0 {
			t.Errorf("%s: %v", step, problems)
			continue
		}
		if _, err := h.Runtime().Save(t.Context(), def, runtime.AnyRevision); err != nil {
			t.Errorf("%s: save: %v", step, err)
		}
		_, err := h.Call(t.Context(), "sentinel/start", json.RawMessage(`{"sentinelId": "n"}`))
		if abi.CodeOf(err) != abi.NotFound || err.Error() != want {
			t.Errorf("%s: %v", step, err)
		}
	}
	if _, err := h.Call(t.Context(), "sentinel/create", json.RawMessage(`{"name": "later", "steps": []}`)); err != nil {
		t.Fatal(err)
	}
	run(t, h, `{"name": "n", "steps": [{"definition": {"$ref": "later"}}]}`, "")
}

// TestValidateStrictHTTP: "--strict makes warnings errors", here over HTTP.
func TestValidateStrictHTTP(t *testing.T) {
	h := open(t, environment())
	srv := serve(t, h)
	for body, want := range map[string]bool{
		`{"definition": {"name": "n", "tools": ["no/tool"], "steps": []}}`:                 true,
		`{"definition": {"name": "n", "tools": ["no/tool"], "steps": []}, "strict": true}`: false,
	} {
		var out struct{ Valid bool }
		caller(t, srv, http.StatusOK)("POST", "/v1/commands/sentinel/validate", body, &out)
		if out.Valid != want {
			t.Errorf("%s: valid %v", body, out.Valid)
		}
	}
}

// TestValidateTriggers: "options of triggers": each has its place, and all are listed.
func TestValidateTriggers(t *testing.T) {
	h := open(t, environment())
	for trigger, want := range map[string][]string{
		`{"type": "file", "paths": ["a"], "settelMs": 5}`: {`2:35: trigger.settelMs: a trigger of type "file" has no option "settelMs" | did you mean "settleMs"? known: paths, `},
		`{"type": "file", "paths": ["a"], "zzzz": 5}`:     {`2:35: trigger.zzzz: a trigger of type "file" has no option "zzzz" | known: paths, `},
		`{"type": "schedule", "cron": "x", "tz": "UTC", "jitterMs": "5"}`: {
			`2:2: trigger: cron expression "x": 1 fields`,
			`2:36: trigger.tz: a trigger of type "schedule" has no option "tz" | write "timeZone": "UTC"`,
			`2:61: trigger.jitterMs: is a string, want a whole number`},
		`{"type": "event", "evnt": "a:b"}`: {
			`2:2: trigger: a trigger of type "event" needs "event"`,
			`2:20: trigger.evnt: a trigger of type "event" has no option "evnt" | did you mean "event"? known: event, source, filter, `},
		`{"type": "manual", "debounceMs": "1"}`: {`2:35: trigger.debounceMs: is a string, want a whole number`},
		`{"type": "fiel"}`:                      {`2:11: trigger.type: unknown value "fiel" | did you mean "file"?`},
	} {
		_, problems := h.Runtime().Inspect(t.Context(), []byte("{\"name\": \"n\", \"steps\": [], \"trigger\":\n "+trigger+"}"), "")
		var got []string
		for _, p := range problems {
			line := p.String()
			if p.Hint != "" {
				line += " | " + p.Hint
			}
			got = append(got, line)
		}
		if len(got) != len(want) {
			t.Errorf("%s: %q", trigger, got)
			continue
		}
		for i := range want {
			if !strings.HasPrefix(got[i], want[i]) {
				t.Errorf("%s: %q, want %q", trigger, got[i], want[i])
			}
		}
	}
}
