package command_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

type edit struct {
	Old string `json:"old"`
	New string `json:"new,omitempty"`
}

type sampleIn struct {
	Path   string            `json:"path" jsonschema:"file to work on"`
	Limit  int               `json:"limit,omitempty" minimum:"1" maximum:"50"`
	Ratio  float64           `json:"ratio,omitempty"`
	Force  bool              `json:"force,omitempty"`
	Mode   string            `json:"mode,omitempty" enum:"fast,slow"`
	Names  []string          `json:"names,omitempty"`
	Edits  []edit            `json:"edits,omitempty"`
	Env    map[string]string `json:"env,omitempty"`
	Filter json.RawMessage   `json:"filter,omitempty"`
}

func echo(_ context.Context, _ *command.Call, in sampleIn) (sampleIn, error) { return in, nil }

func sample(t *testing.T, extra ...command.Command) *command.Registry {
	t.Helper()
	r, err := command.NewRegistry(append(extra,
		command.New("code/sample", "Echo its parameters.", command.Options{Effect: command.Changes, Aliases: map[string]string{"file": "path"}}, echo),
		command.New("code/other", "Other words.", command.Options{Effect: command.Reads}, echo),
		command.New("sentinel/start", "Start a sentinel.", command.Options{Effect: command.Changes, Private: true}, echo),
	)...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCallValidates(t *testing.T) {
	r := sample(t)
	tests := []struct {
		name, params, field, want, hint string
	}{
		{"missing", `{}`, "path", `field "path": is missing`, ""},
		{"unknown", `{"path":"a","pth":"b"}`, "pth", `field "pth": is unknown`, `did you mean "path"?`},
		{"unknown far", `{"path":"a","zzzzzz":1}`, "zzzzzz", `is unknown`, "it takes edits, env, "},
		{"type", `{"path":"a","limit":"3"}`, "limit", `must be integer, not string`, ""},
		{"nested", `{"path":"a","edits":[{"old":"x"},{"old":1}]}`, "edits[1].old", `must be string, not number`, ""},
		{"enum", `{"path":"a","mode":"Fast"}`, "mode", `must be one of "fast", "slow"`, ""},
		{"range", `{"path":"a","limit":51}`, "limit", `50`, ""},
		{"null", `{"path":null}`, "path", `must be string, not null`, ""},
		{"case", `{"Path":"a","path":"b"}`, "Path", `is unknown`, `did you mean "path"?`},
		{"no object", `[1]`, "", `must be an object`, ""},
		{"two values", `{"path":"a"}{}`, "", `line 1, column 13: text after the JSON value`, ""},
		{"duplicate key", `{"path":"a","env":{"A":"1","\u0041":"2"}}`, "env.A", `line 1, column 28: env.A: duplicate key "A", first at line 1, column 20`, ""},
		{"lone surrogate", `{"path":"\ud800"}`, "path", `line 1, column 10: path: text that is not UTF-8`, ""},
		{"number out of range", `{"path":"a","limit":1e999}`, "limit", `line 1, column 21: limit: the number 1e999 is out of range`, ""},
		{"syntax", `{`, "", `parameters: `, ""},
		{"alias and name", `{"path":"a","file":"b"}`, "file", `is another name for "path"`, ""},
		{"huge integer", `{"path":"a","limit":1e400}`, "limit", "limit: the number 1e400 is out of range", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := r.Call(t.Context(), &command.Call{Command: "code/sample", Params: json.RawMessage(tt.params)})
			e := abi.As(err)
			if e == nil || e.Code != abi.BadFields {
				t.Fatalf("got %v, want bad_fields", err)
			}
			if e.Field != tt.field || !strings.Contains(e.Message, tt.want) || !strings.Contains(e.Hint, tt.hint) {
				t.Errorf("got field %q, message %q, hint %q", e.Field, e.Message, e.Hint)
			}
		})
	}
}

func TestCallNamesEveryProblem(t *testing.T) {
	_, err := sample(t).Call(t.Context(), &command.Call{Command: "code/sample", Params: json.RawMessage(`{"limit":"x","mode":"y"}`)})
	for _, want := range []string{`"limit"`, `"mode"`, `"path"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("message %q does not name %s", err, want)
		}
	}
}

// Arguments that cannot be read arrive as a string, as a model wrote them. The
// error says where they are wrong.
func TestModelArgumentsAreReadStrictly(t *testing.T) {
	r := sample(t)
	for name, c := range map[string]struct{ arguments, want string }{
		"duplicate key": {`{"path": "a", "path": "b"}`, `parameters: line 1, column 15: path: duplicate key "path", first at line 1, column 2`},
		"cut off":       {`{"path": "a`, "parameters: line 1, column 12: path: the text ends before the value does"},
		"too deep":      {`{"path": ` + strings.Repeat("[", 72) + strings.Repeat("]", 72) + `}`, "nested more than 72 deep"},
		"words":         {`the file`, "parameters: line 1, column 2: invalid character"},
		"a number":      {`12`, "parameters: must be an object"},
	} {
		quoted, err := json.Marshal(c.arguments)
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.Call(t.Context(), &command.Call{Command: "code/sample", Params: quoted, By: command.ByModel})
		if abi.CodeOf(err) != abi.BadFields || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want bad_fields with %q", name, err, c.want)
		}
	}
}

func TestModelArgumentsAreCoerced(t *testing.T) {
	r := sample(t)
	tests := []struct{ name, params, want string }{
		{"integer in text", `{"path":"a","limit":"3"}`, `{"path":"a","limit":3}`},
		{"integer as float", `{"path":"a","limit":3.0}`, `{"path":"a","limit":3}`},
		{"integer with exponent", `{"path":"a","limit":3e0}`, `{"path":"a","limit":3}`},
		{"number in text", `{"path":"a","ratio":" 0.5 "}`, `{"path":"a","ratio":0.5}`},
		{"truth in text", `{"path":"a","force":"True"}`, `{"path":"a","force":true}`},
		{"text from number", `{"path":12}`, `{"path":"12"}`},
		{"text from truth", `{"path":true}`, `{"path":"true"}`},
		{"text stays text", `{"path":"12"}`, `{"path":"12"}`},
		{"JSON list in text", `{"path":"a","names":"[\"x\",\"y\"]"}`, `{"path":"a","names":["x","y"]}`},
		{"JSON objects in text", `{"path":"a","edits":"[{\"old\":\"x\"}]"}`, `{"path":"a","edits":[{"old":"x"}]}`},
		{"one object for a list", `{"path":"a","edits":{"old":"x"}}`, `{"path":"a","edits":[{"old":"x"}]}`},
		{"one object in text", `{"path":"a","edits":"{\"old\":\"x\"}"}`, `{"path":"a","edits":[{"old":"x"}]}`},
		{"one text for a list", `{"path":"a","names":"x"}`, `{"path":"a","names":["x"]}`},
		{"one number for a list of text", `{"path":"a","names":7}`, `{"path":"a","names":["7"]}`},
		{"map in text", `{"path":"a","env":"{\"A\":1}"}`, `{"path":"a","env":{"A":"1"}}`},
		{"null is absent", `{"path":"a","limit":null,"names":null}`, `{"path":"a"}`},
		{"enum case", `{"path":"a","mode":"FAST"}`, `{"path":"a","mode":"fast"}`},
		{"alias", `{"file":"a"}`, `{"path":"a"}`},
		{"all in text", `"{\"path\":\"a\",\"limit\":\"3\"}"`, `{"path":"a","limit":3}`},
		{"any value stays", `{"path":"a","filter":"3"}`, `{"path":"a","filter":"3"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := r.Call(t.Context(), &command.Call{Command: "code/sample", Params: json.RawMessage(tt.params), By: command.ByModel})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWholeNumbersServeEveryCaller(t *testing.T) {
	got, err := sample(t).Call(t.Context(), &command.Call{Command: "code/sample", Params: json.RawMessage(`{"path":"a","limit":2.0}`), By: command.ByStep})
	if err != nil || string(got) != `{"path":"a","limit":2}` {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestAllowed(t *testing.T) {
	public, private := command.Command{Name: "code/read"}, command.Command{Name: "sentinel/start", Private: true}
	tests := []struct {
		tools           []string
		public, private bool
	}{
		{nil, true, false},
		{[]string{}, false, false},
		{[]string{"*"}, true, false},
		{[]string{"code/*"}, true, false},
		{[]string{"sentinel/*"}, false, true},
		{[]string{"sentinel/start"}, false, true},
		{[]string{"code"}, false, false},
		{[]string{"/*"}, false, false},
		{[]string{"cod*"}, false, false},
		{[]string{"code/rea"}, false, false},
		{[]string{"sentinel"}, false, false},
	}
	for _, tt := range tests {
		if got := command.Allowed(tt.tools, public); got != tt.public {
			t.Errorf("%q allows code/read: %v", tt.tools, got)
		}
		if got := command.Allowed(tt.tools, private); got != tt.private {
			t.Errorf("%q allows sentinel/start: %v", tt.tools, got)
		}
	}
}

func TestWideFamilyLeavesPrivateCommandsOut(t *testing.T) {
	status := command.Command{Name: "code/shell/status", Private: true}
	if command.Allowed([]string{"code/*", "*"}, status) {
		t.Error("code/* matched a private command of a family below")
	}
	if !command.Allowed([]string{"code/shell/*"}, status) {
		t.Error("code/shell/* did not match")
	}
}

// TestNoPatternMatchesWhatExecutes: an author who lists code/* or * for a model has
// not granted the execution of code.
func TestNoPatternMatchesWhatExecutes(t *testing.T) {
	run := func(_ context.Context, _ *command.Call, _ struct{}) (struct{}, error) { return struct{}{}, nil }
	for name, opt := range map[string]command.Options{
		"code/verify": {Effect: command.Executes}, "sentinel/create": {Effect: command.Configures}, "code/git": {Effect: command.Changes, ByName: true},
	} {
		r, err := command.NewRegistry(command.New(name, "x", opt, run))
		if err != nil {
			t.Fatal(err)
		}
		for _, tools := range [][]string{nil, {}, {"*"}, {"code/*"}, {"code/shell/*"}, {"*", "code/*", "sentinel/*"}, {name + "/*"}} {
			_, err := r.Call(t.Context(), &command.Call{Command: name, By: command.ByModel, Tools: tools, Params: json.RawMessage(`{}`)})
			if abi.CodeOf(err) != abi.Denied || len(r.Offer(tools)) > 0 {
				t.Errorf("%q: %s: got %v, offered %d", tools, name, err, len(r.Offer(tools)))
			}
			if e := abi.As(err); slices.Contains(tools, "*") && !strings.Contains(e.Hint, `name "`+name+`" itself`) {
				t.Errorf("%q: %s: the hint is %q", tools, name, e.Hint)
			}
		}
		if _, err := r.Call(t.Context(), &command.Call{Command: name, By: command.ByModel, Tools: []string{name}, Params: json.RawMessage(`{}`)}); err != nil {
			t.Errorf("%s by its name: %v", name, err)
		}
	}
}

func TestModelIsHeldToItsTools(t *testing.T) {
	r := sample(t)
	// The allow-list of a run whose definition was the value of a variable is a further one.
	for _, tools := range [][]string{nil, {"code/sample"}} {
		within := &command.Call{Command: "code/sample", Params: json.RawMessage(`{"path":"a"}`), By: command.ByModel, Tools: tools, Within: []string{"data/*"}}
		if _, err := r.Call(t.Context(), within); abi.CodeOf(err) != abi.Denied {
			t.Errorf("outside of the run's commands: %v", err)
		}
	}
	call := &command.Call{Command: "code/sample", Params: json.RawMessage(`{"path":"a"}`), By: command.ByModel, Tools: []string{"code/other"}}
	_, err := r.Call(t.Context(), call)
	if e := abi.As(err); e == nil || e.Code != abi.Denied || e.Hint != "its tools are code/other" {
		t.Errorf("got %+v, want denied", e)
	}
	call.By = command.ByStep
	if _, err := r.Call(t.Context(), call); err != nil {
		t.Errorf("a step is not held to tools: %v", err)
	}
}

func TestUnknownCommandNamesTheNearest(t *testing.T) {
	r := sample(t)
	tests := []struct {
		name, hint string
		by         command.By
	}{
		{"code/smaple", `did you mean "code/sample"?`, command.ByUser},
		{"other", `did you mean "code/other"?`, command.ByUser},
		{"sentinel/strt", `did you mean "sentinel/start"?`, command.ByUser},
		{"screenshot", `use a step of type shell with a browser`, command.ByUser},
		{"screenshot", ``, command.ByModel},
		{"start", ``, command.ByModel}, // private: a model is not told
		{"", ``, command.ByUser},
	}
	for _, tt := range tests {
		_, err := r.Call(t.Context(), &command.Call{Command: tt.name, By: tt.by})
		if e := abi.As(err); e == nil || e.Code != abi.NotFound || e.Hint != tt.hint {
			t.Errorf("%q: got %+v", tt.name, e)
		}
	}
}

func TestErrorsCrossWithACode(t *testing.T) {
	fail := func(err error) command.Command {
		return command.New("x/fail", "Fail.", command.Options{Effect: command.Changes}, func(context.Context, *command.Call, struct{}) (any, error) { return nil, err })
	}
	tests := []struct {
		err  error
		want abi.Code
	}{
		{errors.New("plain"), abi.Internal},
		{fmt.Errorf("open: %w", fs.ErrNotExist), abi.NotFound},
		{fs.ErrPermission, abi.Denied},
		{context.DeadlineExceeded, abi.Timeout},
		{context.Canceled, abi.Cancelled},
		{fmt.Errorf("wrapped: %w", abi.New(abi.Conflict, "stale")), abi.Conflict},
	}
	for _, tt := range tests {
		_, err := sample(t, fail(tt.err)).Call(t.Context(), &command.Call{Command: "x/fail"})
		if got := abi.CodeOf(err); got != tt.want || abi.As(err) == nil {
			t.Errorf("%v: got %q, want %q", tt.err, got, tt.want)
		}
	}
}

func TestPanicIsAnError(t *testing.T) {
	boom := command.New("x/boom", "Panic.", command.Options{Effect: command.Changes}, func(context.Context, *command.Call, struct{}) (any, error) { panic("boom") })
	_, err := sample(t, boom).Call(t.Context(), &command.Call{Command: "x/boom"})
	if abi.CodeOf(err) != abi.Internal || !strings.Contains(err.Error(), "boom") {
		t.Errorf("got %v", err)
	}
}

func TestCallLimitsTime(t *testing.T) {
	wait := command.New("x/wait", "Wait.", command.Options{Effect: command.Changes, Timeout: time.Nanosecond}, func(ctx context.Context, _ *command.Call, _ struct{}) (any, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	r := sample(t, wait)
	if _, err := r.Call(t.Context(), &command.Call{Command: "x/wait"}); abi.CodeOf(err) != abi.Timeout {
		t.Errorf("own timeout: got %v", err)
	}
	if _, err := r.Call(t.Context(), &command.Call{Command: "x/wait", Deadline: time.Now().Add(-time.Second)}); abi.CodeOf(err) != abi.Timeout {
		t.Errorf("deadline: got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Call(ctx, &command.Call{Command: "x/wait"}); abi.CodeOf(err) != abi.Cancelled {
		t.Errorf("cancelled: got %v", err)
	}
}

func TestCallLeavesTheCallAlone(t *testing.T) {
	call := &command.Call{Command: "code/sample", Params: json.RawMessage(`{"file":"a"}`), By: command.ByModel}
	if _, err := sample(t).Call(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	if string(call.Params) != `{"file":"a"}` {
		t.Errorf("parameters became %s", call.Params)
	}
}

func TestAddReportsEveryMistake(t *testing.T) {
	ok := command.New("a/b", "Fine.", command.Options{Effect: command.Changes}, echo)
	_, err := command.NewRegistry(
		command.New("no spaces", "Bad name.", command.Options{Effect: command.Changes}, echo),
		command.New("x/shell", "Bad mark.", command.Options{Effect: command.Changes, Shell: []string{"nope"}}, echo),
		command.New("x/alias", "Alias of a shell line.", command.Options{Effect: command.Changes, Shell: []string{"path"}, Aliases: map[string]string{"cmd": "path"}}, echo),
		command.NewDynamic("x/remote", "Reference outside.", json.RawMessage(`{"$ref":"file:///etc/passwd"}`), nil, command.Options{Effect: command.Changes}, nil),
		command.Command{Name: "x/none"}, ok, ok,
	)
	for _, want := range []string{"no spaces", "x/shell", "x/alias", "x/remote", "x/none", "given twice"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	r, err := command.NewRegistry(ok)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Add(command.New("c/d", "New.", command.Options{Effect: command.Changes}, echo), ok); err == nil {
		t.Error("a taken name was accepted")
	}
	if _, found := r.Lookup("c/d"); found {
		t.Error("half of a refused Add stayed")
	}
}

func TestDynamicCommand(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"integer"}},"required":["n"]}`)
	c := command.NewDynamic("mcp/srv/Get_It", "A tool of a server.", schema, nil, command.Options{Effect: command.Changes},
		func(_ context.Context, call *command.Call) (json.RawMessage, error) { return call.Params, nil })
	r := sample(t, c)
	got, err := r.Call(t.Context(), &command.Call{Command: "mcp/srv/Get_It", Params: json.RawMessage(`{"n":"4"}`), By: command.ByModel})
	if err != nil || string(got) != `{"n":4}` {
		t.Errorf("got %s, %v", got, err)
	}
	r.Remove("mcp/srv/Get_It")
	if _, ok := r.Lookup("mcp/srv/Get_It"); ok {
		t.Error("still there after Remove")
	}
}

func TestSchemaSaysWhatTagsSay(t *testing.T) {
	c, _ := sample(t).Lookup("code/sample")
	var s struct {
		AdditionalProperties any
		Required             []string
		Properties           map[string]map[string]any
	}
	if err := json.Unmarshal(c.Input(), &s); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(s.AdditionalProperties) != "false" && fmt.Sprint(s.AdditionalProperties) != "map[not:map[]]" {
		t.Errorf("additionalProperties is %v", s.AdditionalProperties)
	}
	if diff := cmp.Diff([]string{"path"}, s.Required); diff != "" {
		t.Error(diff)
	}
	if s.Properties["path"]["description"] != "file to work on" || s.Properties["names"]["type"] != "array" || s.Properties["limit"]["maximum"] != 50.0 {
		t.Errorf("got %s", c.Input())
	}
}

func TestSearchTools(t *testing.T) {
	r := sample(t)
	if err := r.Add(command.SearchTools(r)); err != nil {
		t.Fatal(err)
	}
	find := func(by command.By, tools []string, params string) (names []string) {
		t.Helper()
		text, err := r.Call(t.Context(), &command.Call{Command: "search_tools", Params: json.RawMessage(params), By: by, Tools: tools})
		if err != nil {
			t.Fatal(err)
		}
		var out struct{ Tools []struct{ Name string } }
		if err := json.Unmarshal(text, &out); err != nil {
			t.Fatal(err)
		}
		for _, f := range out.Tools {
			names = append(names, f.Name)
		}
		return names
	}
	if diff := cmp.Diff([]string{"sentinel/start"}, find(command.ByUser, nil, `{"query":"start a run"}`)[:1]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"code/other", "code/sample", "search_tools"}, find(command.ByModel, nil, `{}`)); diff != "" {
		t.Errorf("a model sees private commands: %s", diff)
	}
	if diff := cmp.Diff([]string{"sentinel/start"}, find(command.ByUser, nil, `{"tools":["sentinel/*"]}`)); diff != "" {
		t.Errorf("a list of tools: %s", diff)
	}
	if got := find(command.ByModel, nil, `{"tools":["sentinel/*"]}`); len(got) != 0 {
		t.Errorf("a list of tools widens what a model finds: %v", got)
	}
	if got := find(command.ByUser, nil, `{"limit":1}`); len(got) != 1 {
		t.Errorf("limit 1 gave %v", got)
	}
}

func TestRegistryHammer(t *testing.T) {
	r := sample(t)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			name := fmt.Sprintf("x/c%d", i)
			for range 50 {
				if err := r.Add(command.New(name, "Come and go.", command.Options{Effect: command.Changes}, echo)); err != nil {
					t.Error(err)
				}
				if _, err := r.Call(t.Context(), &command.Call{Command: name, Params: json.RawMessage(`{"path":"a"}`)}); err != nil {
					t.Error(err)
				}
				r.List()
				r.Remove(name)
			}
		})
	}
	group.Wait()
}

func TestSteering(t *testing.T) {
	for _, name := range []string{
		".hg/hgrc", ".jj/repo/config.toml", ".hgsub", "_darcs/prefs/defaults", ".bzr/branch/branch.conf", ".pijul/config", ".pdbrc", ".perldb", ".ocamlinit", ".octaverc", "ipython_config.py",
		"jupyter_server_config.py", "ansible.cfg", ".latexmkrc", "sub/latexmkrc", ".pnpmfile.mjs", "default.nix", "devenv.nix", "mise/config.toml", ".mise-tasks/x", ".gdbinit", "sub/.dir-locals.el", "a.code-workspace", ".mvn/extensions.xml", ".gradle/init.gradle", ".bundle/config", ".tekton/pr.yaml", ".local/share/systemd/user/x.service",
		".git/hooks/pre-commit", ".GIT/config", "sub/.git", ".git./config", "git~1/config", ".git::$DATA", `a\.git\config`, ".sentinel/plugins/x.wasm",
		".continuum/sentinels/a.json", ".github/workflows/ci.yml", ".gitattributes", "deep/.NPMRC", ".envrc", ".bashrc", ".vscode/tasks.json",
		".idea/x", ".claude/settings.json", ".mcp.json", "CLAUDE.md", "./a/../.git/config", ".husky/_/x", ".g\u200cit/config",
		// What CI services execute, what the next agent obeys, and who has to approve.
		"Jenkinsfile", "sub/Jenkinsfile", ".travis.yml", "azure-pipelines.yml", "bitbucket-pipelines.yml", ".drone.yml", ".woodpecker.yml", "appveyor.yml", ".cirrus.yml",
		"buildspec.yml", "cloudbuild.yaml", ".gitea/workflows/x.yml", ".forgejo/workflows/x.yml", ".buildkite/pipeline.yml", ".woodpecker/x.yml", ".builds/x.yml",
		".windsurf/rules/x.md", ".roo/rules/x.md", ".junie/guidelines.md", "CLAUDE.local.md", "AGENTS.override.md", "QWEN.md", "opencode.json", "docs/CODEOWNERS",
	} {
		if !command.Steering(name) {
			t.Errorf("%q is not seen as steering", name)
		}
	}
	for _, name := range []string{"main.go", ".gitignore", "Makefile", "docs/git/hooks.md", "a.git/x", "github/workflows/ci.yml", ".", "config", "jenkins.go", "travis.yml", "docs/agents.txt"} {
		if command.Steering(name) {
			t.Errorf("%q is seen as steering", name)
		}
	}
}

// An errno that says that no file could be opened stays in the chain where the
// call may be made again: the engine does that.
func TestOutOfFilesCrosses(t *testing.T) {
	raw := fmt.Errorf("open: %w", &fs.PathError{Op: "open", Path: "x", Err: syscall.EMFILE})
	said := fmt.Errorf("%w: %w", abi.New(abi.Unavailable, "not started"), syscall.ENFILE)
	for name, c := range map[string]struct {
		opt   command.Options
		err   error
		again bool
		code  abi.Code
	}{
		"reads":             {command.Options{Effect: command.Reads}, raw, true, abi.Unavailable},
		"idempotent":        {command.Options{Effect: command.Changes, Idempotent: true}, raw, true, abi.Unavailable},
		"changes something": {command.Options{Effect: command.Changes}, raw, false, abi.Internal},
		"says it did not":   {command.Options{Effect: command.Changes}, said, true, abi.Unavailable},
		"another error":     {command.Options{Effect: command.Reads}, fs.ErrNotExist, false, abi.NotFound},
		"a code of its own": {command.Options{Effect: command.Changes}, abi.New(abi.Conflict, "x"), false, abi.Conflict},
	} {
		r := sample(t, command.NewDynamic("test/it", "A fake.", nil, nil, c.opt, func(context.Context, *command.Call) (json.RawMessage, error) {
			return nil, c.err
		}))
		_, err := r.Call(t.Context(), &command.Call{Command: "test/it"})
		again := errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
		if again != c.again || abi.CodeOf(err) != c.code {
			t.Errorf("%s: %v with code %s, again %v", name, err, abi.CodeOf(err), again)
		}
	}
}

// A path that no file system has is the caller's mistake, and is not repeated
// whole.
func TestBadPathsCross(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]abi.Code{
		strings.Repeat("a", 5000):        abi.BadFields,
		strings.Repeat("a/", 2500) + "a": abi.BadFields,
		"a\x00b":                         abi.BadFields,
		"file/x":                         abi.NotFound,
		"none":                           abi.NotFound,
	} {
		r := sample(t, command.NewDynamic("test/open", "A fake.", nil, nil, command.Options{Effect: command.Changes}, func(context.Context, *command.Call) (json.RawMessage, error) {
			_, err := os.ReadFile(filepath.Join(dir, path))
			return nil, fmt.Errorf("test: %w", err)
		}))
		_, err := r.Call(t.Context(), &command.Call{Command: "test/open"})
		if abi.CodeOf(err) != want || len(err.Error()) > 500 {
			t.Errorf("%.20q: %s: %v, want %s", path, abi.CodeOf(err), err, want)
		}
	}
}

func TestSteersBuild(t *testing.T) {
	for _, name := range []string{
		"Makefile", "sub/makefile", "GNUmakefile", "rules.mk", "MAKEFILE. ", "package.json", "a/package.json", "node_modules/.bin/tsc", ".yarn/releases/yarn.cjs",
		".pnp.cjs", "pnpm-workspace.yaml", "bunfig.toml", "Cargo.toml", "build.rs", "rust-toolchain.toml", "./x/../Cargo.toml", `sub\package.json`, "build.rs::$DATA",
		"pyproject.toml", "sub/setup.py", "setup.cfg", "tests/conftest.py", "tox.ini", "pytest.ini", "src/sitecustomize.py", "a.pth", ".venv/bin/python", "lib/site-packages/x.py",
	} {
		if !command.SteersBuild(name) {
			t.Errorf("%q: got false, want true", name)
		}
	}
	for _, name := range []string{"main.go", "go.mod", "go.sum", "package-lock.json", "src/build/rs", "docs/Makefile.md", "mk", ".", "src/lib.rs", "a.py", "requirements.txt", "tests/test_a.py", "env/a.py"} {
		if command.SteersBuild(name) {
			t.Errorf("%q: got true, want false", name)
		}
	}
}

// TestSchemasAreMadeWhenNeeded: a command is added without its schemas, whose generation for all
// commands would be most of the start of a program. Its parameters are known nevertheless.
func TestSchemasAreMadeWhenNeeded(t *testing.T) {
	type in struct {
		Embedded
		Path    string   `json:"path"`
		Without chan int `json:"without"` // has no schema
		Hidden  string   `json:"-"`
		Plain   int
	}
	run := func(context.Context, *command.Call, in) (any, error) { return nil, nil }
	good := command.New("x/good", "Good.", command.Options{Effect: command.Changes, KeyParam: "inner", Aliases: map[string]string{"p": "path", "q": "Plain"}}, run)
	r, err := command.NewRegistry(good)
	if err != nil {
		t.Fatalf("a command whose schema is not needed: %v", err)
	}
	for _, wrong := range []string{"Hidden", "-", "Embedded", "other"} {
		bad := command.New("x/bad", "Bad.", command.Options{Effect: command.Changes, KeyParam: wrong}, run)
		if err := r.Add(bad); err == nil {
			t.Errorf("Add accepted the parameter %q, which the type does not have", wrong)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a type without a schema was not noticed when its schema was needed")
		}
	}()
	good.Input()
}

// Embedded is a part of the parameters of a test.
type Embedded struct {
	Inner string `json:"inner,omitempty"`
}

type probe struct {
	TimeoutMs int64 `json:"timeoutMs,omitempty"`
}

type timedIn struct {
	TimeoutMs int64   `json:"timeoutMs,omitempty"`
	Limit     int64   `json:"limit,omitempty"`
	NoteMs    string  `json:"noteMs,omitempty"`
	Probes    []probe `json:"probes,omitempty"`
}

// TestDurationsAreMilliseconds checks that every caller may give a duration in the place of milliseconds, at any depth,
// and that no other text becomes a number.
func TestDurationsAreMilliseconds(t *testing.T) {
	r := sample(t, command.New("code/timed", "Echo its parameters.", command.Options{Effect: command.Reads},
		func(_ context.Context, _ *command.Call, in timedIn) (timedIn, error) { return in, nil }))
	for params, want := range map[string]string{
		`{"timeoutMs":"1m30s","noteMs":"2s","probes":[{"timeoutMs":"0.5s"}]}`: `{"timeoutMs":90000,"noteMs":"2s","probes":[{"timeoutMs":500}]}`,
		`{"timeoutMs":7}`:           `{"timeoutMs":7}`,
		`{"timeoutMs":"2 seconds"}`: `field "timeoutMs": must be integer, not string`,
		`{"limit":"2s"}`:            `field "limit": must be integer, not string`,
	} {
		out, err := r.Call(t.Context(), &command.Call{Command: "code/timed", Params: json.RawMessage(params)})
		if got := fmt.Sprintf("%s%v", out, err); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", params, got, want)
		}
	}
}
