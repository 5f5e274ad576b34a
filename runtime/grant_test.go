package runtime_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// grants is an operator who has decided by digest, with * for every one.
type grants struct {
	mu  sync.Mutex
	all map[string]plugin.Grant
}

func (g *grants) Grant(_ context.Context, p plugin.Info) (plugin.Grant, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, key := range []string{p.Digest, "*"} {
		if grant, ok := g.all[key]; ok {
			return grant, nil
		}
	}
	if len(p.Permissions) == 0 {
		return plugin.Grant{}, nil
	}
	return plugin.Grant{}, abi.New(abi.Denied, p.Name+" waits for approval")
}

func (g *grants) set(key string, grant *plugin.Grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if delete(g.all, key); grant != nil {
		if g.all == nil {
			g.all = map[string]plugin.Grant{}
		}
		g.all[key] = *grant
	}
}

// outside is the network and the folders of a test: it only counts.
type outside struct {
	mu    sync.Mutex
	calls []runtime.PluginCall
}

func (o *outside) Do(_ context.Context, c runtime.PluginCall) (json.RawMessage, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = append(o.calls, c)
	return json.RawMessage(`{}`), nil
}

// reach is a plugin of others whose step makes the host call that its fields
// say, and outputs the answer.
func reach(permissions ...wasm.Permission) *runtime.GoModule {
	return &runtime.GoModule{Name: "reach", Permissions: permissions, Types: []wasm.StepType{{Type: "reach", Fields: json.RawMessage(
		`{"type":"object","properties":{"function":{"type":"string"},"request":{"x-sentinel":"raw"},"tools":{"x-sentinel":"tools"},
		  "command":{"type":"string"},"params":{"x-sentinel":"params"},"definition":{"x-sentinel":"definition"}}}`)}},
		Step: func(g *runtime.GoGuest) (any, error) {
			var function string
			_ = json.Unmarshal(g.Input.Step.Fields["function"], &function)
			return g.Call(function, g.Input.Step.Fields["request"]), nil
		}}
}

func permission(use abi.Use, names ...string) wasm.Permission {
	return wasm.Permission{Use: string(use), Names: names, Reason: "the test needs it"}
}

func allowed(use abi.Use, names ...string) plugin.Permission {
	return plugin.Permission{Use: string(use), Names: names}
}

// TestGrantOfEachCall makes every guarded host call inside and outside of what
// the plugin asks for and is allowed.
func TestGrantOfEachCall(t *testing.T) {
	every := []wasm.Permission{
		permission(abi.UseCommand, "world/*", "secret/tool"), permission(abi.UseLLM, "world/*"), permission(abi.UseWatch), permission(abi.UseSpawn, "kid", "other"), permission(abi.UseEmit, "a:*"),
		permission(abi.UseHTTP, "example.com"), permission(abi.UseFolder, "data"),
	}
	for _, c := range []struct {
		name        string
		permissions []wasm.Permission // default every
		allow       []plugin.Permission
		function    string
		request     string
		denied      string // part of the message, "" for an answer that is no denial
	}{
		{"command", nil, []plugin.Permission{allowed(abi.UseCommand, "world/look")}, abi.FuncCommand, `{"command":"world/look"}`, ""},
		{"command not allowed", nil, []plugin.Permission{allowed(abi.UseCommand, "world/look")}, abi.FuncCommand, `{"command":"world/act"}`, `not allowed the command "world/act"`},
		{"command not asked for", []wasm.Permission{permission(abi.UseCommand, "world/look")}, []plugin.Permission{allowed(abi.UseCommand, "*")}, abi.FuncCommand, `{"command":"world/act"}`, `does not ask for the command "world/act"`},
		{"no command at all", nil, []plugin.Permission{allowed(abi.UseEmit)}, abi.FuncCommand, `{"command":"world/look"}`, "not allowed command"},
		{"private by star", []wasm.Permission{permission(abi.UseCommand, "*")}, []plugin.Permission{allowed(abi.UseCommand, "*")}, abi.FuncCommand, `{"command":"world/hidden/act"}`, "does not ask"},
		{"private by a family above", nil, []plugin.Permission{allowed(abi.UseCommand, "world/*")}, abi.FuncCommand, `{"command":"world/hidden/act"}`, "does not ask"},
		{"private by name", []wasm.Permission{permission(abi.UseCommand, "world/hidden/act")}, []plugin.Permission{allowed(abi.UseCommand, "world/hidden/act")}, abi.FuncCommand, `{"command":"world/hidden/act"}`, ""},
		{"execution by its family", []wasm.Permission{permission(abi.UseCommand, "world/execute")}, []plugin.Permission{allowed(abi.UseCommand, "*", "world/*")}, abi.FuncCommand, `{"command":"world/execute"}`, "not allowed the command"},
		{"execution asked for by patterns", []wasm.Permission{permission(abi.UseCommand, "*", "world/*")}, []plugin.Permission{allowed(abi.UseCommand, "world/execute")}, abi.FuncCommand, `{"command":"world/execute"}`, "does not ask"},
		{"execution by name", []wasm.Permission{permission(abi.UseCommand, "world/execute")}, []plugin.Permission{allowed(abi.UseCommand, "world/execute")}, abi.FuncCommand, `{"command":"world/execute"}`, ""},
		{"by a model", nil, []plugin.Permission{allowed(abi.UseCommand, "world/look")}, abi.FuncCommand, `{"command":"world/act","by":"model","tools":["*"]}`, `not allowed the command`},
		{"emit", nil, []plugin.Permission{allowed(abi.UseEmit, "a:b")}, abi.FuncEmit, `{"event":"a:b"}`, ""},
		{"emit not allowed", nil, []plugin.Permission{allowed(abi.UseEmit, "a:b")}, abi.FuncEmit, `{"event":"a:c"}`, `not allowed to emit "a:c"`},
		{"emit not asked for", nil, []plugin.Permission{allowed(abi.UseEmit)}, abi.FuncEmit, `{"event":"b:c"}`, `not allowed to emit`},
		{"model", nil, []plugin.Permission{allowed(abi.UseLLM)}, abi.FuncLLM, `{"append":[{"role":"user","content":"hi"}]}`, ""},
		{"model not allowed", nil, []plugin.Permission{allowed(abi.UseLLM, "world/small")}, abi.FuncLLM, `{"append":[{"role":"user","content":"hi"}]}`, `not allowed the model "world/oracle"`},
		{"model not asked for", []wasm.Permission{permission(abi.UseLLM, "moon/*")}, []plugin.Permission{allowed(abi.UseLLM)}, abi.FuncLLM, `{"append":[{"role":"user","content":"hi"}]}`, `not allowed the model`},
		{"watch", nil, nil, abi.FuncWatch, `{"executionId":"x"}`, "not allowed watch"},
		{"watch of a file without code/read", nil, []plugin.Permission{allowed(abi.UseWatch), allowed(abi.UseCommand, "world/look")}, abi.FuncWatch, `{"file":"a","timeoutMs":1}`, `does not ask for the command "code/read"`},
		{"spawn of its own field", nil, []plugin.Permission{allowed(abi.UseSpawn)}, abi.FuncSpawn, `{"field":"definition"}`, ""},
		{"spawn without a grant", nil, nil, abi.FuncSpawn, `{"field":"definition"}`, "not allowed spawn"},
		{"spawn of a stored one", nil, []plugin.Permission{allowed(abi.UseSpawn, "kid")}, abi.FuncSpawn, `{"sentinel":"kid"}`, ""},
		{"spawn of another stored one", nil, []plugin.Permission{allowed(abi.UseSpawn, "kid")}, abi.FuncSpawn, `{"sentinel":"other"}`, `not allowed to start the sentinel "other"`},
		{"http", nil, []plugin.Permission{allowed(abi.UseHTTP, "example.com")}, abi.FuncHTTP, `{"url":"https://example.com"}`, ""},
		{"http without a grant", nil, nil, abi.FuncHTTP, `{"url":"https://example.com"}`, "not allowed http"},
		{"folder", nil, []plugin.Permission{allowed(abi.UseFolder, "data")}, abi.FuncFile, `{"folder":"data","op":"read","path":"x"}`, ""},
		{"folder without a grant", nil, nil, abi.FuncFile, `{"folder":"data","op":"read","path":"x"}`, "not allowed folder"},
	} {
		t.Run(c.name, func(t *testing.T) {
			net, files := new(outside), new(outside)
			w := newFakeHost()
			rt := open(t, w, store.NewMemory(), runtime.Options{HTTP: net, Folders: files, Grants: &grants{all: map[string]plugin.Grant{"*": {Allow: c.allow}}}})
			permissions := c.permissions
			if permissions == nil {
				permissions = every
			}
			if err := runtime.AddUntrusted(rt, reach(permissions...)); err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{"kid", "other"} {
				kid := decode(t, rt, `{"id":"`+id+`","name":"`+id+`","steps":[{"type":"call","command":"world/look"}]}`)
				if _, err := rt.Save(t.Context(), kid, 0); err != nil {
					t.Fatal(err)
				}
			}
			def := decode(t, rt, `{"name":"r","steps":[{"type":"reach","function":"`+c.function+`","request":`+c.request+`,"outputTo":"said",
				"definition":{"name":"own","steps":[{"type":"call","command":"world/look"}]}}]}`)
			id, err := rt.Start(t.Context(), def, runtime.StartOptions{})
			if err != nil {
				t.Fatal(err)
			}
			res, err := rt.Wait(t.Context(), id)
			if err != nil || res.Status != sentinels.StatusCompleted {
				t.Fatalf("run ended %s: %v, %v", res.Status, res.Error, err)
			}
			var said struct{ Error *abi.Error }
			if err := json.Unmarshal(res.Variables["said"], &said); err != nil {
				t.Fatal(err)
			}
			switch {
			case c.denied == "" && said.Error != nil:
				t.Errorf("the answer is %v", said.Error)
			case c.denied != "" && (said.Error == nil || said.Error.Code != abi.Denied || !strings.Contains(said.Error.Message, c.denied)):
				t.Errorf("the answer is %s, want denied with %q", res.Variables["said"], c.denied)
			}
			if c.denied != "" && (len(w.order) > 0 || len(net.calls) > 0 || len(files.calls) > 0) {
				t.Errorf("something was reached: %v, %v, %v", w.order, net.calls, files.calls)
			}
		})
	}
}

// TestGrantsWithinBounds: in a run whose definition comes from a model or an agent a step uses the
// hosts, secrets and folders that its plugin is granted only if the bound has the type of the step.
func TestGrantsWithinBounds(t *testing.T) {
	for function, request := range map[string]string{abi.FuncHTTP: `{"url":"https://example.com"}`, abi.FuncFile: `{"folder":"data","op":"read","path":"x"}`} {
		for name, c := range map[string]struct {
			within  []string
			reached bool
		}{
			"no bound":        {nil, true},
			"nothing":         {[]string{}, false},
			"all by pattern":  {[]string{"*", "world/*"}, false},
			"another type":    {[]string{"*", runtime.TypeEntry("call")}, false},
			"the type itself": {[]string{runtime.TypeEntry("reach")}, true},
		} {
			t.Run(function+" "+name, func(t *testing.T) {
				net := new(outside)
				rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{HTTP: net, Folders: net, Grants: &grants{all: map[string]plugin.Grant{
					"*": {Allow: []plugin.Permission{allowed(abi.UseHTTP, "example.com"), allowed(abi.UseFolder, "data")}},
				}}})
				if err := runtime.AddUntrusted(rt, reach(permission(abi.UseHTTP, "example.com"), permission(abi.UseFolder, "data"))); err != nil {
					t.Fatal(err)
				}
				def := decode(t, rt, `{"name":"r","steps":[{"type":"reach","function":"`+function+`","request":`+request+`,"outputTo":"said"}]}`)
				id, err := rt.Start(t.Context(), def, runtime.StartOptions{Within: c.within, Workspace: t.TempDir()})
				if err != nil {
					t.Fatal(err)
				}
				res, err := rt.Wait(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				said := string(res.Variables["said"])
				if reached := len(net.calls) > 0; reached != c.reached || !reached && !strings.Contains(said, "may not use what step type") {
					t.Errorf("reached: %t, want %t; the answer is %s", reached, c.reached, said)
				}
			})
		}
	}
}

// TestDenialReplays holds that a denied call is in the journal: after a crash it
// is answered as it was, also when the plugin is allowed more by then.
func TestDenialReplays(t *testing.T) {
	db, w := store.NewMemory(), newFakeHost()
	g := &grants{all: map[string]plugin.Grant{"*": {}}}
	rt := open(t, w, db, runtime.Options{Grants: g})
	mod := reach(permission(abi.UseEmit))
	mod.Step = func(g *runtime.GoGuest) (any, error) {
		said := g.Call(abi.FuncEmit, map[string]any{"event": "a"})
		if a := g.Call(abi.FuncWait, map[string]any{"event": "go"}); a.Error != nil {
			return nil, a.Error
		}
		return said, nil
	}
	if err := runtime.AddUntrusted(rt, mod); err != nil {
		t.Fatal(err)
	}
	id, err := rt.Start(t.Context(), decode(t, rt, `{"name":"r","steps":[{"type":"reach","outputTo":"said"}]}`), runtime.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the step to wait", func() bool { return runtime.Subscribers(rt) == 1 })
	g.set("*", &plugin.Grant{Allow: []plugin.Permission{allowed(abi.UseEmit)}})
	if err := rt.Regrant(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Emit(t.Context(), sentinels.Event{Name: "go"}); err != nil {
		t.Fatal(err)
	}
	res, err := rt.Wait(t.Context(), id)
	if err != nil || !bytes.Contains(res.Variables["said"], []byte(`"denied"`)) {
		t.Errorf("ended %s with %s, %v", res.Status, res.Variables["said"], err)
	}
}

// TestLostGrant takes the grant from a plugin whose step waits: the step goes on
// and is denied, and its type is unknown for what is read afterwards.
func TestLostGrant(t *testing.T) {
	w := newFakeHost()
	g := &grants{all: map[string]plugin.Grant{"*": {Allow: []plugin.Permission{allowed(abi.UseEmit), allowed(abi.UseHTTP, "x")}}}}
	net := new(outside)
	rt := open(t, w, store.NewMemory(), runtime.Options{Grants: g, HTTP: net})
	mod := reach(permission(abi.UseEmit), permission(abi.UseHTTP, "x"))
	mod.Step = func(g *runtime.GoGuest) (any, error) {
		if a := g.Call(abi.FuncWait, map[string]any{"event": "go"}); a.Error != nil {
			return nil, a.Error
		}
		return []any{g.Call(abi.FuncEmit, map[string]any{"event": "a"}), g.Call(abi.FuncHTTP, map[string]any{"url": "https://x"})}, nil
	}
	if err := runtime.AddUntrusted(rt, mod); err != nil {
		t.Fatal(err)
	}
	src := `{"name":"r","steps":[{"type":"reach","outputTo":"said"}]}`
	id, err := rt.Start(t.Context(), decode(t, rt, src), runtime.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the step to wait", func() bool { return runtime.Subscribers(rt) == 1 })
	g.set("*", nil)
	// A Go function has no code that could be kept: a version that still waits is not
	// loaded for the question.
	if err := rt.Regrant(t.Context()); err != nil {
		t.Errorf("Regrant: %v", err)
	}
	info, _ := pluginOf(rt, "reach.wasm")
	if info.State != plugin.Waiting || info.Grant != nil || info.Problem == "" {
		t.Errorf("it is %+v", info)
	}
	def, problems := rt.Inspect(t.Context(), []byte(src), "r.json")
	if len(problems) != 1 || problems[0].Kind != sentinels.KindAbsent || problems[0].Line != 1 || !strings.Contains(problems[0].Message, `step type "reach" is provided by plugin "reach", which waits for approval`) || problems[0].Hint != "sentinel plugin allow reach" {
		t.Errorf("problems %v", problems)
	}
	// "What is known but absent here is a warning, and a refusal at start."
	_, err = rt.Start(t.Context(), def, runtime.StartOptions{})
	if abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), `start "r": steps[0].type: step type "reach" is provided by plugin "reach"`) {
		t.Errorf("started: %v", err)
	}
	if _, err := rt.Save(t.Context(), def, runtime.AnyRevision); err != nil {
		t.Errorf("save: %v", err)
	}
	if _, err := rt.Emit(t.Context(), sentinels.Event{Name: "go"}); err != nil {
		t.Fatal(err)
	}
	res, err := rt.Wait(t.Context(), id)
	if err != nil || bytes.Count(res.Variables["said"], []byte(`"denied"`)) != 2 || len(net.calls) > 0 {
		t.Errorf("ended %s with %s (%v), %v, reached %v", res.Status, res.Variables["said"], res.Error, err, net.calls)
	}
}

// TestDefinitionBeyondGrant checks what a step names when its definition is saved.
func TestDefinitionBeyondGrant(t *testing.T) {
	w := newFakeHost()
	g := &grants{all: map[string]plugin.Grant{"*": {Allow: []plugin.Permission{allowed(abi.UseCommand, "world/look")}}}}
	rt := open(t, w, store.NewMemory(), runtime.Options{Grants: g})
	if err := runtime.AddUntrusted(rt, reach(permission(abi.UseCommand, "world/look", "world/act"))); err != nil {
		t.Fatal(err)
	}
	for fields, want := range map[string]string{
		`"command":"world/look","params":{}`:  "",
		`"command":"world/act","params":{}`:   `steps[0].command: plugin "reach" is not allowed the command "world/act"`,
		`"command":"world/other","params":{}`: `steps[0].command: plugin "reach" does not ask for the command "world/other"`,
		`"command":"$name","params":{}`:       "",
		`"tools":["world/look"]`:              "",
		`"tools":["world/*"]`:                 `steps[0].tools: plugin "reach" is not allowed the commands world/act`,
	} {
		_, problems := rt.Decode([]byte(`{"name":"r","steps":[{"type":"reach",`+fields+`}]}`), "")
		got := ""
		if len(problems) > 0 {
			got = problems[0].Path + ": " + problems[0].Message
		}
		if got != want || len(problems) > 1 {
			t.Errorf("%s: %v, want %q", fields, problems, want)
		}
	}
}

// asking makes a plugin with real code, of one step type, that asks for permissions.
func asking(t testing.TB, source, version string, permissions ...wasm.Permission) plugin.Source {
	t.Helper()
	code, err := os.ReadFile("testdata/guests/plain.wasm")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(wasm.Manifest{Name: strings.TrimSuffix(source, ".wasm"), Version: version, ABI: 1, Permissions: permissions, Stateless: true,
		Steps: []wasm.StepType{{Type: strings.TrimSuffix(source, ".wasm"), Summary: "s", Fields: json.RawMessage(`{"type":"object"}`)}}})
	if err != nil {
		t.Fatal(err)
	}
	old := fmt.Appendf(nil, "%-2048s", "MANIFEST")
	if bytes.Count(code, old) != 1 {
		t.Fatal("plain.wasm has no place for a manifest")
	}
	code = bytes.Replace(code, old, fmt.Appendf(nil, "%-2048s", text), 1)
	return plugin.Source{Name: source, Wasm: func() ([]byte, error) { return code, nil }}
}

// TestWaiting follows a plugin from its first sight to a version that asks for
// more: it waits without its code being asked for again, and the old one serves.
func TestWaiting(t *testing.T) {
	w := newFakeHost()
	g := &grants{}
	var mu sync.Mutex
	var told []string
	rt := open(t, w, store.NewMemory(), runtime.Options{Grants: g, Observer: runtime.Observer{Plugin: func(p plugin.Info) {
		mu.Lock()
		defer mu.Unlock()
		line := p.Name + " " + p.Version + " " + string(p.State)
		if p.Next != nil {
			line += ", next " + p.Next.Version
		}
		told = append(told, line)
	}}})
	info, err := rt.LoadPlugin(t.Context(), asking(t, "a.wasm", "1", permission(abi.UseEmit, "a:*")))
	if abi.CodeOf(err) != abi.Denied || info.State != plugin.Waiting || len(info.Types) != 1 {
		t.Fatalf("the first version is %+v, %v", info, err)
	}
	one := info.Digest
	grant := plugin.Grant{Allow: []plugin.Permission{allowed(abi.UseEmit, "a:*")}}
	g.set(one, &grant)
	if err := rt.Regrant(t.Context()); err != nil {
		t.Fatal(err)
	}
	info, _ = pluginOf(rt, "a.wasm")
	if info.State != plugin.Live || info.Problem != "" || !cmp.Equal(info.Grant, &grant) {
		t.Fatalf("allowed, it is %+v", info)
	}
	runs := func(want sentinels.Status) {
		t.Helper()
		def, problems := rt.Decode([]byte(`{"name":"r","steps":[{"type":"a"}]}`), "")
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		id, err := rt.Start(t.Context(), def, runtime.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if res, err := rt.Wait(t.Context(), id); err != nil || res.Status != want {
			t.Errorf("run ended %s: %v, %v", res.Status, res.Error, err)
		}
	}
	runs(sentinels.StatusCompleted)

	next, err := rt.LoadPlugin(t.Context(), asking(t, "a.wasm", "2", permission(abi.UseEmit, "a:*", "b:*"), permission(abi.UseHTTP, "example.com")))
	if abi.CodeOf(err) != abi.Denied || next.State != plugin.Waiting {
		t.Fatalf("the second version is %+v, %v", next, err)
	}
	info, _ = pluginOf(rt, "a.wasm")
	missing := []plugin.Permission{{Use: "emit", Names: []string{"b:*"}, Reason: "the test needs it"}, {Use: "http", Names: []string{"example.com"}, Reason: "the test needs it"}}
	if info.State != plugin.Live || info.Digest != one || info.Next == nil || info.Next.Digest != next.Digest || !cmp.Equal(info.Next.Missing, missing) {
		t.Errorf("the old one is %+v, next %+v", info, info.Next)
	}
	runs(sentinels.StatusCompleted)
	// Pruning must not take the code that waits.
	prune(t, rt, runtime.Retention{})
	g.set(next.Digest, &plugin.Grant{Allow: []plugin.Permission{allowed(abi.UseEmit)}, Reuse: true})
	if err := rt.Regrant(t.Context()); err != nil {
		t.Fatal(err)
	}
	if info, _ = pluginOf(rt, "a.wasm"); info.Version != "2" || info.Next != nil || info.Refused != "" || !info.Grant.Reuse {
		t.Errorf("after the second approval it is %+v", info)
	}
	runs(sentinels.StatusCompleted)
	// Reuse is taken back: the same digest is loaded again.
	g.set(next.Digest, &plugin.Grant{})
	if err := rt.Regrant(t.Context()); err != nil {
		t.Fatal(err)
	}
	if info, _ = pluginOf(rt, "a.wasm"); info.State != plugin.Live || info.Grant.Reuse {
		t.Errorf("without reuse it is %+v", info)
	}
	runs(sentinels.StatusCompleted)
	g.set(next.Digest, nil)
	if err := rt.Regrant(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, problems := rt.Inspect(t.Context(), []byte(`{"name":"r","steps":[{"type":"a"}]}`), ""); len(problems) != 1 {
		t.Errorf("denied, its type is known: %v", problems)
	}
	if err := rt.UnloadPlugin(t.Context(), "a.wasm"); err != nil {
		t.Fatal(err)
	}
	g.set("*", &plugin.Grant{})
	if err := rt.Regrant(t.Context()); err != nil {
		t.Fatal(err)
	}
	if info, ok := pluginOf(rt, "a.wasm"); ok {
		t.Errorf("a plugin whose file is gone came back: %+v", info)
	}
	want := []string{"a 1 waiting", "a 1 live", "a 1 live, next 2", "a 2 live", "a 2 live", "a 2 waiting"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
}

// TestGrantBounds holds a plugin's steps to the memory and the time it is allowed.
func TestGrantBounds(t *testing.T) {
	g := &grants{all: map[string]plugin.Grant{"*": {TimeoutMs: 50, Memory: 1 << 10}}}
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{Grants: g})
	mod := reach()
	mod.Step = func(g *runtime.GoGuest) (any, error) {
		return nil, g.Call(abi.FuncWait, map[string]any{"event": "never"}).Error
	}
	if err := runtime.AddUntrusted(rt, mod); err != nil {
		t.Fatal(err)
	}
	loadPlugin(t, rt, asking(t, "b.wasm", "1"))
	for step, want := range map[string]abi.Code{"reach": abi.Timeout, "b": abi.Memory} {
		id, err := rt.Start(t.Context(), decode(t, rt, `{"name":"r","steps":[{"type":"`+step+`"}]}`), runtime.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if res, err := rt.Wait(t.Context(), id); err != nil || res.Error == nil || res.Error.Code != want {
			t.Errorf("%s ended %s: %v, %v; want the error %s", step, res.Status, res.Error, err, want)
		}
	}
}

// TestGrantedMemory: a grant raises or lowers the memory of a guest within the limits
// of the run and of every guest.
func TestGrantedMemory(t *testing.T) {
	for _, c := range []struct{ granted, run, want int64 }{
		{0, 0, 256 << 20}, {16 << 20, 0, 16 << 20}, {512 << 20, 0, 512 << 20}, {512 << 20, 100, 100 << 20}, {2 << 30, 4096, 1 << 30},
	} {
		g := &grants{all: map[string]plugin.Grant{"*": {Memory: c.granted}}}
		rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{Grants: g})
		mod := reach()
		mod.Step = func(g *runtime.GoGuest) (any, error) { return g.Memory(), nil }
		if err := runtime.AddUntrusted(rt, mod); err != nil {
			t.Fatal(err)
		}
		safety := ""
		if c.run > 0 {
			safety = fmt.Sprintf(`,"safety":{"maxMemoryMb":%d}`, c.run)
		}
		res := runToEnd(t, rt, `{"name":"r"`+safety+`,"steps":[{"type":"reach","outputTo":"bytes"}]}`, runtime.StartOptions{})
		if got := string(res.Variables["bytes"]); got != fmt.Sprint(c.want) {
			t.Errorf("granted %d in a run with %d MB: a guest has %s bytes (%v), want %d", c.granted, c.run, got, res.Error, c.want)
		}
	}
}

// TestPermissionsAreRead: a name that the code which compares it with requests cannot read
// refuses the plugin when it is loaded.
func TestPermissionsAreRead(t *testing.T) {
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{Grants: &grants{}, CheckPermission: func(use abi.Use, name string) error {
		if use == abi.UseHTTP && name != "a.com" {
			return &abi.Error{Code: abi.BadFields, Message: name + " is not a host", Hint: "write a.com"}
		}
		return nil
	}})
	p := asking(t, "a.wasm", "1", permission(abi.UseEmit, "x"), permission(abi.UseHTTP, "a.com", "b"))
	info, err := rt.LoadPlugin(t.Context(), p)
	e := abi.As(err)
	if e == nil || e.Code != abi.Plugin || !strings.Contains(e.Message, "permissions[1].names[1]: b is not a host") || e.Hint != "write a.com" || info.State != plugin.Refused {
		t.Errorf("state %s, error %v, want the name and its place", info.State, err)
	}
	if _, err := rt.LoadPlugin(t.Context(), asking(t, "a.wasm", "2", permission(abi.UseHTTP, "a.com"))); abi.CodeOf(err) != abi.Denied {
		t.Errorf("names that can be read: %v, want that it waits", err)
	}
}
