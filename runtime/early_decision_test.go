package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A quarantine can be lifted while other runs are still restored: the run is
// quarantined for those who look, and does not execute yet.
func TestQuarantineIsLiftedDuringRecovery(t *testing.T) {
	for name, lift := range map[string]func(*runtime.Runtime, sentinels.RunID) error{
		"decide": func(rt *runtime.Runtime, id sentinels.RunID) error {
			return rt.Decide(context.Background(), id, runtime.Decision{Verdict: "retry", By: "ann", Comment: "try"})
		},
		"resume": func(rt *runtime.Runtime, id sentinels.RunID) error {
			return rt.Resume(context.Background(), id, runtime.ResumeOptions{By: "ann", Comment: "try"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			db, id := quarantined(t)
			rt, w := life(t, db, "other")
			resumeAll(t, rt)
			untilStatus(t, rt, id, sentinels.StatusQuarantined)
			other := start(t, rt, fmt.Sprintf(retried, "other"), runtime.StartOptions{})
			until(t, "the other run to execute", func() bool { return w.count() == 1 })
			db = crashed(t, db, rt)

			rt, w = life(t, db)
			w.restoring = func(run sentinels.RunID) {
				if run != other {
					return
				}
				until(t, "the quarantined run to be restored", func() bool { return status(t, rt, id).Live })
				if info := status(t, rt, id); info.Status != sentinels.StatusQuarantined || len(info.Decisions) != 1 {
					t.Errorf("during recovery it is %s, with decisions %+v", info.Status, info.Decisions)
				}
				if err := lift(rt, id); err != nil {
					t.Error(err)
				}
			}
			resumeAll(t, rt)
			if t.Failed() {
				return
			}
			for _, run := range []sentinels.RunID{id, other} {
				if res := wait(t, rt, run); res.Status != sentinels.StatusCompleted {
					t.Errorf("%s: %v", res.Status, res.Error)
				}
			}
		})
	}
}

// What a run waited for in the last process can be decided before the run asks
// again, once. Here it does not ask because it is paused.
func TestDecideBeforeTheRunAsksAgain(t *testing.T) {
	db := newRecordingStore()
	rt, _ := askingLife(t, db)
	id := start(t, rt, `{"name":"s","steps":[{"type":"actask"}],"loop":{"type":"once"}}`, runtime.StartOptions{})
	untilStatus(t, rt, id, sentinels.StatusWaiting)
	if err := rt.Pause(within(t), id, "ann"); err != nil {
		t.Fatal(err)
	}
	db = crashed(t, db, rt)

	rt, _ = askingLife(t, db)
	resumeAll(t, rt)
	untilStatus(t, rt, id, sentinels.StatusPaused)
	decide(t, rt, id, runtime.Decision{Verdict: "approve", By: "ann"})
	if err := rt.Decide(within(t), id, runtime.Decision{Verdict: "reject", By: "bob"}); abi.CodeOf(err) != abi.Conflict {
		t.Errorf("a second decision: %v, want a conflict", err)
	}
	if err := rt.Resume(within(t), id, runtime.ResumeOptions{}); err != nil {
		t.Fatal(err)
	}
	if res := wait(t, rt, id); res.Status != sentinels.StatusCompleted {
		t.Errorf("%s: %v", res.Status, res.Error)
	}
	if n := db.count(t, func(r *journal.Record) bool { return r.Signal != nil && r.Signal.Call != "" }); n != 1 {
		t.Errorf("the journal has %d decisions, want 1", n)
	}
}

// Finding 19 of writing sentinels with the binary alone: $answer.at was the time of the
// resume. It is that of the decision, which the journal has, also where no process
// executed the run then.
func TestFinding19TimeOfTheDecision(t *testing.T) {
	db := newRecordingStore()
	rt, _ := askingLife(t, db)
	id := start(t, rt, `{"name":"s","steps":[{"type":"actask"}],"loop":{"type":"once"}}`, runtime.StartOptions{})
	untilStatus(t, rt, id, sentinels.StatusWaiting)
	db = crashed(t, db, rt)

	rt, _ = askingLife(t, db)
	before := time.Now()
	decide(t, rt, id, runtime.Decision{Verdict: "approve", By: "ann"})
	after := time.Now()
	db = crashed(t, db, rt)

	rt, _ = askingLife(t, db)
	resumeAll(t, rt)
	res := wait(t, rt, id)
	var out struct{ Decision struct{ At time.Time } }
	if err := json.Unmarshal(res.Output, &out); err != nil || res.Status != sentinels.StatusCompleted {
		t.Fatal(res.Status, res.Error, err)
	}
	if at := out.Decision.At; at.Before(before) || at.After(after) {
		t.Errorf("decided at %s, want a time from %s to %s", at, before, after)
	}
}
