package host_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// start starts a definition and returns its run.
func (r *roles) start(src string) sentinels.RunID {
	r.Helper()
	def, problems := r.Runtime().Decode([]byte(src), "test.json")
	if len(problems) > 0 {
		r.Fatal(problems)
	}
	id, err := r.Runtime().Start(r.Context(), def, runtime.StartOptions{Workspace: r.workspace})
	if err != nil {
		r.Fatal(err)
	}
	return id
}

// child waits for the child of a run to be waiting for its timer.
func (r *roles) child(parent sentinels.RunID) runtime.RunInfo {
	r.Helper()
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		events, err := r.Call(r.Context(), "events/tail", json.RawMessage(`{"pattern":"kit:*"}`))
		if err != nil {
			r.Fatal(err)
		}
		children, err := r.Runtime().Runs(runtime.RunFilter{Parent: parent})
		if err != nil {
			r.Fatal(err)
		}
		if len(children) == 1 && strings.Contains(string(events), "kit:began") {
			return children[0]
		}
		time.Sleep(5 * time.Millisecond)
	}
	r.Fatal("no child of the run began to wait")
	return runtime.RunInfo{}
}

// TestPluginCommandIsAChild: the run of a command belongs to the run that calls it.
func TestPluginCommandIsAChild(t *testing.T) {
	newModelServer(t, func(chatRequest) answer { return answer{text: "well"} })
	r := openRoles(t, kit, host.Options{Limits: runtime.Limits{Runs: 1}})
	must(t, r.Host, "plugin/allow", `{"name":"kit"}`, nil)

	t.Run("budget", func(t *testing.T) {
		res := r.do(`{"name":"b","steps":[{"command":"kit/think","params":{"text":"a"},"outputTo":"said"}]}`)
		r.want(res, "said", `{"said":"well"}`)
		if res.Usage.Calls != 1 || res.Usage.InputTokens != 100 {
			t.Errorf("usage %+v", res.Usage)
		}
		children, err := r.Runtime().Runs(runtime.RunFilter{Parent: res.Run})
		if err != nil || len(children) != 1 || children[0].Sentinel != "b@kit/think" || children[0].Usage.Calls != 1 || children[0].Root != res.Run {
			t.Errorf("children %+v, %v", children, err)
		}
		res = r.do(`{"name":"c","budget":{"calls":1},"steps":[{"command":"kit/think","params":{"text":"a"}},{"command":"kit/think","params":{"text":"b"}}]}`)
		if res.Status != sentinels.StatusTimedOut || res.Reason != "budget.calls" || res.Usage.Calls != 1 {
			t.Errorf("%s %s, usage %+v, %v", res.Status, res.Reason, res.Usage, res.Error)
		}
	})
	// With one execution slot each run has to give it to the one that it waits for.
	t.Run("nesting", func(t *testing.T) {
		r.want(r.do(`{"name":"n","steps":[{"command":"kit/nest","params":{"depth":5},"outputTo":"out"}]}`), "out", `{"deep":true}`)
		res := r.do(`{"name":"n","steps":[{"command":"kit/nest","params":{"depth":20}}]}`)
		if res.Error == nil || res.Error.Code != abi.Limit || !strings.Contains(res.Error.Message, "nesting depth") {
			t.Errorf("%s: %v", res.Status, res.Error)
		}
	})
	t.Run("stop", func(t *testing.T) {
		id := r.start(`{"name":"s","steps":[{"command":"kit/wait","params":{"ms":3600000}}]}`)
		child := r.child(id)
		if err := r.Runtime().Stop(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		res, err := r.Runtime().Wait(t.Context(), child.ID)
		if err != nil || res.Status != sentinels.StatusStopped {
			t.Errorf("the child is %s, %v", res.Status, err)
		}
	})
	t.Run("timeout", func(t *testing.T) {
		res := r.do(`{"name":"t","steps":[{"command":"kit/wait","params":{"ms":3600000},"timeoutMs":300}]}`)
		if res.Error == nil || res.Error.Code != abi.Timeout {
			t.Errorf("%s: %v", res.Status, res.Error)
		}
		children, err := r.Runtime().Runs(runtime.RunFilter{Parent: res.Run})
		if err != nil || len(children) != 1 {
			t.Fatalf("children %v, %v", children, err)
		}
		if child, err := r.Runtime().Wait(t.Context(), children[0].ID); err != nil || child.Status != sentinels.StatusStopped {
			t.Errorf("the child is %s, %v", child.Status, err)
		}
	})
	// A person who goes away stops what was started.
	t.Run("cancel", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if _, err := r.Call(ctx, "kit/wait", json.RawMessage(`{"ms":3600000}`)); err == nil {
			t.Error("no error")
		}
		active, err := r.Runtime().Runs(runtime.RunFilter{Statuses: runtime.Unfinished()})
		if err != nil || len(active) != 0 {
			t.Errorf("active %+v, %v", active, err)
		}
	})
	// Another attempt of the step makes the command again.
	t.Run("retry", func(t *testing.T) {
		res := r.do(`{"name":"r","steps":[{"command":"kit/wait","params":{"ms":3600000},"timeoutMs":1000,"onError":{"retry":{"maxRetries":1,"baseDelayMs":1}}}]}`)
		children, err := r.Runtime().Runs(runtime.RunFilter{Parent: res.Run})
		if err != nil || len(children) != 2 {
			t.Errorf("%d children, %v", len(children), err)
		}
	})
}

// TestPluginCommandOfAModel: what a model must not read, it does not read through a plugin.
func TestPluginCommandOfAModel(t *testing.T) {
	newModelServer(t, func(r chatRequest) answer {
		if r.answers() == 0 {
			return answer{tool: "kit_read", args: map[string]any{"path": ".env"}}
		}
		return answer{text: r.text("tool")}
	})
	r := openRoles(t, kit, host.Options{})
	must(t, r.Host, "plugin/allow", `{"name":"kit"}`, nil)
	write(t, r.workspace, map[string]string{".env": "TOKEN=abc"})
	r.want(r.do(`{"name":"s","steps":[{"command":"kit/read","params":{"path":".env"},"outputTo":"out"}]}`), "out", `{"length":9}`)
	res := r.do(`{"name":"m","steps":[{"type":"llm","prompt":"go","tools":["kit/read"],"outputTo":"out"}]}`)
	if text := string(res.Variables["out"]); !strings.Contains(text, "denied") || strings.Contains(text, `length\":9`) {
		t.Errorf("%s %v", text, res.Error)
	}
	// Neither * nor no list at all offers it.
	for _, tools := range []string{``, `"tools":["*"],`} {
		res = r.do(`{"name":"m","steps":[{"type":"llm","prompt":"go",` + tools + `"outputTo":"out"}]}`)
		if text := string(res.Variables["out"]); strings.Contains(text, "length") {
			t.Errorf("tools %q: %s", tools, text)
		}
	}
}

// TestPluginCommandAfterRestart: the process ends during a command, and the plugin is removed
// before the next one starts. The run continues and has the result of the one command.
func TestPluginCommandAfterRestart(t *testing.T) {
	r := openRoles(t, kit, host.Options{})
	must(t, r.Host, "plugin/allow", `{"name":"kit"}`, nil)
	id := r.start(`{"name":"s","safety":{"onInterrupt":"fail"},"steps":[{"command":"kit/wait","params":{"ms":1500},"outputTo":"out"}]}`)
	child := r.child(id)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(r.workspace, ".sentinel", "plugins", "kit.wasm")); err != nil {
		t.Fatal(err)
	}
	next := open(t, host.Options{Workspace: r.workspace, Getenv: r.getenv, CacheDir: compiled()})
	if _, ok := next.Commands().Lookup("kit/wait"); ok {
		t.Fatal("the command is still there")
	}
	if _, err := next.Runtime().ResumeAll(t.Context(), runtime.ResumeOptions{}); err != nil {
		t.Fatal(err)
	}
	res, err := next.Runtime().Wait(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	r.want(res, "out", `{"waited":1500}`)
	children, err := next.Runtime().Runs(runtime.RunFilter{Parent: id})
	if err != nil || len(children) != 1 || children[0].ID != child.ID {
		t.Errorf("children %+v, %v", children, err)
	}
}

// TestPluginCommandsComeAndGo: what is loaded, swapped, allowed, denied and removed counts for
// the next call, and not for one that is under way.
func TestPluginCommandsComeAndGo(t *testing.T) {
	r := openRoles(t, kit, host.Options{})
	rt := r.Runtime()
	load := func(script string) error {
		module := jsPlugin(t, script)
		_, err := rt.LoadPlugin(t.Context(), plugin.Source{Name: "kit.wasm", Wasm: func() ([]byte, error) { return module, nil }})
		return err
	}
	shout := func() string {
		out, err := r.Call(t.Context(), "kit/shout", json.RawMessage(`{"text":"a"}`))
		if err != nil {
			return string(abi.CodeOf(err))
		}
		return string(out)
	}
	expect := func(when, want string) {
		t.Helper()
		if got := shout(); got != want {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}
	listed := func() (names []string) {
		for _, c := range r.Commands().List() {
			if strings.HasPrefix(c.Name, "kit/") {
				names = append(names, c.Name)
			}
		}
		return names
	}
	expect("waiting", "denied")
	must(t, r.Host, "plugin/allow", `{"name":"kit","deny":["provide"]}`, nil)
	expect("without the role", "denied")
	if roles := r.plugin().Roles; len(roles) != 6 || roles[0].Active || len(listed()) != 0 {
		t.Errorf("roles %+v, commands %v", roles, listed())
	}
	// Its step types still work as steps.
	r.want(r.do(`{"name":"a","steps":[{"type":"kit_shout","text":"b","outputTo":"out"}]}`), "out", `{"text":"B"}`)
	must(t, r.Host, "plugin/allow", `{"name":"kit"}`, nil)
	expect("allowed", `{"text":"A"}`)
	if roles := r.plugin().Roles; !roles[0].Active || len(listed()) != 6 {
		t.Errorf("roles %+v, commands %v", roles, listed())
	}

	id := r.start(`{"name":"s","steps":[{"command":"kit/wait","params":{"ms":2000},"outputTo":"out"}]}`)
	r.child(id)
	// A version that asks for no more keeps its grant? It reaches far, so it waits, and the old
	// one serves.
	if err := load(strings.ReplaceAll(kit, "toUpperCase()", `toUpperCase() + "!"`)); abi.CodeOf(err) != abi.Denied {
		t.Errorf("load: %v", err)
	}
	expect("swapped, and waiting", `{"text":"A"}`)
	must(t, r.Host, "plugin/allow", `{"name":"kit"}`, nil)
	expect("swapped", `{"text":"A!"}`)
	must(t, r.Host, "plugin/deny", `{"name":"kit"}`, nil)
	expect("denied", "denied")
	must(t, r.Host, "plugin/allow", `{"name":"kit"}`, nil)
	expect("allowed again", `{"text":"A!"}`)
	if err := rt.UnloadPlugin(t.Context(), "kit.wasm"); err != nil {
		t.Fatal(err)
	}
	expect("removed", "not_found")
	res, err := rt.Wait(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	r.want(res, "out", `{"waited":2000}`)
}

// TestPluginCommandOfAnotherPlugin: a command is granted to other plugins by its name or the
// pattern of its family, and by no other pattern.
func TestPluginCommandOfAnotherPlugin(t *testing.T) {
	r := openRoles(t, kit, host.Options{})
	must(t, r.Host, "plugin/allow", `{"name":"kit"}`, nil)
	patterns := map[string]string{"kit/*": "completed", "kit/shout": "completed", "*": "failed", "code/*": "failed"}
	inShort(t, patterns, "kit/*", "*") // each is a module to compile
	for pattern, want := range patterns {
		script := `sentinel.plugin({name: "other", version: "1", permissions: [{use: "command", names: ["` + pattern + `"], reason: "r"}], steps: {
			other: {summary: "S.", fields: {type: "object"}, run: (step, ctx) => ctx.command("kit/shout", {text: "a"})}}});`
		module := jsPlugin(t, script)
		_, err := r.Runtime().LoadPlugin(t.Context(), plugin.Source{Name: "other.wasm", Wasm: func() ([]byte, error) { return module, nil }})
		if abi.CodeOf(err) != abi.Denied {
			t.Fatal(err)
		}
		must(t, r.Host, "plugin/allow", `{"name":"other"}`, nil)
		res := r.do(`{"name":"o","steps":[{"type":"other","outputTo":"out"}]}`)
		if string(res.Status) != want || want == "failed" && res.Error.Code != abi.Denied {
			t.Errorf("%s: %s %v", pattern, res.Status, res.Error)
		}
	}
}
