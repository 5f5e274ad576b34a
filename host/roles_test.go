package host_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/javascript"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// kit is a plugin in JavaScript whose step types have roles. Its guest is built by Go
// alone, so that these tests run with -short.
const kit = `
const text = {type: "object", properties: {text: {type: "string"}}, required: ["text"], additionalProperties: false};
const any = {type: "object"};
sentinel.plugin({
  name: "kit", version: "1.0.0",
  permissions: [
    {use: "provide", names: ["command"], reason: "tests call them"},
    {use: "command", names: ["code/read", "kit/*"], reason: "kit/read reads files"},
    {use: "llm", reason: "kit/think asks a model"},
    {use: "emit", reason: "kit/note leaves a trace"},
  ],
  steps: {
    kit_shout: {summary: "Says it loudly.", fields: text, output: {type: "object", properties: {text: {type: "string"}}, required: ["text"], additionalProperties: false},
      readOnly: true, aliases: {say: "text"}, provides: {as: "command", name: "kit/shout"},
      run: (step) => ({text: step.fields.text.toUpperCase()})},
    kit_read: {summary: "Reads a file.", fields: {type: "object", properties: {path: {type: "string"}}, required: ["path"]}, output: any, readOnly: true,
      provides: {as: "command", name: "kit/read"},
      run: (step, ctx) => ({length: ctx.command("code/read", {path: step.fields.path}).content.length})},
    kit_fail: {summary: "Fails.", fields: text, output: any, provides: {as: "command", name: "kit/fail"},
      run: (step) => { throw new sentinel.Error("conflict", "there is one called " + step.fields.text, {field: "text", hint: "take another name", permanent: true}); }},
    kit_nest: {summary: "Calls itself.", fields: {type: "object", properties: {depth: {type: "integer"}}, required: ["depth"]}, output: any,
      provides: {as: "command", name: "kit/nest"},
      run: (step, ctx) => step.fields.depth > 0 ? ctx.command("kit/nest", {depth: step.fields.depth - 1}) : {deep: true}},
    kit_think: {summary: "Asks a model.", fields: text, output: any, provides: {as: "command", name: "kit/think"},
      run: (step, ctx) => ({said: ctx.llm({append: [{role: "user", content: step.fields.text}]}).text})},
    kit_wait: {summary: "Waits.", fields: {type: "object", properties: {ms: {type: "integer"}}, required: ["ms"]}, output: any,
      provides: {as: "command", name: "kit/wait"},
      run: (step, ctx) => { ctx.emit("kit:began", {}); ctx.wait({durationMs: step.fields.ms}); return {waited: step.fields.ms}; }},
  },
});`

// roles is a host with a plugin.
type roles struct {
	*testing.T
	*host.Host
	workspace string
	getenv    func(string) string
}

// jsPlugin returns the module of a script.
func jsPlugin(t testing.TB, script string) []byte {
	t.Helper()
	module, err := javascript.Module("plugin.js", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// private returns an environment with a configuration folder of its own, where the key that
// seals grants is.
func private(t testing.TB) func(string) string {
	home := t.TempDir()
	return func(name string) string {
		switch name {
		case "XDG_CONFIG_HOME", "HOME":
			return home
		}
		return os.Getenv(name)
	}
}

// compiled is a folder with compiled plugins that the tests of this process share: the
// engine of a JavaScript plugin takes seconds to compile.
var compiled = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "compiled")
	if err != nil {
		panic(err)
	}
	return dir
})

func openRoles(t *testing.T, script string, opt host.Options) *roles {
	t.Helper()
	r := &roles{T: t, workspace: t.TempDir()}
	folder := filepath.Join(r.workspace, ".sentinel", "plugins")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "kit.wasm"), jsPlugin(t, script), 0o644); err != nil {
		t.Fatal(err)
	}
	r.getenv = private(t)
	opt.Workspace, opt.Getenv, opt.CacheDir = r.workspace, r.getenv, compiled()
	r.Host = open(t, opt)
	return r
}

// do runs a definition in the workspace.
func (r *roles) do(src string) runtime.Result {
	r.Helper()
	return run(r.T, r.Host, src, r.workspace)
}

// want compares the JSON of a variable with a text.
func (r *roles) want(res runtime.Result, name, want string) {
	r.Helper()
	if res.Status != sentinels.StatusCompleted || string(res.Variables[name]) != want {
		r.Errorf("%s: %s is %s, want %s; %v", res.Status, name, res.Variables[name], want, res.Error)
	}
}

// plugin returns what the host knows of the plugin.
func (r *roles) plugin() plugin.Info {
	for _, p := range r.Runtime().Plugins() {
		if p.Source == "kit.wasm" {
			return p
		}
	}
	return plugin.Info{}
}

// TestPluginCommand calls a command of a plugin from a step, as a person and from a model.
func TestPluginCommand(t *testing.T) {
	model := newModelServer(t, func(r chatRequest) answer {
		if r.answers() == 0 {
			return answer{tool: "kit_shout", args: map[string]any{"say": "from the model"}}
		}
		return answer{text: "it said " + r.text("tool")}
	})
	r := openRoles(t, kit, host.Options{})
	const step = `{"name":"a","steps":[{"command":"kit/shout","params":{"text":"hello"},"outputTo":"said"}]}`

	// It waits: the command is unknown, with the line to type.
	err := call(t, r.Host, "kit/shout", `{"text":"a"}`, nil)
	if e := abi.As(err); e == nil || e.Code != abi.Denied || e.Hint != "sentinel plugin allow kit" || !strings.Contains(e.Message, "waits for approval") {
		t.Errorf("before it is allowed: %v", err)
	}
	if _, problems := r.Runtime().Decode([]byte(step), "a.json"); len(problems) != 1 || problems[0].Hint != "sentinel plugin allow kit" {
		t.Errorf("decode: %v", problems)
	}
	must(t, r.Host, "plugin/allow", `{"name":"kit"}`, nil)
	var out struct{ Text string }
	must(t, r.Host, "kit/shout", `{"text":"a $b"}`, &out)
	if out.Text != "A $B" {
		t.Errorf("as a person: %+v", out)
	}
	r.want(r.do(step), "said", `{"text":"HELLO"}`)
	res := r.do(`{"name":"m","steps":[{"type":"llm","prompt":"go","tools":["kit/*"],"outputTo":"said"}]}`)
	if text := string(res.Variables["said"]); !strings.Contains(text, "FROM THE MODEL") {
		t.Errorf("from a model: %s %v", text, res.Error)
	}
	if model.turns() != 2 {
		t.Errorf("%d turns", model.turns())
	}
}

// TestPluginCommandErrors: errors of the step come through, and parameters are checked.
func TestPluginCommandErrors(t *testing.T) {
	r := openRoles(t, kit, host.Options{})
	must(t, r.Host, "plugin/allow", `{"name":"kit"}`, nil)
	want := abi.Error{Code: abi.Conflict, Message: "there is one called x", Field: "text", Hint: "take another name", Permanent: true}
	for by, err := range map[string]error{
		"person": call(t, r.Host, "kit/fail", `{"text":"x"}`, nil),
		"step": func() error {
			res := r.do(`{"name":"f","steps":[{"command":"kit/fail","params":{"text":"x"}}]}`)
			return res.Error
		}(),
	} {
		e := abi.As(err)
		if e == nil || e.Code != want.Code || !strings.Contains(e.Message, want.Message) || e.Hint != want.Hint || e.Permanent != want.Permanent {
			t.Errorf("%s: %+v", by, e)
		}
		if by == "person" && e.Field != want.Field {
			t.Errorf("%s: field %q", by, e.Field)
		}
	}
	if err := call(t, r.Host, "kit/shout", `{"texts":"x"}`, nil); abi.CodeOf(err) != abi.BadFields {
		t.Errorf("bad parameters: %v", err)
	}
	var problems struct{ Problems []json.RawMessage }
	must(t, r.Host, "sentinel/validate", map[string]any{"definition": json.RawMessage(`{"name":"v","steps":[{"command":"kit/shot"},{"command":"kit/shout","params":{"tex":1}}]}`)}, &problems)
	text, _ := json.Marshal(problems)
	for _, part := range []string{`unknown command \"kit/shot\"`, `did you mean \"kit/shout\"`, `tex`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("validate says %s, want %s", text, part)
		}
	}
}
