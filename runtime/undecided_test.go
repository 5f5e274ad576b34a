package runtime_test

import (
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

const (
	actStep = `{"type":"call","command":"world/act","value":7}`
	askStep = `{"type":"call","command":"world/act","value":7,"onInterrupt":"ask"}`
)

// interrupted is what a crash leaves during an effect of the first run of sentinel "a", which has
// the steps and the rest of its definition. begin starts the run.
func interrupted(t *testing.T, steps, rest string, begin func(s serving) sentinels.RunID) (serving, sentinels.RunID) {
	t.Helper()
	db := newRecordingStore()
	s := serving{fakeTriggers: new(fakeTriggers), w: newFakeHost()}
	s.w.freeze()
	s.Runtime = open(t, s.w, db, runtime.Options{Triggers: s.set()})
	if err := s.Arm(within(t)); err != nil {
		t.Fatal(err)
	}
	s.saveSteps(t, "a", steps, rest)
	first := begin(s)
	until(t, "the effect to begin", func() bool { return db.has(t, hasCall("world/act")) })
	left := db.prefix(t, db.length())
	s.Close()
	return serve(t, left, runtime.Options{}), first
}

func byTrigger(t *testing.T) func(serving) sentinels.RunID {
	return func(s serving) sentinels.RunID { return s.fire(t, "a", 0, fired(1)).Run }
}

// A run of a trigger that waits for a decision about an interrupted call ends as failed at the
// next firing, whatever the overlap policy is, and its call is not repeated.
func TestUndecidedRunEndsAtTheNextFiring(t *testing.T) {
	child := `{"type":"child","definition":{"name":"below","loop":{"type":"once"},"steps":[` + actStep + `]}}`
	tests := []struct {
		name, steps, overlap string
		outcome              triggers.Outcome
	}{
		{"skip", actStep, "skip", triggers.Queued},
		{"queue", actStep, "queue", triggers.Queued},
		{"restart", actStep, "restart", triggers.Queued},
		{"parallel", actStep, "parallel", triggers.Started},
		{"in a child run", child, "skip", triggers.Queued},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, first := interrupted(t, tt.steps, `"concurrency":"`+tt.overlap+`","trigger":{"type":"test"}`, byTrigger(t))
			until(t, "a run that asks", func() bool {
				infos, err := s.Runs(runtime.RunFilter{})
				for _, i := range infos {
					if i.Status == sentinels.StatusWaiting {
						return err == nil
					}
				}
				return false
			})
			if adm := s.fire(t, "a", 0, fired(2)); adm.Outcome != tt.outcome {
				t.Errorf("the next firing is %s (%s), want %s", adm.Outcome, adm.Reason, tt.outcome)
			}
			res := wait(t, s.Runtime, first)
			if res.Status != sentinels.StatusFailed || abi.CodeOf(res.Error) != abi.Interrupted || !strings.Contains(res.Error.Message, "world/act of step 0") {
				t.Errorf("%s, %v; want failed, interrupted, with call and step", res.Status, res.Error)
			}
			if wantStep := map[bool]string{true: "", false: "0"}[tt.steps == child]; res.Step != wantStep {
				t.Errorf("step %q, want %q", res.Step, wantStep)
			}
			until(t, "the run of the next firing", func() bool {
				i := s.info(t, "a", 0)
				return i.LastRun != first && i.Started == 2
			})
			if res := wait(t, s.Runtime, s.info(t, "a", 0).LastRun); res.Status != sentinels.StatusCompleted {
				t.Errorf("the next run %s: %v", res.Status, res.Error)
			}
			if n := len(s.w.made); n != 1 {
				t.Errorf("%d effects, want the one of the next run", n)
			}
			sums(t, s.info(t, "a", 0))
			if err := s.Decide(within(t), first, runtime.Decision{Verdict: "retry"}); abi.CodeOf(err) != abi.Conflict {
				t.Errorf("a decision about the run that ended: %v", err)
			}
		})
	}
}

// A firing that waits already, when the run is resumed and asks, is the next one.
func TestUndecidedRunEndsForWhatWaits(t *testing.T) {
	s, first := interrupted(t, actStep, `"concurrency":"queue","trigger":{"type":"test"}`, func(s serving) sentinels.RunID {
		run := s.fire(t, "a", 0, fired(1)).Run
		if adm := s.fire(t, "a", 0, fired(2)); adm.Outcome != triggers.Queued {
			t.Fatalf("%+v", adm)
		}
		return run
	})
	if res := wait(t, s.Runtime, first); abi.CodeOf(res.Error) != abi.Interrupted {
		t.Errorf("%s, %v", res.Status, res.Error)
	}
	until(t, "the run of the queued firing", func() bool { return s.info(t, "a", 0).Started == 2 })
}

// These wait for a person, and firings are skipped meanwhile.
func TestUndecidedRunsThatWait(t *testing.T) {
	byPerson := func(t *testing.T) func(serving) sentinels.RunID {
		return func(s serving) sentinels.RunID {
			stored, err := s.Definition("a")
			if err != nil {
				t.Fatal(err)
			}
			def, err := s.Decoded(stored)
			if err != nil {
				t.Fatal(err)
			}
			run, err := s.Start(within(t), def, runtime.StartOptions{Revision: stored.Revision})
			if err != nil {
				t.Fatal(err)
			}
			return run
		}
	}
	tests := []struct {
		name, steps, safety string
		begin               func(*testing.T) func(serving) sentinels.RunID
	}{
		{"the step asks", askStep, "", byTrigger},
		{"the definition asks", actStep, `"safety":{"onInterrupt":"ask"},`, byTrigger},
		{"a person started it", actStep, "", byPerson},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, first := interrupted(t, tt.steps, tt.safety+`"trigger":{"type":"test"}`, tt.begin(t))
			untilStatus(t, s.Runtime, first, sentinels.StatusWaiting)
			if adm := s.fire(t, "a", 0, fired(2)); adm.Outcome != triggers.Skipped || !strings.HasSuffix(adm.Reason, "is waiting") {
				t.Errorf("%+v", adm)
			}
			decide(t, s.Runtime, first, runtime.Decision{Verdict: "retry"})
			if res := wait(t, s.Runtime, first); res.Status != sentinels.StatusCompleted {
				t.Errorf("%s, %v", res.Status, res.Error)
			}
		})
	}
}
