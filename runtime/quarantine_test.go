package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// hostLives is what steps do in the lives of a host that crashes again and again.
// Effects of a sentinel in hang do not end by themselves.
type hostLives struct {
	*fakeHost
	mu    sync.Mutex
	hang  map[sentinels.ID]bool
	begun []string // "sentinel value" of each effect, in order

	restoring func(sentinels.RunID) // called while a run is restored
}

func (w *hostLives) Interrupted(ctx context.Context, run sentinels.RunID) ([]runtime.InterruptedExecution, error) {
	if w.restoring != nil {
		w.restoring(run)
	}
	return w.fakeHost.Interrupted(ctx, run)
}

func (w *hostLives) Call(ctx context.Context, c runtime.CommandCall) (json.RawMessage, error) {
	w.mu.Lock()
	hang := w.hang[c.Sentinel]
	w.begun = append(w.begun, fmt.Sprintf("%s %s", c.Sentinel, c.Params))
	w.mu.Unlock()
	if hang {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return w.fakeHost.Call(ctx, c)
}

// count returns how many effects have begun.
func (w *hostLives) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.begun)
}

// life opens a runtime with the test's step types on what a crash left.
func life(t *testing.T, db store.Store, hang ...sentinels.ID) (*runtime.Runtime, *hostLives) {
	t.Helper()
	return lifeWith(t, db, runtime.Limits{}, hang...)
}

func lifeWith(t *testing.T, db store.Store, limits runtime.Limits, hang ...sentinels.ID) (*runtime.Runtime, *hostLives) {
	t.Helper()
	w := &hostLives{fakeHost: newFakeHost(), hang: map[sentinels.ID]bool{}}
	for _, id := range hang {
		w.hang[id] = true
	}
	rt, err := runtime.OpenOn(context.Background(), db, runtime.Options{Commands: w, Models: w, Executions: w, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	if err := runtime.AddModule(rt, steps()); err != nil {
		t.Fatal(err)
	}
	return rt, w
}

// resumeAll takes over what the last life left.
func resumeAll(t *testing.T, rt *runtime.Runtime) runtime.Recovery {
	t.Helper()
	rec, err := rt.ResumeAll(within(t), runtime.ResumeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// crashed is what a crash at this moment leaves. Nothing of the process that
// crashed reaches it.
func crashed(t *testing.T, db *recordingStore, rt *runtime.Runtime) *recordingStore {
	t.Helper()
	// Lazy batches too: the next one takes them along.
	if err := db.Enqueue(store.Batch{}).Wait(within(t)); err != nil {
		t.Fatal(err)
	}
	next := db.prefix(t, db.length())
	rt.Close()
	return next
}

const retried = `{"name":%q,"steps":[{"type":"call","command":"world/act","value":1}],"safety":{"onInterrupt":"retry"},"loop":{"type":"once"}}`

// quarantined returns a run whose only step was executing at three crashes.
func quarantined(t *testing.T) (*recordingStore, sentinels.RunID) {
	t.Helper()
	db := newRecordingStore()
	rt, w := life(t, db, "bad")
	id := start(t, rt, fmt.Sprintf(retried, "bad"), runtime.StartOptions{})
	for n := 1; ; n++ {
		until(t, "the effect to begin", func() bool { return w.count() == 1 })
		db = crashed(t, db, rt)
		if n == 3 {
			return db, id
		}
		rt, w = life(t, db, "bad")
		resumeAll(t, rt)
	}
}

// A step that was executing alone at three crashes is held, not ended: the run
// asks whether it may execute again, over restarts too, and decide and resume
// lift that with a word of who and why.
func TestQuarantineIsLifted(t *testing.T) {
	const why = "the driver was updated"
	for name, lift := range map[string]func(*runtime.Runtime, sentinels.RunID, string) error{
		"decide": func(rt *runtime.Runtime, id sentinels.RunID, comment string) error {
			return rt.Decide(context.Background(), id, runtime.Decision{Verdict: "retry", By: "ann", Comment: comment})
		},
		"resume": func(rt *runtime.Runtime, id sentinels.RunID, comment string) error {
			return rt.Resume(context.Background(), id, runtime.ResumeOptions{By: "ann", Comment: comment})
		},
	} {
		t.Run(name, func(t *testing.T) {
			db, id := quarantined(t)
			for range 2 {
				rt, w := life(t, db)
				rec := resumeAll(t, rt)
				if len(rec.Quarantined) != 1 || rec.Quarantined[0].Run != id || rec.Quarantined[0].Crashes != 3 {
					t.Errorf("recovery names %+v", rec.Quarantined)
				}
				info := untilStatus(t, rt, id, sentinels.StatusQuarantined)
				if len(info.Decisions) != 1 || info.Decisions[0].Kind != runtime.DecisionQuarantine || !strings.Contains(info.Decisions[0].Prompt, "step 0 was executing at 3 crashes") {
					t.Errorf("decisions %+v", info.Decisions)
				}
				if w.count() != 0 {
					t.Error("the step executes")
				}
				db = crashed(t, db, rt)
			}
			rt, w := life(t, db)
			resumeAll(t, rt)
			untilStatus(t, rt, id, sentinels.StatusQuarantined)
			if err := lift(rt, id, " "); abi.CodeOf(err) != abi.BadFields || !strings.Contains(abi.As(err).Hint, "--comment") {
				t.Errorf("without a reason: %v", err)
			}
			if err := lift(rt, id, why); err != nil {
				t.Fatal(err)
			}
			if res := wait(t, rt, id); res.Status != sentinels.StatusCompleted || w.count() != 1 {
				t.Errorf("%s, %d effects, %v", res.Status, w.count(), res.Error)
			}
			noted := db.count(t, func(r *journal.Record) bool {
				return r.Signal != nil && r.Signal.Verdict == "retry" && r.Signal.By == "ann" && r.Signal.Comment == why
			})
			if noted != 1 {
				t.Errorf("the journal has %d notes of who lifted it and why, want 1", noted)
			}
		})
	}
}

// A decision about a run that no process executes waits in its journal. It is
// used once: three more crashes quarantine the step again.
func TestQuarantineIsLiftedOnce(t *testing.T) {
	db, id := quarantined(t)
	rt, _ := life(t, db)
	resumeAll(t, rt)
	untilStatus(t, rt, id, sentinels.StatusQuarantined)
	db = crashed(t, db, rt)
	rt, _ = life(t, db) // nothing is resumed here
	if err := rt.Decide(within(t), id, runtime.Decision{Verdict: "retry", By: "ann", Comment: "try"}); err != nil {
		t.Fatal(err)
	}
	db = crashed(t, db, rt)
	for n := 1; n <= 3; n++ {
		rt, w := life(t, db, "bad")
		if rec := resumeAll(t, rt); len(rec.Quarantined) > 0 {
			t.Fatalf("life %d after the decision: %+v", n, rec.Quarantined)
		}
		until(t, "the effect to begin", func() bool { return w.count() == 1 })
		db = crashed(t, db, rt)
	}
	rt, _ = life(t, db)
	if rec := resumeAll(t, rt); len(rec.Quarantined) != 1 {
		t.Errorf("after three more crashes: %+v", rec.Quarantined)
	}
	untilStatus(t, rt, id, sentinels.StatusQuarantined)
	if err := rt.Decide(within(t), id, runtime.Decision{Verdict: "fail", By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if res := wait(t, rt, id); res.Status != sentinels.StatusFailed || abi.CodeOf(res.Error) != abi.Interrupted || !strings.Contains(res.Error.Message, "ann") {
		t.Errorf("%s, %v; want failed, naming who decided", res.Status, res.Error)
	}
}

// Three kills with three steps under way quarantine none of them, in runs of
// their own as in branches of one: from the second on they execute in turns, so
// the third tells of one alone, and one crash alone is not enough.
func TestKillsHitNoBystander(t *testing.T) {
	three := `{"name":"s","steps":[{"type":"both","branches":[
		[{"type":"call","command":"world/act","value":1}],[{"type":"call","command":"world/act","value":2}],[{"type":"call","command":"world/act","value":3}]]}],
		"safety":{"onInterrupt":"retry"},"loop":{"type":"once"}}`
	for name, begin := range map[string]func(*testing.T, *runtime.Runtime) []sentinels.RunID{
		"three runs": func(t *testing.T, rt *runtime.Runtime) (ids []sentinels.RunID) {
			for range 3 {
				ids = append(ids, start(t, rt, fmt.Sprintf(retried, "s"), runtime.StartOptions{}))
			}
			return ids
		},
		"three branches": func(t *testing.T, rt *runtime.Runtime) []sentinels.RunID {
			return []sentinels.RunID{start(t, rt, three, runtime.StartOptions{})}
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := newRecordingStore()
			rt, w := life(t, db, "s")
			ids := begin(t, rt)
			for n := 1; n <= 3; n++ {
				want := 3
				if n == 3 {
					want = 1
				}
				until(t, "the steps to execute", func() bool { return w.count() >= want })
				time.Sleep(20 * time.Millisecond) // for one too many
				if w.count() != want {
					t.Fatalf("life %d: %d steps execute at once, want %d", n, w.count(), want)
				}
				db = crashed(t, db, rt)
				rt, w = life(t, db, "s")
				if rec := resumeAll(t, rt); len(rec.Quarantined) > 0 {
					t.Fatalf("kill %d quarantines %+v", n, rec.Quarantined)
				}
			}
			// The steps come to their end one after the other.
			db = crashed(t, db, rt)
			rt, w = life(t, db)
			resumeAll(t, rt)
			for _, id := range ids {
				if res := wait(t, rt, id); res.Status != sentinels.StatusCompleted {
					t.Errorf("run %s is %s: %v", id, res.Status, res.Error)
				}
			}
			if w.count() != 3 {
				t.Errorf("%d effects in the last life, want 3", w.count())
			}
		})
	}
}

// Of several steps that are under way at each crash the one that causes it is
// found, and no other one is quarantined.
func TestCulpritIsFound(t *testing.T) {
	db := newRecordingStore()
	rt, w := life(t, db, "good", "bad")
	ids := map[string]sentinels.RunID{}
	for _, name := range []string{"good1", "bad", "good2"} {
		ids[name] = start(t, rt, fmt.Sprintf(retried, strings.TrimRight(name, "12")), runtime.StartOptions{})
	}
	until(t, "all to execute", func() bool { return w.count() == 3 })
	for n := 1; ; n++ {
		db = crashed(t, db, rt)
		hang := []sentinels.ID{"bad"}
		if n < 2 { // the second crash finds all three under way again
			hang = append(hang, "good")
		}
		rt, w = life(t, db, hang...)
		if rec := resumeAll(t, rt); len(rec.Quarantined) > 0 {
			if len(rec.Quarantined) != 1 || rec.Quarantined[0].Run != ids["bad"] || n != 4 {
				t.Errorf("crash %d quarantines %+v, want the fourth to quarantine %s", n, rec.Quarantined, ids["bad"])
			}
			break
		}
		if n > 6 {
			t.Fatal("it is never found")
		}
		if n < 2 {
			until(t, "all to execute", func() bool { return w.count() == 3 })
			continue
		}
		// The host goes down whenever the bad step executes, and not before.
		until(t, "the bad step to execute", func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return len(w.begun) > 0 && strings.HasPrefix(w.begun[len(w.begun)-1], "bad")
		})
	}
	for _, name := range []string{"good1", "good2"} {
		if res := wait(t, rt, ids[name]); res.Status != sentinels.StatusCompleted {
			t.Errorf("%s is %s: %v", name, res.Status, res.Error)
		}
	}
	untilStatus(t, rt, ids["bad"], sentinels.StatusQuarantined)
}

// A suspected step that waits, here for a person, gives its turn to the next one
// and is not blamed for what that one does.
func TestTurnIsGivenWhileWaiting(t *testing.T) {
	const asks = `{"name":"asks","steps":[{"type":"actask"}],"safety":{"onInterrupt":"retry"},"loop":{"type":"once"}}`
	db := newRecordingStore()
	rt, w := askingLife(t, db, "asks", "bad")
	second := start(t, rt, fmt.Sprintf(retried, "bad"), runtime.StartOptions{})
	until(t, "one to execute", func() bool { return w.count() == 1 })
	db = crashed(t, db, rt)
	rt, w = askingLife(t, db, "asks", "bad")
	resumeAll(t, rt)
	first := start(t, rt, asks, runtime.StartOptions{})
	for n := range 4 {
		until(t, "both to execute", func() bool { return w.count() == 2 })
		db = crashed(t, db, rt)
		if n < 3 {
			rt, w = askingLife(t, db, "asks", "bad")
			resumeAll(t, rt)
		}
	}
	// Both are suspected now, at 4 and 5 crashes of 5. In this life the first one
	// has its turn first, and comes to its question.
	rt, _ = askingLife(t, db, "bad")
	resumeAll(t, rt)
	untilStatus(t, rt, first, sentinels.StatusWaiting)
	until(t, "the second to have its turn", func() bool { return status(t, rt, second).Turn == "0" })
	before := status(t, rt, first).Crashes
	if status(t, rt, first).Turn != "" {
		t.Error("the first one has its turn while it waits")
	}
	db = crashed(t, db, rt)
	rt, _ = askingLife(t, db, "bad")
	resumeAll(t, rt)
	if diff := cmp.Diff(before, status(t, rt, first).Crashes); diff != "" {
		t.Errorf("the crash counts against the step that waited (-before +after):\n%s", diff)
	}
	untilStatus(t, rt, first, sentinels.StatusWaiting)
	decide(t, rt, first, runtime.Decision{Verdict: "approve", By: "ann"})
	if res := wait(t, rt, first); res.Status != sentinels.StatusCompleted {
		t.Errorf("%s: %v", res.Status, res.Error)
	}
}

// A run whose step waits for its turn can be paused, resumed and stopped, and
// lets the next one have the turn.
func TestSteerWhileWaitingForATurn(t *testing.T) {
	db := newRecordingStore()
	rt, w := life(t, db, "s")
	var ids []sentinels.RunID
	for range 3 {
		ids = append(ids, start(t, rt, fmt.Sprintf(retried, "s"), runtime.StartOptions{}))
	}
	for range 2 {
		until(t, "all to execute", func() bool { return w.count() == 3 })
		db = crashed(t, db, rt)
		rt, w = life(t, db, "s")
		resumeAll(t, rt)
	}
	var holder sentinels.RunID
	until(t, "one to have its turn", func() bool {
		for _, id := range ids {
			if status(t, rt, id).Turn != "" {
				holder = id
			}
		}
		return holder != "" && w.count() == 1
	})
	var waiting []sentinels.RunID
	for _, id := range ids {
		if id != holder {
			waiting = append(waiting, id)
		}
	}
	if err := rt.Stop(within(t), waiting[0]); err != nil {
		t.Fatalf("stop one that waits: %v", err)
	}
	if err := rt.Pause(within(t), waiting[1], "ann"); err != nil {
		t.Fatal(err)
	}
	if err := rt.Stop(within(t), holder); err != nil {
		t.Fatalf("stop the one that executes: %v", err)
	}
	time.Sleep(20 * time.Millisecond)
	if w.count() != 1 || status(t, rt, waiting[1]).Turn != "" {
		t.Error("a paused run takes its turn")
	}
	if err := rt.Resume(within(t), waiting[1], runtime.ResumeOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the last one to have its turn", func() bool { return w.count() == 2 })
}

// askingLife is life with a step type that makes an effect and then asks a
// person.
func askingLife(t *testing.T, db store.Store, hang ...sentinels.ID) (*runtime.Runtime, *hostLives) {
	t.Helper()
	rt, w := lifeWith(t, db, runtime.Limits{Crashes: 5}, hang...)
	err := runtime.AddModule(rt, &runtime.GoModule{
		Name: "asking", Types: []wasm.StepType{{Type: "actask", Fields: json.RawMessage(`{"type":"object"}`)}},
		Step: func(g *runtime.GoGuest) (any, error) {
			if a := g.Call(abi.FuncCommand, map[string]any{"command": "world/act", "params": map[string]any{"value": 1}}); a.Error != nil {
				return nil, a.Error
			}
			a := g.Call(abi.FuncWait, map[string]any{"decision": map[string]any{"prompt": "well?"}})
			if a.Error != nil {
				return nil, a.Error
			}
			return a.OK, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return rt, w
}

// TestQuarantineOutlivesPause: a quarantined run that is paused and resumed, also without a
// reason, is quarantined as before, and its question stays among what it asks, in the next process too.
func TestQuarantineOutlivesPause(t *testing.T) {
	db, id := quarantined(t)
	rt, w := life(t, db)
	resumeAll(t, rt)
	// The question comes behind the status.
	asks := func() {
		t.Helper()
		untilStatus(t, rt, id, sentinels.StatusQuarantined)
		until(t, "the run to ask", func() bool { return len(status(t, rt, id).Decisions) == 1 })
	}
	asks()
	for _, tree := range []bool{false, true} {
		if err := rt.PauseWith(within(t), id, runtime.PauseOptions{By: "agent:ci", Tree: tree}); err != nil {
			t.Fatal(err)
		}
		info := untilStatus(t, rt, id, sentinels.StatusPaused)
		if len(info.Decisions) != 1 || info.Decisions[0].Kind != runtime.DecisionQuarantine {
			t.Errorf("paused, it asks %+v", info.Decisions)
		}
		if err := rt.Resume(within(t), id, runtime.ResumeOptions{By: "agent:ci", Tree: tree}); err != nil {
			t.Fatal(err)
		}
		asks()
	}
	if err := rt.Pause(within(t), id, "agent:ci"); err != nil {
		t.Fatal(err)
	}
	again, restored := life(t, crashed(t, db, rt))
	resumeAll(t, again)
	if info := status(t, again, id); info.Status != sentinels.StatusPaused || len(info.Decisions) != 1 || info.Decisions[0].Kind != runtime.DecisionQuarantine {
		t.Errorf("paused in the next process, it is %s and asks %+v", info.Status, info.Decisions)
	}
	if w.count() != 0 || restored.count() != 0 {
		t.Error("the step executes")
	}
}
