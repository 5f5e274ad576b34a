package host_test

import (
	"encoding/json"
	"strings"
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

// TestPausesHoldBackForks: what a person paused in one of several runs with the same work, an agent does not execute by a
// retry or fork of another one. An active one of them goes on, and so does a new start.
func TestPausesHoldBackForks(t *testing.T) {
	h := open(t, host.Options{Workspace: t.TempDir()})
	define(t, h, "dep", `"concurrency": "parallel", "steps": [{"type": "set", "values": {"a": 1}}, {"type": "approve", "prompt": "Deploy?"}]`)
	var made struct{ Run sentinels.RunID }
	rerun := func(of sentinels.RunID) sentinels.RunID {
		t.Helper()
		made.Run = ""
		must(t, h, "sentinel/retry", map[string]any{"run": of, "from": 1}, &made)
		return made.Run
	}
	must(t, h, "sentinel/start", `{"sentinelId": "dep"}`, &made)
	original := made.Run
	asked(t, h, original, "")
	one := rerun(original)
	asked(t, h, one, "")
	two := rerun(one)
	all := []sentinels.RunID{original, one, two}
	again := func(of sentinels.RunID) error {
		return callBy(t, h, command.ByAgent, "sentinel/retry", map[string]any{"run": of, "from": 1})
	}
	for _, paused := range all {
		must(t, h, "sentinel/pause", map[string]any{"run": paused}, nil)
		for _, of := range all {
			if err := again(of); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "paused run "+string(paused)) {
				t.Errorf("%s is paused, retry of %s: %v", paused, of, err)
			}
		}
		for _, of := range all {
			info, err := h.Runtime().Status(of)
			if err != nil || (info.Status == sentinels.StatusPaused) != (of == paused) {
				t.Errorf("%s is paused, %s is %s, %v", paused, of, info.Status, err)
			}
		}
		if err := callBy(t, h, command.ByAgent, "sentinel/start", map[string]any{"sentinelId": "dep"}); err != nil {
			t.Errorf("a new start: %v", err)
		}
		must(t, h, "sentinel/resume", map[string]any{"run": paused}, nil)
	}
	if err := again(original); err != nil {
		t.Errorf("while none is paused: %v", err)
	}
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
	top, kid := startTree(t, h, `{"type": "wait", "durationMs": 3600000}`)
	must(command.ByUser, "sentinel/pause", kid)
	for _, run := range []sentinels.RunID{top, kid} {
		for _, name := range []string{"sentinel/retry", "sentinel/stop"} {
			if err := call(command.ByAgent, name, run); abi.CodeOf(err) != abi.Denied {
				t.Errorf("%s of a run that a person paused, or of one above it: %v", name, err)
			}
		}
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
		for _, name := range []string{"sentinel/resume", "sentinel/retry", "sentinel/stop"} {
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

// TestRestartsKeepPausesOfPersons: with the policy restart an agent begins no run in the place of one that a person
// paused, by a start, a retry or a fork of an earlier one; that run stays, and a person replaces it.
func TestRestartsKeepPausesOfPersons(t *testing.T) {
	h := open(t, host.Options{})
	must(t, h, "sentinel/create", `{"definition": {"id": "rs", "concurrency": "restart", "inputs": {"end": {"default": true}}, "steps": [
		{"type": "condition", "check": "!$end", "then": [{"type": "wait", "durationMs": 3600000}]}]}}`, nil)
	start := func(last bool) sentinels.RunID {
		t.Helper()
		var made struct{ Run sentinels.RunID }
		must(t, h, "sentinel/start", map[string]any{"sentinelId": "rs", "inputs": map[string]any{"end": last}}, &made)
		return made.Run
	}
	ended := start(true)
	if res, err := h.Runtime().Wait(t.Context(), ended); err != nil || res.Status != sentinels.StatusCompleted {
		t.Fatalf("%+v %v", res, err)
	}
	paused := start(false)
	must(t, h, "sentinel/pause", map[string]any{"run": paused}, nil)
	for name, params := range map[string]map[string]any{
		"sentinel/start": {"sentinelId": "rs"}, "sentinel/retry": {"run": ended}, "sentinel/fork": {"run": ended, "iteration": 1},
	} {
		if err := callBy(t, h, command.ByAgent, name, params); abi.CodeOf(err) != abi.Denied {
			t.Errorf("%s by an agent: %v", name, err)
		}
	}
	if info, err := h.Runtime().Status(paused); err != nil || info.PausedBy() != string(command.ByUser) {
		t.Errorf("%+v %v", info, err)
	}
	if res, err := h.Runtime().Wait(t.Context(), start(true)); err != nil || res.Status != sentinels.StatusCompleted {
		t.Errorf("by a person: %+v %v", res, err)
	}
}

// startTree starts a run with a child that executes a step, and returns both when the child has begun.
func startTree(t *testing.T, h *host.Host, step string) (top, kid sentinels.RunID) {
	t.Helper()
	def, problems := h.Runtime().Decode([]byte(`{"name": "top", "steps": [{"type": "sentinel", "definition": {"name": "kid", "steps": [`+step+`]}}]}`), "top.json")
	if problems.Err() != nil {
		t.Fatal(problems)
	}
	top, err := h.Runtime().Start(t.Context(), def, runtime.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); kid == ""; time.Sleep(5 * time.Millisecond) {
		runs, err := h.Runtime().Runs(runtime.RunFilter{Parent: top})
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("no child run: %v", err)
		}
		for _, r := range runs {
			if r.Iteration > 0 {
				kid = r.ID
			}
		}
	}
	return top, kid
}

// TestOnlyPersonsGoOnWithWhatTheyEnded: a run that a person stopped, or had paused when something else ended it, or that is
// above or below such a run, an agent neither retries nor forks. What an agent stopped, it may go on with.
func TestOnlyPersonsGoOnWithWhatTheyEnded(t *testing.T) {
	h := open(t, host.Options{Workspace: t.TempDir()})
	stopped := func(by command.By) (stop func(top, kid sentinels.RunID) error) {
		return func(top, _ sentinels.RunID) error {
			return callBy(t, h, by, "sentinel/stop", map[string]any{"run": top})
		}
	}
	for name, test := range map[string]struct {
		end  func(top, kid sentinels.RunID) error
		want abi.Code
	}{
		"a person stopped it": {stopped(command.ByUser), abi.Denied},
		"a person stopped the child": {func(_, kid sentinels.RunID) error {
			return callBy(t, h, command.ByUser, "sentinel/stop", map[string]any{"run": kid})
		}, abi.Denied},
		"a person had paused the child": {func(top, kid sentinels.RunID) error {
			if err := callBy(t, h, command.ByUser, "sentinel/pause", map[string]any{"run": kid}); err != nil {
				return err
			}
			return h.Runtime().Stop(t.Context(), top)
		}, abi.Denied},
		"an agent stopped it": {stopped(command.ByAgent), ""},
	} {
		t.Run(name, func(t *testing.T) {
			top, kid := startTree(t, h, `{"type": "wait", "durationMs": 3600000}`)
			if err := test.end(top, kid); err != nil {
				t.Fatal(err)
			}
			if _, err := h.Runtime().Wait(t.Context(), top); err != nil {
				t.Fatal(err)
			}
			for _, run := range []sentinels.RunID{top, kid} {
				for verb, params := range map[string]map[string]any{"sentinel/retry": {"run": run, "from": 0}, "sentinel/fork": {"run": run, "iteration": 1}} {
					if err := callBy(t, h, command.ByAgent, verb, params); abi.CodeOf(err) != test.want {
						t.Errorf("%s by an agent: %v", verb, err)
					}
				}
			}
			if err := callBy(t, h, command.ByUser, "sentinel/retry", map[string]any{"run": top}); err != nil {
				t.Errorf("retry by a person: %v", err)
			}
		})
	}
}
