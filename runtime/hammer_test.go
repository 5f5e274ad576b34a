package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestHammer executes many runs at once while others pause, resume and stop
// them, and closes the runtime in the middle. Every run can be resumed, comes to
// the result it has alone, and no recorded call is made again.
func TestHammer(t *testing.T) {
	want := stable(t, runToEnd(t, open(t, newFakeHost(), store.NewMemory(), runtime.Options{}), everything, runtime.StartOptions{Workspace: "/w"}))
	opt := runtime.Options{OnInterrupt: sentinels.InterruptRetry, Limits: runtime.Limits{Runs: 16, Resident: 8, Crashes: 1000}}
	w, db := newFakeHost(), store.NewMemory()
	w.delay = 100 * time.Microsecond
	rt := open(t, w, db, opt)
	def := decode(t, rt, everything)
	const runs, lives = 64, 4
	ids := make([]sentinels.RunID, runs)
	var starts sync.WaitGroup
	for i := range ids {
		starts.Go(func() {
			id, err := rt.Start(context.Background(), def, runtime.StartOptions{Workspace: "/w"})
			if err != nil {
				t.Error(err)
			}
			ids[i] = id
		})
	}
	starts.Wait()
	for life := range lives {
		steerAll(t, rt, ids, uint64(life), life == lives-1)
		if life == lives-1 {
			break
		}
		if err := rt.Close(); err != nil {
			t.Fatal(err)
		}
		recorded := map[string]bool{}
		db = db.Snapshot()
		endedCalls(t, db, recorded)
		before := w
		w = w.next()
		rt = open(t, w, db, opt)
		for _, id := range ids {
			if status(t, rt, id).Status.Final() {
				continue
			}
			if err := rt.Resume(within(t), id, runtime.ResumeOptions{}); err != nil {
				t.Errorf("life %d: %v", life, err)
			}
		}
		for key := range recorded {
			if w.count(key) > before.count(key) {
				t.Errorf("call %s has a recorded answer and was made again", key)
			}
		}
	}
	stopped := 0
	for _, id := range ids {
		res := wait(t, rt, id)
		if res.Status == sentinels.StatusStopped {
			stopped++
			continue
		}
		if diff := cmp.Diff(want, stable(t, res)); diff != "" {
			t.Errorf("run %s, %v (-want +got):\n%s", id, res.Error, diff)
		}
	}
	if stopped == 0 || stopped > runs/4 {
		t.Errorf("%d runs were stopped", stopped)
	}
}

// steerAll pauses and resumes runs at random for a while and stops a few. At the
// end nothing is paused, if all is set.
func steerAll(t *testing.T, rt *runtime.Runtime, ids []sentinels.RunID, seed uint64, all bool) {
	t.Helper()
	var storms sync.WaitGroup
	for worker := range uint64(4) {
		storms.Go(func() {
			rng := rand.New(rand.NewPCG(seed, worker))
			for range 60 {
				n := rng.IntN(len(ids))
				var err error
				switch {
				case n < 6 && rng.IntN(8) == 0:
					err = rt.Stop(context.Background(), ids[n])
				case rng.IntN(2) == 0:
					err = rt.Pause(context.Background(), ids[n], "storm")
				default:
					err = rt.Resume(context.Background(), ids[n], runtime.ResumeOptions{})
				}
				if err != nil && abi.CodeOf(err) != abi.Conflict {
					t.Errorf("run %s: %v", ids[n], err)
				}
				time.Sleep(time.Duration(rng.IntN(300)) * time.Microsecond)
			}
		})
	}
	storms.Wait()
	if !all {
		return
	}
	if err := rt.Stop(context.Background(), ids[0]); err != nil && abi.CodeOf(err) != abi.Conflict {
		t.Error(err)
	}
	for _, id := range ids {
		if err := rt.Resume(context.Background(), id, runtime.ResumeOptions{}); err != nil && abi.CodeOf(err) != abi.Conflict {
			t.Errorf("run %s: %v", id, err)
		}
	}
}

// Close releases runs without an error in their journals: what was under way
// has no end there, and what had not begun has none either.
func TestCloseLeavesNoErrors(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 3))
		w, db := newFakeHost(), store.NewMemory()
		w.delay = 100 * time.Microsecond
		rt := open(t, w, db, runtime.Options{})
		id := start(t, rt, everything, runtime.StartOptions{Workspace: "/w"})
		time.Sleep(time.Duration(rng.IntN(12_000)) * time.Microsecond)
		var waited runtime.Result
		var waiter sync.WaitGroup
		waiter.Go(func() { waited, _ = rt.Wait(context.Background(), id) })
		if err := rt.Close(); err != nil {
			t.Fatal(err)
		}
		waiter.Wait()
		if _, err := rt.Start(context.Background(), blank(t), runtime.StartOptions{}); !errors.Is(err, runtime.ErrClosed) {
			t.Errorf("a start on a closed runtime: %v", err)
		}
		if waited.Status == sentinels.StatusFailed || waited.Status == sentinels.StatusStopped {
			t.Errorf("seed %d: a close made the run %s: %v", seed, waited.Status, waited.Error)
		}
		snap := db.Snapshot()
		err := snap.Scan("runs", nil, nil, false, func(key, _ []byte) bool {
			err := snap.Journal(string(key), 1, func(seq uint64, raw []byte) error {
				rec, err := journal.Decode(raw)
				switch {
				case err != nil:
					return err
				case rec.CallEnd != nil && rec.CallEnd.Error != nil:
					return fmt.Errorf("record %d: call ended with %v", seq, rec.CallEnd.Error)
				case rec.StepEnd != nil && rec.StepEnd.Error != nil:
					return fmt.Errorf("record %d: step ended with %v", seq, rec.StepEnd.Error)
				}
				return nil
			})
			if err != nil {
				t.Errorf("seed %d, run %s: %v", seed, key, err)
			}
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		snap.Close()
	}
}

// blank is a definition that needs no runtime.
func blank(t *testing.T) *sentinels.Definition {
	t.Helper()
	return &sentinels.Definition{ID: "x", Name: "x", Loop: sentinels.Loop{Type: sentinels.LoopOnce}}
}

// A thousand runs wait with none of their guests in memory; one event wakes them
// all.
func TestThousandParkedRunsWake(t *testing.T) {
	const src = `{"name":"p","steps":[{"type":"seq","steps":[{"type":"pause","event":"go","outputTo":"e"},
		{"type":"call","command":"world/act","value":"$e.event.n","outputTo":"a"}]}],"loop":{"type":"once"}}`
	runs := 1000
	if testing.Short() {
		runs = 200
	}
	w := newFakeHost()
	rt := open(t, w, store.NewMemory(), runtime.Options{Limits: runtime.Limits{Resident: -1, Runs: 8}})
	def := decode(t, rt, src)
	ids := make([]sentinels.RunID, runs)
	for i := range ids {
		var err error
		if ids[i], err = rt.Start(context.Background(), def, runtime.StartOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "the last run to wait", func() bool {
		trace, err := rt.Trace(ids[runs-1])
		waits := 0
		if err == nil && len(trace.Iterations) == 1 {
			trace.Iterations[0].Walk(func(s *runtime.TraceStep) {
				for _, a := range s.Attempts {
					waits += len(a.Calls)
				}
			})
		}
		return waits == 2
	})
	if n := runtime.Resident(rt); n != 0 {
		t.Errorf("%d guests in memory, want none", n)
	}
	if _, err := rt.Emit(within(t), sentinels.Event{Name: "go", Data: []byte(`{"n":5}`)}); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		res := wait(t, rt, id)
		if got := variable(t, res, "a"); !strings.Contains(got, `"value":5`) {
			t.Fatalf("run %s, %s: a = %s", id, res.Status, got)
		}
	}
	if len(w.made) != runs {
		t.Errorf("%d effects, want %d", len(w.made), runs)
	}
}

// A guest whose requests depend on more than its input is found out when it is
// replayed, with both requests named.
func TestFickleGuestIsFoundOut(t *testing.T) {
	w := newFakeHost()
	w.delay = 20 * time.Millisecond // long enough to be parked
	rt := open(t, w, store.NewMemory(), runtime.Options{Limits: runtime.Limits{Resident: -1}})
	res := runToEnd(t, rt, `{"name":"f","steps":[{"type":"fickle","onError":{"retry":{"baseDelayMs":1}}}],"loop":{"type":"once"}}`, runtime.StartOptions{})
	if res.Status != sentinels.StatusFailed || res.Error == nil || res.Error.Code != abi.Plugin || !res.Error.Permanent {
		t.Fatalf("%s: %v", res.Status, res.Error)
	}
	for _, part := range []string{"plugin is not deterministic", fmt.Sprintf(`"value":%d}`, fickle-1), fmt.Sprintf(`"value":%d}`, fickle), "step 0, call 1"} {
		if !strings.Contains(res.Error.Message, part) {
			t.Errorf("%q does not say %q", res.Error.Message, part)
		}
	}
}

// TestGuestIgnoresCheckpoint runs a step that starts from the beginning although
// it was resumed from a checkpoint. The error must name the checkpoint and the
// rule, and the step's first effect must not happen twice.
func TestGuestIgnoresCheckpoint(t *testing.T) {
	w := newFakeHost()
	w.delay = 20 * time.Millisecond // long enough to be parked
	rt := open(t, w, store.NewMemory(), runtime.Options{Limits: runtime.Limits{Resident: -1}})
	res := runToEnd(t, rt, `{"name":"f","steps":[{"type":"restart","onError":{"retry":{"baseDelayMs":1}}}],"loop":{"type":"once"}}`, runtime.StartOptions{})
	if res.Status != sentinels.StatusFailed || res.Error == nil || res.Error.Code != abi.Plugin || !res.Error.Permanent {
		t.Fatalf("%s: %v", res.Status, res.Error)
	}
	for _, part := range []string{"plugin is not deterministic", "step 0, call 3", "resumed from its checkpoint, call 2"} {
		if !strings.Contains(res.Error.Message, part) {
			t.Errorf("message %q does not contain %q", res.Error.Message, part)
		}
	}
	for _, part := range []string{"sentinel_checkpoint", "sdk/ABI.md, A6.17", "sentinel plugin test"} {
		if !strings.Contains(res.Error.Hint, part) {
			t.Errorf("hint %q does not contain %q", res.Error.Hint, part)
		}
	}
	if len(w.made) != 2 {
		t.Errorf("%d effects, want the 2 of the first run of the guest", len(w.made))
	}
}
