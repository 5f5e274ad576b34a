package host_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/runtime"
	runs "github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestRunOfStepSpendsFromItsBudget checks that what a run that a step starts with sentinel/run
// spends counts for the run of the step, and that it gets no more than that run has left.
func TestRunOfStepSpendsFromItsBudget(t *testing.T) {
	s := newModelServer(t, func(chatRequest) answer { return answer{text: "hello"} })
	h := open(t, host.Options{Limits: runtime.Limits{Runs: 1}}) // the run that waits gives its place to the other
	must(t, h, "sentinel/create", `{"definition": {"name": "kid", "inputs": {"n": "number"}, "budget": {"calls": 50}, "steps": [{"type": "llm", "prompt": "hi", "model": "gpt-4o"}], "loop": {"type": "until", "check": "$iteration >= $n"}, "maxIterations": 30}}`, nil)
	parent := func(budget string, n int) (res runtime.Result, turns int) {
		before := s.turns()
		res = run(t, h, fmt.Sprintf(`{"name": "m", "budget": %s, "steps": [{"type": "llm", "prompt": "hi", "model": "gpt-4o"},
			{"command": "sentinel/run", "params": {"sentinelId": "kid", "inputs": {"n": %d}}, "outputTo": "r"}]}`, budget, n), t.TempDir())
		return res, s.turns() - before
	}
	free, turns := parent(`{"calls": 3}`, 2)
	if free.Status != sentinels.StatusCompleted || turns != 3 || free.Usage.Calls != 3 || free.Usage.CostUSD <= 0 {
		t.Fatalf("%s with %v after %d turns, usage %+v", free.Status, free.Error, turns, free.Usage)
	}
	turn := free.Usage.CostUSD / 3
	for reason, budget := range map[string]string{
		runs.ReasonCalls: `{"calls": 10}`,
		runs.ReasonCost:  fmt.Sprintf(`{"costUsd": %f}`, 10*turn),
	} {
		res, turns := parent(budget, 20)
		if res.Status != sentinels.StatusTimedOut || res.Reason != reason || turns < 2 || turns > 10 {
			t.Errorf("budget %s: %s for %q after %d turns: %v", budget, res.Status, res.Reason, turns, res.Error)
		}
		children, err := h.Runtime().Runs(runtime.RunFilter{Parent: res.Run})
		if err != nil || len(children) != 1 || children[0].Status != sentinels.StatusStopped {
			t.Errorf("budget %s: children %+v, %v", budget, children, err)
		}
	}
}

// TestRunOfStepStopsWithIt ends runs whose step waits for a run that it has started with sentinel/run.
func TestRunOfStepStopsWithIt(t *testing.T) {
	begun := make(chan sentinels.RunID, 10)
	h := open(t, host.Options{Observer: runtime.Observer{Progress: func(p runtime.Progress) {
		if p.Event == runtime.OnStepStart && p.Sentinel == "kid" {
			begun <- p.Run
		}
	}}})
	must(t, h, "sentinel/create", `{"definition": {"name": "kid", "steps": [{"type": "wait", "durationMs": 600000}]}}`, nil)
	must(t, h, "sentinel/create", `{"definition": {"name": "parent", "steps": [{"command": "sentinel/run", "params": {"sentinelId": "kid"}}]}}`, nil)
	must(t, h, "sentinel/create", `{"definition": {"name": "limited", "steps": [{"command": "sentinel/run", "params": {"sentinelId": "kid"}, "timeoutMs": 300, "onError": {"retry": {"maxRetries": 1, "baseDelayMs": 1}}}]}}`, nil)
	must(t, h, "sentinel/create", `{"definition": {"name": "starter", "steps": [{"command": "sentinel/start", "params": {"sentinelId": "kid"}}]}}`, nil)
	start := func(id string) (run, kid sentinels.RunID) {
		t.Helper()
		var out struct{ Run sentinels.RunID }
		must(t, h, "sentinel/start", map[string]any{"sentinelId": id}, &out)
		return out.Run, <-begun
	}
	parent, kid := start("parent")
	info, err := h.Runtime().Status(kid)
	if err != nil || info.Parent != parent || info.Root != parent {
		t.Errorf("the run of the step: %+v, %v", info, err)
	}
	must(t, h, "sentinel/stop", map[string]any{"run": parent}, nil)
	if res := ended(t, h, kid); res.Status != sentinels.StatusStopped {
		t.Errorf("after the stop of its parent it is %s", res.Status)
	}
	_, kid = start("limited")
	if res := ended(t, h, kid); res.Status != sentinels.StatusStopped {
		t.Errorf("after the time limit of the step it is %s", res.Status)
	}
	if second := <-begun; second == kid {
		t.Error("the second attempt of the step has the run of the first one")
	}
	starter, kid := start("starter") // nothing waits for it, so it is a run of its own
	ended(t, h, starter)
	if info, err := h.Runtime().Status(kid); err != nil || info.Status.Final() || info.Parent != "" {
		t.Errorf("the run of sentinel/start: %+v, %v", info, err)
	}
	if err := h.Runtime().Stop(t.Context(), kid); err != nil {
		t.Error(err)
	}
}

// TestRunOfStepAfterRestart closes the host while a step waits for a run that it has started with
// sentinel/run: both continue, and no other run is started.
func TestRunOfStepAfterRestart(t *testing.T) {
	begun := make(chan sentinels.RunID, 10)
	opt := host.Options{Workspace: t.TempDir(), Observer: runtime.Observer{Progress: func(p runtime.Progress) {
		if p.Event == runtime.OnStepStart && p.Sentinel == "kid" {
			begun <- p.Run
		}
	}}}
	h := open(t, opt)
	must(t, h, "sentinel/create", `{"definition": {"name": "kid", "steps": [{"type": "wait", "event": "go"}]}}`, nil)
	must(t, h, "sentinel/create", `{"definition": {"name": "parent", "steps": [{"command": "sentinel/run", "params": {"sentinelId": "kid"}, "outputTo": "r"}]}}`, nil)
	var out struct{ Run sentinels.RunID }
	must(t, h, "sentinel/start", `{"sentinelId": "parent"}`, &out)
	kid := <-begun
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h = open(t, opt)
	if _, err := h.Runtime().ResumeAll(t.Context(), runtime.ResumeOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Runtime().Emit(t.Context(), sentinels.Event{Name: "go"}); err != nil {
		t.Fatal(err)
	}
	res := ended(t, h, out.Run)
	children, err := h.Runtime().Runs(runtime.RunFilter{Parent: out.Run})
	if err != nil || len(children) != 1 || children[0].ID != kid || res.Status != sentinels.StatusCompleted || !strings.Contains(string(res.Variables["r"]), string(kid)) {
		t.Errorf("%s with %v and %s, children %+v, %v", res.Status, res.Error, res.Variables["r"], children, err)
	}
}
