package host_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/host/confine"
	"github.com/sentinel-runtime/sentinel/host/secret"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A fork or retry that an agent makes of a person's run executes for the agent, so that its claims
// and what it keeps are the agent's; one that a person makes stays the person's.
func TestForksOfAgentsAreTheirs(t *testing.T) {
	ws := t.TempDir()
	h := open(t, host.Options{Workspace: ws})
	first := run(t, h, `{"name":"a","steps":[{"type":"shell","command":"echo x"}]}`, ws)
	for name, more := range map[string]string{"sentinel/fork": `, "iteration": 1`, "sentinel/retry": ""} {
		params := json.RawMessage(`{"run": "` + string(first.Run) + `"` + more + `}`)
		for as, by := range map[string]command.By{"agent:ci": command.ByAgent, "": command.ByUser} {
			out, err := h.CallAs(t.Context(), &command.Call{Command: name, Params: params, By: by, As: strings.TrimPrefix(as, "agent:")})
			if err != nil {
				t.Fatal(err)
			}
			var forked struct{ Run sentinels.RunID }
			if err := json.Unmarshal(out, &forked); err != nil {
				t.Fatal(err)
			}
			info, err := h.Runtime().Status(forked.Run)
			if err != nil || info.As != as {
				t.Errorf("%s by %q executes for %q, %v", name, by, info.As, err)
			}
		}
	}
}

// A run that an agent starts elsewhere reads no envFiles there: the agent may have written them.
func TestEnvironmentFilesOfOtherWorkspaces(t *testing.T) {
	ws := t.TempDir()
	h := open(t, host.Options{Workspace: ws})
	for _, dir := range []string{ws, filepath.Join(ws, "sub")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, ".env"), []byte("GREETING=hello\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	must(t, h, "sentinel/create", `{"definition": {"id": "rel", "name": "rel", "envFiles": [".env"], "loop": {"type": "once"}, "steps": [{"type": "shell", "command": "echo $GREETING"}]}}`, nil)
	for dir, want := range map[string]sentinels.Status{ws: sentinels.StatusCompleted, filepath.Join(ws, "sub"): sentinels.StatusFailed} {
		params, err := json.Marshal(map[string]any{"sentinelId": "rel", "workspace": dir})
		if err != nil {
			t.Fatal(err)
		}
		out, err := h.CallAs(t.Context(), &command.Call{Command: "sentinel/run", Params: params, By: command.ByAgent, As: "ci"})
		if err != nil {
			t.Fatal(err)
		}
		var res runtime.Result
		if err := json.Unmarshal(out, &res); err != nil {
			t.Fatal(err)
		}
		if res.Status != want || want == sentinels.StatusFailed && !strings.Contains(res.Error.Message, "envFiles") {
			t.Errorf("in %s: %s, %v; want %s", dir, res.Status, res.Error, want)
		}
	}
}

// TestEditsOfAgentsAreTheirs: an iteration of a person's run that uses a definition of an agent
// executes for the agent, also after a restart: an edit of the run or a newer revision.
func TestEditsOfAgentsAreTheirs(t *testing.T) {
	for _, stored := range []bool{false, true} {
		t.Run(fmt.Sprint("stored ", stored), func(t *testing.T) {
			opt := host.Options{Dir: t.TempDir(), Workspace: t.TempDir()}
			h := open(t, opt)
			must(t, h, "sentinel/create", `{"definition":{"id":"loop","name":"loop","steps":[{"type":"wait","event":"go"},{"id":"say","type":"set","values":{"as":"$PERSONA_ID", "n": 1}}],"loop":{"type":"count","max":3}}}`, nil)
			var run struct{ Run sentinels.RunID }
			must(t, h, "sentinel/start", `{"sentinelId":"loop"}`, &run)
			awaitWait(t, h, run.Run, 1)
			target := string(run.Run)
			if stored {
				target = "loop"
			}
			params := json.RawMessage(`{"sentinelId":"` + target + `","address":"say","params":{"values":{"as":"$PERSONA_ID","n":2}}}`)
			if _, err := h.CallAs(t.Context(), &command.Call{Command: "sentinel/step/update", Params: params, By: command.ByAgent, As: "ci"}); err != nil {
				t.Fatal(err)
			}
			expect := func(n, as string, iteration int) {
				t.Helper()
				must(t, h, "events/emit", `{"event":"go"}`, nil)
				awaitWait(t, h, run.Run, iteration)
				v, err := h.Runtime().Variables(run.Run)
				if err != nil || string(v["n"]) != n || string(v["as"]) != `"`+as+`"` {
					t.Errorf("after iteration %d: %s, %v; want n %s, as %s", iteration-1, v, err, n, as)
				}
			}
			expect("1", "", 2)
			if err := h.Close(); err != nil {
				t.Fatal(err)
			}
			h = open(t, opt)
			must(t, h, "sentinel/resume", map[string]any{"run": run.Run}, nil)
			awaitWait(t, h, run.Run, 2)
			expect("2", "agent:ci", 3)
		})
	}
}

// TestRunsOfDefinitionsOfAgents: what an agent wrote executes for the agent, also when a person
// starts it: as a child, behind edits of a person that do not accept it, after a rollback, and under
// another author of a bundle.
func TestRunsOfDefinitionsOfAgents(t *testing.T) {
	h := open(t, host.Options{Workspace: t.TempDir()})
	agent := func(name, params string) {
		t.Helper()
		if _, err := h.CallAs(t.Context(), &command.Call{Command: name, Params: json.RawMessage(params), By: command.ByAgent, As: "ci"}); err != nil {
			t.Fatal(err)
		}
	}
	ends := func(id, child, want string) {
		t.Helper()
		must(t, h, "sentinel/run", `{"sentinelId": "`+id+`"}`, nil)
		list, err := h.Runtime().Runs(runtime.RunFilter{Sentinel: sentinels.ID(child), Limit: 1})
		if err != nil || len(list) != 1 || list[0].As != want {
			t.Errorf("%s: the run of %s executes for %+v, want %q; %v", id, child, list, want, err)
		}
	}
	const step = `"steps": [{"id": "a", "type": "set", "values": {"x": 1}}, {"id": "b", "type": "set", "values": {"y": 1}}]`
	must(t, h, "sentinel/create", `{"definition": {"id": "kid", "name": "kid", `+step+`}}`, nil)
	must(t, h, "sentinel/create", `{"definition": {"id": "par", "name": "par", "steps": [{"type": "sentinel", "definition": {"$ref": "kid"}}]}}`, nil)
	ends("par", "kid", "")
	agent("sentinel/step/update", `{"sentinelId": "kid", "address": "a", "params": {"values": {"x": 2}}}`)
	ends("par", "kid", "agent:ci")
	must(t, h, "sentinel/step/update", `{"sentinelId": "kid", "address": "b", "params": {"values": {"y": 2}}}`, nil)
	ends("kid", "kid", "agent:ci")
	must(t, h, "sentinel/rollback", `{"sentinelId": "kid", "to": 2}`, nil)
	ends("kid", "kid", "agent:ci")
	must(t, h, "sentinel/rollback", `{"sentinelId": "kid", "to": 1}`, nil)
	ends("kid", "kid", "")

	must(t, h, "sentinel/create", `{"definition": {"id": "own", "name": "own", `+step+`}}`, nil)
	var bundle struct{ Bundle json.RawMessage }
	must(t, h, "sentinel/export", `{"sentinelId": "own", "history": true}`, &bundle)
	agent("sentinel/import", `{"bundle": `+string(bundle.Bundle)+`, "rename": "theirs"}`)
	ends("theirs", "theirs", "agent:ci")
}

// TestVariablesOfAgents: an agent sets the inputs that a person's definition declares, and nothing
// else that its shell lines may use.
func TestVariablesOfAgents(t *testing.T) {
	h := open(t, host.Options{Workspace: t.TempDir()})
	const line = `"steps": [{"type": "shell", "command": "echo $HOME $tool"}]`
	must(t, h, "sentinel/create", `{"definition": {"id": "open", "name": "open", "variables": {"tool": "x"}, `+line+`}}`, nil)
	must(t, h, "sentinel/create", `{"definition": {"id": "declares", "name": "d", "inputs": {"tool": {"type": "string"}}, `+line+`}}`, nil)
	var first struct{ Run sentinels.RunID }
	must(t, h, "sentinel/run", `{"sentinelId": "open"}`, &first)
	by := func(by command.By, name, params string) error {
		_, err := h.CallAs(t.Context(), &command.Call{Command: name, Params: json.RawMessage(params), By: by, As: map[command.By]string{command.ByAgent: "ci"}[by]})
		return err
	}
	for name, params := range map[string]string{
		"sentinel/run":   `{"sentinelId": "open", "variables": {"HOME": "/elsewhere"}}`,
		"sentinel/start": `{"sentinelId": "open", "inputs": {"tool": "/bin/false"}}`,
		"sentinel/retry": `{"run": "` + string(first.Run) + `", "inputs": {"HOME": "/elsewhere"}}`,
	} {
		if err := by(command.ByAgent, name, params); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "not an input of open") {
			t.Errorf("%s of an agent: %v", name, err)
		}
		if err := by(command.ByUser, name, params); err != nil {
			t.Errorf("%s of a person: %v", name, err)
		}
	}
	if err := by(command.ByAgent, "sentinel/run", `{"sentinelId": "declares", "inputs": {"tool": "y"}}`); err != nil {
		t.Errorf("an input that is declared: %v", err)
	}
	if err := by(command.ByAgent, "sentinel/run", `{"definition": {"name": "own", `+line+`}, "variables": {"tool": "y"}}`); err != nil {
		t.Errorf("a definition of its own: %v", err)
	}
}

// TestEnvironmentFilesThatModelsWrite: a file that commands on files write for models sets no variables of
// programs, under any name that leads to it.
func TestEnvironmentFilesThatModelsWrite(t *testing.T) {
	ws, outside := t.TempDir(), filepath.Join(t.TempDir(), "app.vars")
	for _, path := range []string{outside, filepath.Join(ws, ".env"), filepath.Join(ws, ".env.production"), filepath.Join(ws, ".sentinel", "app.vars"), filepath.Join(ws, "conf", "app.vars")} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("MODE=dev\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("conf/app.vars", filepath.Join(ws, ".env.local")); err != nil {
		t.Skip("no links: ", err)
	}
	h := open(t, host.Options{Workspace: ws})
	for path, refused := range map[string]bool{
		outside: false, ".env": false, ".env.production": false, ".sentinel/app.vars": false, "conf/../.env": false,
		"conf/app.vars": true, ".env.local": true, filepath.Join(ws, "conf", "app.vars"): true,
	} {
		res := run(t, h, fmt.Sprintf(`{"name": "a", "envFiles": [%q], "steps": [{"type": "shell", "command": "echo $MODE", "outputTo": "out"}]}`, path), ws)
		var out struct{ Text string }
		_ = json.Unmarshal(res.Variables["out"], &out)
		if refused != (res.Error != nil && strings.Contains(res.Error.Message, "models and agents may write it")) || !refused && out.Text != "dev" {
			t.Errorf("%s: %s, %v, %q", path, res.Status, res.Error, out.Text)
		}
	}
}

// TestConfinedRunsOfAgents: with shell.confine, a run that an agent starts of a person's definition is
// confined like the agent and gets no secrets, and no run reads envFiles that a confined command
// could have written.
func TestConfinedRunsOfAgents(t *testing.T) {
	for _, g := range confine.Gaps() {
		if g.Wall == confine.WallNamespaces {
			t.Skip(g)
		}
	}
	outside := filepath.Join(t.TempDir(), "secret")
	ws := t.TempDir()
	for path, text := range map[string]string{outside: "of the user", filepath.Join(ws, ".env"): "GREETING=hello\n", filepath.Join(ws, ".sentinel", "step.env"): "GREETING=good morning\n"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(ws, "link.env")); err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	env := map[string]string{"SENTINEL_SECRET_KEY": "hunter2-hunter2", "HOME": home, "XDG_CONFIG_HOME": home}
	getenv := func(name string) string { return env[name] }
	if err := secret.NewAllowed(config.Path(getenv), filepath.Join(ws, ".sentinel"), nil).Set(t.Context(), "KEY", []string{"secret"}, true); err != nil {
		t.Fatal(err)
	}
	opt := host.Options{Workspace: ws, Set: map[string]string{"shell.confine": "agents"}, Getenv: getenv}
	h := open(t, opt)
	create := func(id, more, line string) {
		t.Helper()
		must(t, h, "sentinel/create", `{"definition": {"id": "`+id+`", "name": "`+id+`"`+more+`, "steps": [{"type": "shell", "command": "`+line+`", "outputTo": "out"}]}}`, nil)
	}
	create("reads", "", "cat '"+outside+"' || true")
	create("file", `, "envFiles": [".env"]`, "echo $GREETING")
	create("linked", `, "envFiles": ["link.env"]`, "true")
	create("secret", `, "env": {"K": {"secret": "KEY"}}`, "true")
	create("kept", `, "envFiles": [".sentinel/step.env"]`, "echo $GREETING")
	for _, c := range []struct {
		id   string
		by   command.By
		want string // output, or the error behind "!"
	}{
		{"reads", command.ByUser, "of the user"},
		{"reads", command.ByAgent, ""},
		{"file", command.ByUser, "!shell.confine"},
		{"linked", command.ByUser, "!in the workspace"},
		{"kept", command.ByUser, "good morning"},
		{"kept", command.ByAgent, "!agent:ci started it"},
		{"secret", command.ByUser, ""},
		{"secret", command.ByAgent, "!agent:ci started it"},
	} {
		call := &command.Call{Command: "sentinel/run", Params: json.RawMessage(`{"sentinelId": "` + c.id + `"}`), By: c.by}
		if c.by == command.ByAgent {
			call.As = "ci"
		}
		raw, err := h.CallAs(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		var res runtime.Result
		if err := json.Unmarshal(raw, &res); err != nil {
			t.Fatal(err)
		}
		var out struct{ Text string }
		_ = json.Unmarshal(res.Variables["out"], &out)
		if fault, refused := strings.CutPrefix(c.want, "!"); refused {
			if res.Error == nil || !strings.Contains(res.Error.Message+res.Error.Hint, fault) {
				t.Errorf("%s by %s: %s, %v; want %q", c.id, c.by, res.Status, res.Error, fault)
			}
		} else if res.Status != sentinels.StatusCompleted || out.Text != c.want {
			t.Errorf("%s by %s: %s %q, %v; want %q", c.id, c.by, res.Status, out.Text, res.Error, c.want)
		}
	}
}

// TestAgentsDoNotAnswerForDoubt: what happens to a call in doubt is for a person to say, also by the resume of
// the run.
func TestAgentsDoNotAnswerForDoubt(t *testing.T) {
	h := open(t, host.Options{})
	must(t, h, "sentinel/create", `{"definition": {"id": "waits", "name": "waits", "steps": [{"type": "wait", "event": "never"}]}}`, nil)
	var out struct{ Run string }
	must(t, h, "sentinel/start", `{"sentinelId": "waits"}`, &out)
	resume := func(by command.By, answer string) error {
		call := &command.Call{Command: "sentinel/resume", By: by, Params: json.RawMessage(fmt.Sprintf(`{"run": %q, "onInterrupt": %q}`, out.Run, answer))}
		if by == command.ByAgent {
			call.As = "ci"
		}
		_, err := h.CallAs(t.Context(), call)
		return err
	}
	for answer, denied := range map[string]bool{"retry": true, "fail": true, "ask": false} {
		if err := resume(command.ByAgent, answer); denied != (err != nil && strings.Contains(err.Error(), "calls in doubt")) {
			t.Errorf("%s by an agent: %v", answer, err)
		}
	}
	if err := resume(command.ByUser, "retry"); err != nil && strings.Contains(err.Error(), "calls in doubt") {
		t.Errorf("by a person: %v", err)
	}
}

// TestApprovalIsOfWhatWasThere: an approval does not count for a sentinel that an agent changes while the
// question waits, whether a step of the run names it, a child of the run does, or a command starts or retries it. What
// the run made itself, and what was changed before, is executed.
func TestApprovalIsOfWhatWasThere(t *testing.T) {
	ws := t.TempDir()
	h := open(t, host.Options{Workspace: ws})
	must(t, h, "sentinel/create", `{"definition": {"id": "c", "name": "c", "steps": [{"type": "shell", "command": "echo reviewed > out"}]}}`, nil)
	must(t, h, "sentinel/create", `{"definition": {"id": "mid", "name": "mid", "steps": [{"type": "sentinel", "definition": {"$ref": "c"}}]}}`, nil)
	must(t, h, "sentinel/run", `{"sentinelId": "c"}`, nil) // what is retried
	for name, step := range map[string]string{
		"by reference":        `{"type": "sentinel", "definition": {"$ref": "c"}}`,
		"by a child":          `{"type": "sentinel", "definition": {"$ref": "mid"}}`,
		"by a command":        `{"command": "sentinel/run", "params": {"sentinelId": "c"}}`,
		"by a detached start": `{"command": "sentinel/start", "params": {"sentinelId": "c"}}`,
		"by a retry":          `{"command": "sentinel/retry", "params": {"sentinelId": "c", "withRevision": "latest"}}`,
	} {
		for _, during := range []bool{true, false} {
			edit := func() {
				_, err := h.CallAs(t.Context(), &command.Call{
					Command: "sentinel/step/update", By: command.ByAgent, As: "ci",
					Params: json.RawMessage(fmt.Sprintf(`{"sentinelId": "c", "address": "0", "step": {"type": "shell", "command": "echo %s %t > out"}}`, name, during)),
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			if !during {
				edit()
			}
			def, problems := h.Runtime().Decode([]byte(`{"id": "gate", "name": "gate", "steps": [{"type": "approve", "prompt": "deploy?"}, `+step+`]}`), "gate.json")
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			id, err := h.Runtime().Start(t.Context(), def, runtime.StartOptions{Workspace: ws})
			if err != nil {
				t.Fatal(err)
			}
			asked(t, h, id, "")
			if during {
				edit()
			}
			if err := h.Runtime().Decide(t.Context(), id, runtime.Decision{Verdict: "approve", By: "anna"}); err != nil {
				t.Fatal(err)
			}
			res, err := h.Runtime().Wait(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case !during && res.Status != sentinels.StatusCompleted:
				t.Errorf("%s, changed before the question: %s, %v", name, res.Status, res.Error)
			case during && (res.Status != sentinels.StatusFailed || !strings.Contains(res.Error.Message, "agent:ci made revision")):
				t.Errorf("%s, changed behind the question: %s, %v", name, res.Status, res.Error)
			}
		}
	}
}
