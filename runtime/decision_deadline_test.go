package runtime_test

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// deadlineLife opens a runtime whose calendar is ahead by an offset, with a step that asks a person
// for at most an hour.
func deadlineLife(t *testing.T, db *recordingStore, ahead *atomic.Int64) *runtime.Runtime {
	t.Helper()
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	rt := open(t, newFakeHost(), db, runtime.WithClock(runtime.Options{}, now))
	err := runtime.AddModule(rt, &runtime.GoModule{
		Name: "limited", Types: []wasm.StepType{{Type: "limited", Fields: json.RawMessage(`{"type":"object"}`)}},
		Step: func(g *runtime.GoGuest) (any, error) {
			a := g.Call(abi.FuncWait, map[string]any{"decision": map[string]any{"prompt": "well?"}, "timeoutMs": 3600_000})
			if a.Error != nil {
				return nil, a.Error
			}
			return a.OK, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

const limited = `{"name":"s","steps":[{"type":"limited"}],"loop":{"type":"once"}}`

// TestDeadlineOfADecision: the deadline is that of the first question, over crashes and while no process executes
// the run. A later decision is refused by name, by any process, also when the run has ended; a decision before it
// counts, however late the run is resumed.
func TestDeadlineOfADecision(t *testing.T) {
	refused := func(rt *runtime.Runtime, id sentinels.RunID, d runtime.Decision, deadline time.Time) {
		t.Helper()
		err := rt.Decide(within(t), id, d)
		if want := "the limit of 3600 s ended at " + deadline.UTC().Format(time.RFC3339); abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), want) {
			t.Errorf("decide: %v, want a conflict with %q", err, want)
		}
	}
	var ahead atomic.Int64
	db := newRecordingStore()
	rt := deadlineLife(t, db, &ahead)
	late, early := start(t, rt, limited, runtime.StartOptions{}), start(t, rt, limited, runtime.StartOptions{})
	asked := untilStatus(t, rt, late, sentinels.StatusWaiting).Decisions[0]
	untilStatus(t, rt, early, sentinels.StatusWaiting)
	if left := asked.Deadline.Sub(asked.Since); left < 59*time.Minute || left > 61*time.Minute || asked.TimeoutMs != 3600_000 {
		t.Fatalf("asked %s, deadline %s, limit %d", asked.Since, asked.Deadline, asked.TimeoutMs)
	}
	db = crashed(t, db, rt)

	ahead.Store(int64(30 * time.Minute)) // asks again, with the first deadline
	rt = deadlineLife(t, db, &ahead)
	resumeAll(t, rt)
	for _, id := range []sentinels.RunID{late, early} {
		until(t, "the run to ask again", func() bool {
			info := status(t, rt, id)
			return info.Live && len(info.Decisions) == 1
		})
	}
	if again := status(t, rt, late).Decisions[0]; !again.Deadline.Equal(asked.Deadline) || again.Question != asked.Question {
		t.Errorf("asked again with deadline %s, first %s", again.Deadline, asked.Deadline)
	}
	db = crashed(t, db, rt)

	rt = deadlineLife(t, db, &ahead) // executes no run
	decide(t, rt, early, runtime.Decision{Verdict: "approve", By: "ann"})
	ahead.Store(int64(2 * time.Hour))
	refused(rt, late, runtime.Decision{Verdict: "approve", By: "ann"}, asked.Deadline)
	db = crashed(t, db, rt)

	rt = deadlineLife(t, db, &ahead)
	resumeAll(t, rt)
	var out struct {
		TimedOut bool
		Deadline time.Time
		Decision struct{ Verdict string }
	}
	res := wait(t, rt, late)
	if err := json.Unmarshal(res.Output, &out); err != nil || !out.TimedOut || !out.Deadline.Equal(asked.Deadline) {
		t.Errorf("%s: %s %v, want timed out at %s", res.Status, res.Output, err, asked.Deadline)
	}
	refused(rt, late, runtime.Decision{Verdict: "approve", By: "ann"}, asked.Deadline)
	refused(rt, late, runtime.Decision{Verdict: "approve", By: "ann", Question: asked.Question}, asked.Deadline)
	if err := rt.Decide(within(t), late, runtime.Decision{Verdict: "approve", Question: "0123456789ab"}); abi.CodeOf(err) != abi.Conflict || strings.Contains(err.Error(), "limit") {
		t.Errorf("another question: %v", err)
	}
	out.TimedOut = false
	res = wait(t, rt, early)
	if err := json.Unmarshal(res.Output, &out); err != nil || out.TimedOut || out.Decision.Verdict != "approve" {
		t.Errorf("decided in time: %s %v", res.Output, err)
	}
}

// TestDecisionAtTheDeadline: with the process at work the question ends at its deadline, and a decision is refused from then on.
func TestDecisionAtTheDeadline(t *testing.T) {
	var ahead atomic.Int64
	rt := deadlineLife(t, newRecordingStore(), &ahead)
	id := start(t, rt, limited, runtime.StartOptions{})
	untilStatus(t, rt, id, sentinels.StatusWaiting)
	ahead.Store(int64(time.Hour))
	if err := rt.Decide(within(t), id, runtime.Decision{Verdict: "approve", By: "ann"}); abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), "too late") {
		t.Errorf("decide: %v", err)
	}
	if res := wait(t, rt, id); res.Status != sentinels.StatusCompleted || !strings.Contains(string(res.Output), `"timedOut":true`) {
		t.Errorf("%s: %s", res.Status, res.Output)
	}
}
