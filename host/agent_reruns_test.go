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
	"github.com/sentinel-runtime/sentinel/runtime"
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
