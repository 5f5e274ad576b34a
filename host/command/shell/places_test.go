package shell_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/shell"
	"github.com/sentinel-runtime/sentinel/host/principal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Ten times as many executions as a run may have at once are all executed, in the foreground
// and in the background, never more than the limit together, and those that
// waited report the reason.
func TestExecutionsQueue(t *testing.T) {
	const limit = 3
	for _, wait := range []bool{true, false} {
		b := newBench(t, shell.Options{MaxPerRun: limit})
		var queued atomic.Int64
		var calls sync.WaitGroup
		for i := range 10 * limit {
			calls.Go(func() {
				call := command.Call{By: command.ByStep, Run: "run-1", Key: fmt.Sprint(i)}
				call.Queue = func(_ context.Context, reason string, wait func() error) error {
					if !strings.HasPrefix(reason, "3 executions of this run are live") {
						t.Errorf("reason %q", reason)
					}
					queued.Add(1)
					return wait()
				}
				// Each counts the folders of those that execute beside it.
				line := fmt.Sprintf("mkdir on-%d; ls -d on-* | wc -l >> counts; sleep 0.02; rmdir on-%d; echo %d >> done", i, i, i)
				if _, err := b.call(t.Context(), "code/shell/execute", call, params{"command": line, "wait": wait}); err != nil {
					t.Errorf("execution %d: %v", i, err)
				}
			})
		}
		calls.Wait()
		if err := b.m.Close(); wait && err != nil {
			t.Fatal(err)
		}
		if wait {
			if got := len(lines(t, b, "done")); got != 10*limit {
				t.Errorf("%d were executed", got)
			}
		}
		if most := slices.Max(lines(t, b, "counts")); most > fmt.Sprint(limit) {
			t.Errorf("%s at once", most)
		}
		if queued.Load() == 0 {
			t.Error("none waited")
		}
	}
}

// A program in the background ends, with its group, when the token that started it is not valid any
// more, and no other does.
func TestBackgroundEndsWithItsToken(t *testing.T) {
	b := newBench(t, shell.Options{})
	var revoked atomic.Bool
	agent := command.Call{By: command.ByAgent, As: "ci"}
	ctx := principal.WithValidity(t.Context(), func() bool { return !revoked.Load() })
	start := func(ctx context.Context, call command.Call) string {
		raw, err := b.call(ctx, "code/shell/execute", call, params{"command": "sleep 600 & sleep 600", "wait": false})
		if err != nil {
			t.Fatal(err)
		}
		return raw.ExecutionID
	}
	own, other := start(ctx, agent), start(t.Context(), agent)
	revoked.Store(true)
	o, err := b.call(t.Context(), "code/shell/watch", agent, params{"executionId": own})
	if text := strings.Join(texts(o.Lines), "\n"); err != nil || !o.Finished || !strings.Contains(text, "the token that started it was revoked") {
		t.Errorf("finished %v: %s, %v", o.Finished, text, err)
	}
	if o, err = b.call(t.Context(), "code/shell/kill", agent, params{"executionId": other}); err != nil || !o.Killed {
		t.Errorf("one that was started without a token: %+v, %v", o, err)
	}
}

// Callers without a run have places of their own, an agent a quarter of them.
func TestCallersHavePlacesOfTheirOwn(t *testing.T) {
	b := newBench(t, shell.Options{MaxPerRun: 4})
	long := params{"command": "sleep 600", "wait": false}
	agent := command.Call{By: command.ByAgent, As: "ci"}
	if _, err := b.call(t.Context(), "code/shell/execute", agent, long); err != nil {
		t.Fatal(err)
	}
	if _, err := b.call(t.Context(), "code/shell/execute", agent, long); abi.CodeOf(err) != abi.Limit || !strings.Contains(err.Error(), "1 executions of agent:ci are live in the background") {
		t.Errorf("a second one of the agent: %v", err)
	}
	for _, call := range []command.Call{{By: command.ByAgent, As: "other"}, {By: command.ByUser}, {By: command.ByUser}} {
		if _, err := b.call(t.Context(), "code/shell/execute", call, long); err != nil {
			t.Errorf("%s: %v", call.Who(), err)
		}
	}
}

// TestRunsOfAnAgentShareTheirPlaces: all runs that execute for one agent have the places of one run. Those
// of another agent, of a person and of the agent itself have others.
func TestRunsOfAnAgentShareTheirPlaces(t *testing.T) {
	b := newBench(t, shell.Options{MaxPerRun: 2})
	long := params{"command": "sleep 600", "wait": false}
	execute := func(call command.Call) (queued string) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		call.Queue = func(_ context.Context, reason string, wait func() error) error {
			queued = reason
			cancel()
			return wait()
		}
		if _, err := b.call(ctx, "code/shell/execute", call, long); err != nil && queued == "" {
			t.Fatal(err)
		}
		return queued
	}
	ofAgent := func(run, agent string) command.Call {
		return command.Call{By: command.ByStep, Run: sentinels.RunID(run), As: "agent:" + agent}
	}
	for _, run := range []string{"r1", "r2"} {
		if queued := execute(ofAgent(run, "ci")); queued != "" {
			t.Errorf("%s: %s", run, queued)
		}
	}
	if queued := execute(ofAgent("r3", "ci")); !strings.HasPrefix(queued, "2 executions of runs of agent:ci are live") {
		t.Errorf("the third run: %q", queued)
	}
	for _, call := range []command.Call{ofAgent("r4", "other"), {By: command.ByStep, Run: "r5"}, {By: command.ByAgent, As: "ci"}} {
		if queued := execute(call); queued != "" {
			t.Errorf("%+v: %s", call, queued)
		}
	}
}

// Programs that stay in the background keep no others from their start, and one that waits
// for its start leaves the queue with its call.
func TestBackgroundHasItsOwnPlaces(t *testing.T) {
	b := newBench(t, shell.Options{MaxPerRun: 1})
	long := params{"command": "sleep 600", "wait": false}
	b.do("code/shell/execute", long)
	b.do("code/shell/execute", params{"command": "true"})
	ctx, cancel := context.WithCancel(t.Context())
	call := command.Call{By: command.ByStep, Run: "run-1"}
	call.Queue = func(_ context.Context, _ string, wait func() error) error {
		cancel()
		return wait()
	}
	if _, err := b.call(ctx, "code/shell/execute", call, long); abi.CodeOf(err) != abi.Cancelled {
		t.Errorf("a call that is cancelled in the queue: %v", err)
	}
	b.do("code/shell/execute", params{"command": "true"})
}

func lines(t *testing.T, b *bench, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(text)) {
		out = append(out, strings.TrimSpace(line))
	}
	return out
}
