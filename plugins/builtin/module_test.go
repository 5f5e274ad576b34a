package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"

	extism "github.com/extism/go-sdk"
	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"

	"github.com/sentinel-runtime/sentinel/plugins"
	"github.com/sentinel-runtime/sentinel/sdk"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

var update = flag.Bool("update", false, "write builtin.json, the manifest of the stored module")

// steps are inputs for every step type, at least one each.
var steps = []struct{ typ, fields string }{
	{"command", `{"command":"code/read","params":{"path":"é✓😀","n":1.50}}`},
	{"approve", `{"prompt":"Push?"}`},
	{"llm", `{"prompt":"fix","tools":["code/*"]}`},
	{"llm", `{"prompt":"fix","schema":{"type":"object"}}`},
	{"watch", `{"executionId":"x1"}`},
	{"watch", `{"event":"a:*"}`},
	{"condition", `{"check":"$a","then":{"count":1}}`},
	{"sentinel", `{"definition":{"steps":[]},"inputs":{"b":1,"a":2}}`},
	{"emit", `{"event":"a","data":{"z":1,"a":[null,true]}}`},
	{"loop", `{"steps":{"count":1},"each":["a","b"]}`},
	{"loop", `{"steps":{"count":1},"while":"$index < 2"}`},
	{"loop", `{"steps":{"count":1}}`}, // an error
	{"parallel", `{"branches":{"counts":[1,1]}}`},
	{"shell", `{"argv":["false"]}`}, // an error
	{"wait", `{"durationMs":5}`},
	{"plan", `{"skills":["fs/*"],"plan":"{}"}`},
	{"plan", `{"step":{"id":1},"outcome":{"z":1}}`},
	{"unknown", `{}`}, // an error
}

// answer is a stateless host: its response depends only on the request.
func answer(function, request string) string {
	r, err := sdk.Parse(request)
	if err != nil {
		return `{"error":{"code":"internal","message":"request is not JSON"}}`
	}
	switch function {
	case abi.FuncCommand:
		return `{"ok":{"success":false,"exitCode":1,"stdout":"ünï","params":` + r.Get("params").String() + `}}`
	case abi.FuncLLM:
		if r.Get("tools").Exists() && !r.Get("conversation").Exists() {
			return `{"ok":{"conversation":"c","text":"","toolCalls":[{"id":"1","name":"code/read","arguments":{"b":1,"a":2}}],"finish":"tools","usage":{"costUsd":0.1}}}`
		}
		return `{"ok":{"conversation":"c","text":"done","toolCalls":[],"json":{"z":1,"a":0.1},"finish":"stop","usage":{"costUsd":0.2}}}`
	case abi.FuncWatch:
		return `{"ok":{"executionId":"x1","lines":[],"text":"","finished":true,"exitCode":0}}`
	case abi.FuncEval:
		if r.Get("vars").Get("index").IntOr(0) < 2 {
			return `{"ok":{"value":1,"truthy":true}}`
		}
		return `{"ok":{"value":0,"truthy":false}}`
	case abi.FuncBlock:
		var results []sdk.Value
		for range r.Get("blocks").Items() {
			results = append(results, sdk.Object(sdk.F("success", sdk.Bool(true)), sdk.F("output", sdk.String("out"))))
		}
		return sdk.Object(sdk.F("ok", sdk.Object(sdk.F("blocks", sdk.List(results...))))).String()
	case abi.FuncSpawn:
		return `{"ok":{"run":"r2","sentinel":"child"}}`
	case abi.FuncWait:
		return `{"ok":{"timedOut":false,"event":{"type":"a:b"},"result":{"status":"completed","iterations":1,"output":null},"decision":{"verdict":"approve","by":"ann"}}}`
	}
	return `{"ok":{"id":"e1"}}`
}

// outcome is everything that a step did.
type outcome struct {
	Calls  []string
	Output string
	Error  string
}

func input(typ, fields string) string {
	return `{"abi":1,"step":{"type":"` + typ + `","address":"0","path":"0","fields":` + fields + `},` +
		`"run":{"id":"r1","sentinel":"s","iteration":1,"workspace":"/w","key":"k"},"attempt":1}`
}

func native(typ, fields string) outcome {
	var o outcome
	output, fault := plugin().Run(input(typ, fields), func(function, request string) string {
		o.Calls = append(o.Calls, function+" "+request)
		return answer(function, request)
	})
	o.Output = output
	if fault != nil {
		o.Error = sdk.ErrorValue(fault).String()
	}
	return o
}

// A guest is one instance of the stored module.
type guest struct {
	t     *testing.T
	p     *extism.Plugin
	calls *[]string
}

// compile loads the stored module with Extism alone and wazero's interpreter,
// because the compiler takes ten seconds under the race detector. It returns a
// function that makes an instance.
func compile(t *testing.T) func() guest {
	t.Helper()
	module, err := plugins.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	var calls []string
	var functions []extism.HostFunction
	for _, name := range abi.Funcs() {
		functions = append(functions, extism.NewHostFunctionWithStack(name, func(_ context.Context, p *extism.CurrentPlugin, stack []uint64) {
			request, err := p.ReadString(stack[0])
			if err != nil {
				panic(err)
			}
			calls = append(calls, name+" "+request)
			if stack[0], err = p.WriteString(answer(name, request)); err != nil {
				panic(err)
			}
		}, []extism.ValueType{extism.ValueTypeI64}, []extism.ValueType{extism.ValueTypeI64}))
	}
	ctx := context.Background()
	config := extism.PluginConfig{EnableWasi: true, RuntimeConfig: wazero.NewRuntimeConfigInterpreter()}
	compiled, err := extism.NewCompiledPlugin(ctx,
		extism.Manifest{Wasm: []extism.Wasm{extism.WasmData{Data: module}}}, config, functions)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = compiled.Close(ctx) })
	return func() guest {
		var stderr bytes.Buffer
		p, err := compiled.Instance(ctx, extism.PluginInstanceConfig{ModuleConfig: wazero.NewModuleConfig().WithStderr(&stderr)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = p.Close(ctx)
			if stderr.Len() > 0 {
				t.Errorf("standard error: %s", stderr.String())
			}
		})
		return guest{t, p, &calls}
	}
}

func (g guest) run(typ, fields string) outcome {
	*g.calls = nil
	status, output, err := g.p.Call("run", []byte(input(typ, fields)))
	o := outcome{Calls: *g.calls}
	switch {
	case status == 0 && err == nil:
		o.Output = string(output)
	case err != nil:
		o.Error = err.Error()
	default:
		g.t.Fatalf("%s: status %d without an error", typ, status)
	}
	return o
}

// TestModuleIsStateless checks that a new instance, an instance that executed all
// steps before, and native Go have the same outcome, byte for byte. Instances are
// pooled, so host calls must depend only on the input.
func TestModuleIsStateless(t *testing.T) {
	instance := compile(t)
	used := instance()
	for range 2 {
		for i := len(steps) - 1; i >= 0; i-- {
			used.run(steps[i].typ, steps[i].fields)
		}
	}
	for _, s := range steps {
		want := native(s.typ, s.fields)
		if want.Output == "" && want.Error == "" {
			t.Fatalf("%s %s: neither output nor error", s.typ, s.fields)
		}
		for name, g := range map[string]guest{"fresh": instance(), "used": used} {
			if diff := cmp.Diff(want, g.run(s.typ, s.fields)); diff != "" {
				t.Errorf("%s %s on a %s instance (-native +module):\n%s", s.typ, s.fields, name, diff)
			}
		}
	}
}

func TestModuleDescribe(t *testing.T) {
	g := compile(t)()
	status, output, err := g.p.Call("describe", nil)
	if status != 0 || err != nil {
		t.Fatal(status, err)
	}
	if diff := cmp.Diff(plugin().Describe(), string(output)); diff != "" {
		t.Errorf("manifest (-native +module):\n%s", diff)
	}
	if *update {
		if err := os.WriteFile(filepath.Join("..", "builtin.json"), output, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if _, embedded := plugins.Manifest(); !bytes.Equal(embedded, output) {
		t.Errorf("plugins/builtin.json is not what the module describes itself with: run make plugins\n%s", cmp.Diff(string(embedded), string(output)))
	}
	if len(*g.calls) > 0 {
		t.Errorf("describe called the host: %q", *g.calls)
	}
	_, output, err = g.p.Call("validate", []byte(`{"type":"wait","fields":{}}`))
	if want := `{"problems":[{"field":"durationMs","message":"want exactly one of durationMs, until, event and run"}]}`; err != nil || string(output) != want {
		t.Errorf("validate gave %s %v, want %s", output, err, want)
	}
}
