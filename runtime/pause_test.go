package runtime_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A tree is paused and resumed as one: in one process, by another process than the
// one that executes it, and over a restart. What was paused for itself
// stays so.
func TestPauseOfATree(t *testing.T) {
	type step func(t *testing.T, rt *runtime.Runtime, id sentinels.RunID) *runtime.Runtime
	pauseTree := func(t *testing.T, rt *runtime.Runtime, id sentinels.RunID) *runtime.Runtime {
		if err := rt.PauseWith(within(t), id, runtime.PauseOptions{By: "ann", Tree: true}); err != nil {
			t.Fatal(err)
		}
		return rt
	}
	resumeTree := func(t *testing.T, rt *runtime.Runtime, id sentinels.RunID) *runtime.Runtime {
		if err := rt.Resume(within(t), id, runtime.ResumeOptions{Tree: true}); err != nil {
			t.Fatal(err)
		}
		return rt
	}
	resumeOne := func(t *testing.T, rt *runtime.Runtime, id sentinels.RunID) *runtime.Runtime {
		if err := rt.Resume(within(t), id, runtime.ResumeOptions{}); err != nil {
			t.Fatal(err)
		}
		return rt
	}
	pauseLow := func(t *testing.T, rt *runtime.Runtime, _ sentinels.RunID) *runtime.Runtime {
		if err := rt.Pause(within(t), familyRuns(t, rt)["low"].ID, "bob"); err != nil {
			t.Fatal(err)
		}
		return rt
	}
	var db *recordingStore
	restart := func(t *testing.T, rt *runtime.Runtime, _ sentinels.RunID) *runtime.Runtime {
		rt.Close()
		db = db.prefix(t, db.length())
		return open(t, newFakeHost(), db, runtime.Options{})
	}
	takeAll := func(t *testing.T, rt *runtime.Runtime, _ sentinels.RunID) *runtime.Runtime {
		if rec, err := rt.ResumeAll(within(t), runtime.ResumeOptions{}); err != nil || rec.Resumed != 2 {
			t.Fatalf("%+v, %v", rec, err)
		}
		return rt
	}
	const running, paused = sentinels.StatusRunning, sentinels.StatusPaused
	tests := map[string]struct {
		steps    []step
		top, low sentinels.Status
	}{
		"live":                              {[]step{pauseTree}, paused, paused},
		"live, resumed":                     {[]step{pauseTree, resumeTree}, running, running},
		"live, the upper one resumed":       {[]step{pauseTree, resumeOne}, running, paused},
		"paused for itself before":          {[]step{pauseLow, pauseTree, resumeTree}, running, paused},
		"stored":                            {[]step{restart, pauseTree}, paused, paused},
		"stored, taken over":                {[]step{restart, pauseTree, takeAll}, paused, paused},
		"stored, taken over, resumed":       {[]step{restart, pauseTree, takeAll, resumeTree}, running, running},
		"over a restart":                    {[]step{pauseTree, restart, takeAll, resumeTree}, running, running},
		"over a restart, resumed at once":   {[]step{pauseTree, restart, resumeTree}, running, running},
		"over a restart, paused for itself": {[]step{pauseLow, restart, pauseTree, restart, takeAll, restart, resumeTree}, running, paused},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			db = newRecordingStore()
			rt := open(t, newFakeHost(), db, runtime.Options{})
			id := startFamily(t, rt, db)
			for _, do := range tt.steps {
				rt = do(t, rt, id)
			}
			all := familyRuns(t, rt)
			if all["top"].Status != tt.top || all["low"].Status != tt.low {
				t.Fatalf("top is %s, low is %s; want %s and %s", all["top"].Status, all["low"].Status, tt.top, tt.low)
			}
			if !all["top"].Live {
				return
			}
			if _, err := rt.Emit(within(t), sentinels.Event{Name: "go"}); err != nil {
				t.Fatal(err)
			}
			if tt.low == running {
				if res := wait(t, rt, all["low"].ID); res.Status != sentinels.StatusCompleted {
					t.Errorf("low: %s, %v", res.Status, res.Error)
				}
				return
			}
			time.Sleep(20 * time.Millisecond)
			if db.has(t, hasCall("world/act")) {
				t.Error("a paused run went on")
			}
		})
	}
}

// A step that was under way when its tree was paused may still start a child.
// That one is paused with the others.
func TestChildOfAPausedTreeStartsPaused(t *testing.T) {
	w := newFakeHost()
	w.delay = 500 * time.Millisecond // the pause comes within it on busy machines too
	db := newRecordingStore()
	rt := open(t, w, db, runtime.Options{})
	top := start(t, rt, fmt.Sprintf(`{"name":"top","steps":[{"type":"late","definition":%s},{"type":"call","command":"world/act","value":2}],"loop":{"type":"once"}}`, oneAct), runtime.StartOptions{})
	until(t, "the effect to begin", func() bool { return db.has(t, hasCall("world/act")) })
	if err := rt.PauseWith(within(t), top, runtime.PauseOptions{By: "ann", Tree: true}); err != nil {
		t.Fatal(err)
	}
	until(t, "the child", func() bool { return familyRuns(t, rt)["d"].ID != "" })
	kid := untilStatus(t, rt, familyRuns(t, rt)["d"].ID, sentinels.StatusPaused)
	if kid.PausedWith != top {
		t.Errorf("paused with %q, want %s", kid.PausedWith, top)
	}
	time.Sleep(50 * time.Millisecond)
	if n := db.count(t, hasCall("world/act")); n != 1 {
		t.Errorf("%d effects while paused, want the one under way", n)
	}
	if err := rt.Resume(within(t), top, runtime.ResumeOptions{Tree: true}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []sentinels.RunID{top, kid.ID} {
		if res := wait(t, rt, id); res.Status != sentinels.StatusCompleted {
			t.Errorf("%s: %s, %v", res.Sentinel, res.Status, res.Error)
		}
	}
}

// A stop ends everything at once: children that wait, that are queued for a
// place, and those that a step starts in the same moment.
func TestStopOfABusyTree(t *testing.T) {
	w := newFakeHost()
	w.delay = time.Millisecond
	rt := open(t, w, store.NewMemory(), runtime.Options{Limits: runtime.Limits{Runs: 2}})
	const kid = `{"type":"child","await":false,"definition":{"name":"kid%d","steps":[%s{"type":"call","command":"world/act","value":1}],"loop":{"type":"continuous"},"safety":{"maxIterations":100000}}}`
	src := `{"name":"top","steps":[`
	for i := range 12 {
		src += fmt.Sprintf(kid, i, fmt.Sprintf(`{"type":"child","await":false,"definition":{"name":"low%d","steps":[{"type":"pause","event":"go"}],"loop":{"type":"once"}}},`, i)) + ","
	}
	src += `{"type":"pause","event":"never"}],"loop":{"type":"once"}}`
	top := start(t, rt, src, runtime.StartOptions{})
	until(t, "a few to start", func() bool { return len(ids(t, rt, runtime.RunFilter{})) > 10 })
	if err := rt.Stop(within(t), top); err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	made := len(w.order)
	w.mu.Unlock()
	runs, err := rt.Runs(runtime.RunFilter{Statuses: runtime.Unfinished()})
	if err != nil || len(runs) != 0 {
		t.Errorf("%d runs go on, %v: %+v", len(runs), err, runs)
	}
	n := len(ids(t, rt, runtime.RunFilter{}))
	time.Sleep(20 * time.Millisecond)
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.order) != made || len(ids(t, rt, runtime.RunFilter{})) != n {
		t.Errorf("%d effects and %d runs came after the stop", len(w.order)-made, len(ids(t, rt, runtime.RunFilter{}))-n)
	}
	if w.ended < n {
		t.Errorf("the processes of %d of %d runs were ended", w.ended, n)
	}
}

// A pause that comes while the run is resumed does not leave a run that is paused
// and executes.
func TestPauseDuringResume(t *testing.T) {
	w := newFakeHost()
	rt := open(t, w, newRecordingStore(), runtime.Options{})
	id := start(t, rt, `{"name":"s","steps":[{"type":"call","command":"world/act","value":1}],"loop":{"type":"while","check":"true"},"safety":{"maxIterations":100000000}}`, runtime.StartOptions{})
	for range 50 {
		if err := rt.Pause(within(t), id, "ann"); err != nil {
			t.Fatal(err)
		}
		var pausing sync.WaitGroup
		var resumed atomic.Bool
		for range 4 {
			pausing.Go(func() {
				for !resumed.Load() {
					rt.Pause(context.Background(), id, "ann")
				}
			})
		}
		rt.Resume(context.Background(), id, runtime.ResumeOptions{})
		resumed.Store(true)
		pausing.Wait()
		if status(t, rt, id).Status != sentinels.StatusPaused {
			continue
		}
		before := status(t, rt, id).Iteration
		time.Sleep(5 * time.Millisecond) // for iterations too many
		if after := status(t, rt, id).Iteration; after > before+1 {
			t.Fatalf("a paused run went from iteration %d to %d", before, after)
		}
	}
}
