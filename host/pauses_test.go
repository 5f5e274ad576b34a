package host_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// callBy makes a call for a person, a model or the agent ci.
func callBy(t *testing.T, h *host.Host, by command.By, name string, params map[string]any) error {
	t.Helper()
	data, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	call := &command.Call{Command: name, By: by, Params: data}
	if by == command.ByAgent {
		call.As = "ci"
	}
	_, err = h.CallAs(t.Context(), call)
	return err
}

// TestPausesOfPersonsStay: what a person paused, an agent does not resume with the tree above it, also in another
// process, and what an agent paused before is the person's pause from then on.
func TestPausesOfPersonsStay(t *testing.T) {
	ws := t.TempDir()
	h := open(t, host.Options{Workspace: ws})
	call := func(by command.By, name string, run sentinels.RunID) error {
		t.Helper()
		return callBy(t, h, by, name, map[string]any{"run": run})
	}
	must := func(by command.By, name string, run sentinels.RunID) {
		t.Helper()
		if err := call(by, name, run); err != nil {
			t.Fatalf("%s by %s: %v", name, by, err)
		}
	}
	pausedBy := func(run sentinels.RunID) string {
		t.Helper()
		info, err := h.Runtime().Status(run)
		if err != nil {
			t.Fatal(err)
		}
		return info.PausedBy()
	}
	def, problems := h.Runtime().Decode([]byte(`{"name": "top", "steps": [{"type": "sentinel", "definition": {"name": "kid", "steps": [{"type": "wait", "durationMs": 3600000}]}}]}`), "top.json")
	if problems.Err() != nil {
		t.Fatal(problems)
	}
	top, err := h.Runtime().Start(t.Context(), def, runtime.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	kid := sentinels.RunID("")
	for deadline := time.Now().Add(time.Minute); kid == ""; time.Sleep(5 * time.Millisecond) {
		runs, err := h.Runtime().Runs(runtime.RunFilter{})
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("no child run: %v", err)
		}
		for _, r := range runs {
			if r.Parent == top {
				kid = r.ID
			}
		}
	}

	must(command.ByUser, "sentinel/pause", kid)
	if err := call(command.ByAgent, "sentinel/retry", kid); abi.CodeOf(err) != abi.Denied {
		t.Errorf("retry of a run that a person paused: %v", err)
	}
	must(command.ByAgent, "sentinel/pause", top)
	must(command.ByAgent, "sentinel/resume", top)
	if by := pausedBy(kid); by != string(command.ByUser) {
		t.Errorf("resumed with the run above it: paused by %q", by)
	}
	must(command.ByAgent, "sentinel/pause", top)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h = open(t, host.Options{Workspace: ws})
	must(command.ByAgent, "sentinel/resume", top)
	if by := pausedBy(kid); by != string(command.ByUser) {
		t.Errorf("resumed with the run above it by another process: paused by %q", by)
	}

	must(command.ByUser, "sentinel/resume", kid)
	must(command.ByAgent, "sentinel/pause", top)
	must(command.ByUser, "sentinel/pause", top)
	for _, run := range []sentinels.RunID{top, kid} {
		for _, name := range []string{"sentinel/resume", "sentinel/retry"} {
			if err := call(command.ByAgent, name, run); abi.CodeOf(err) != abi.Denied {
				t.Errorf("%s of what an agent paused before the person: %v", name, err)
			}
		}
		if by := pausedBy(run); by != string(command.ByUser) {
			t.Errorf("paused by %q", by)
		}
	}
	must(command.ByAgent, "sentinel/pause", top)
	must(command.ByUser, "sentinel/resume", top)
	for _, run := range []sentinels.RunID{top, kid} {
		if by := pausedBy(run); by != "" {
			t.Errorf("a person's resume of the tree leaves a run paused by %q", by)
		}
	}
	must(command.ByUser, "sentinel/stop", top)
}
