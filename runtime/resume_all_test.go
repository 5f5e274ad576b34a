package runtime_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A process that starts takes over all that the last one left, each run as it
// was: those that can be. What cannot is named and stays as it is.
func TestResumeAll(t *testing.T) {
	db := newRecordingStore()
	w := newFakeHost()
	rt := open(t, w, db, runtime.Options{})
	event := start(t, rt, fmt.Sprintf(awaiting, "event"), runtime.StartOptions{})
	paused := start(t, rt, fmt.Sprintf(awaiting, "paused"), runtime.StartOptions{})
	until(t, "two to wait", func() bool { return rt.Probe().Waiting() == 2 })
	if err := rt.Pause(within(t), paused, "ann"); err != nil {
		t.Fatal(err)
	}
	person := start(t, rt, `{"name":"person","steps":[{"type":"pause","decision":{"prompt":"go on?"}}],"loop":{"type":"once"}}`, runtime.StartOptions{})
	untilStatus(t, rt, person, sentinels.StatusWaiting)
	top := start(t, rt, family, runtime.StartOptions{})
	until(t, "the family", func() bool {
		all := familyRuns(t, rt)
		return all["low"].ID != "" && all["mid"].Status == sentinels.StatusCompleted
	})
	low := familyRuns(t, rt)["low"].ID
	lost := start(t, rt, strings.ReplaceAll(family, `"name":"`, `"name":"lost-`), runtime.StartOptions{})
	until(t, "the other family", func() bool {
		all := familyRuns(t, rt)
		return all["lost-low"].ID != "" && all["lost-mid"].Status == sentinels.StatusCompleted
	})
	below := familyRuns(t, rt)["lost-low"].ID
	unread := start(t, rt, fmt.Sprintf(awaiting, "unread"), runtime.StartOptions{})
	over := start(t, rt, oneAct, runtime.StartOptions{})
	wait(t, rt, over)
	effects := db.count(t, hasCall("world/act"))
	w.delay = time.Hour // the effect is under way when the process ends
	doubt := start(t, rt, strings.ReplaceAll(oneAct, `"name":"d"`, `"name":"doubt"`), runtime.StartOptions{})
	until(t, "all to wait", func() bool { return rt.Probe().Waiting() >= 8 })
	until(t, "the effect to begin", func() bool { return db.count(t, hasCall("world/act")) > effects })
	if err := db.Enqueue(store.Batch{}).Wait(within(t)); err != nil { // records without a waiter too
		t.Fatal(err)
	}
	snap := db.Snapshot()
	rt.Close()
	damage := store.Batch{
		Trims: []store.Trim{{Run: string(lost), To: store.All}},
		Puts:  []store.Put{{Bucket: "runs", Key: []byte(unread), Value: []byte("{")}},
	}
	if err := snap.Enqueue(damage).Wait(context.Background()); err != nil {
		t.Fatal(err)
	}

	rt = open(t, newFakeHost(), snap, runtime.Options{})
	rec, err := rt.ResumeAll(within(t), runtime.ResumeOptions{By: "boot"})
	if err != nil {
		t.Fatal(err)
	}
	if rec.Resumed != 6 || rec.Paused != 1 || rec.Waiting != 1 {
		t.Errorf("%d resumed, %d paused, %d waiting; want 6, 1, 1", rec.Resumed, rec.Paused, rec.Waiting)
	}
	wantDoubt := []runtime.Doubt{{Run: doubt, Sentinel: "doubt", Call: "0!1", Step: "0", What: "command world/act", Choice: "ask"}}
	if diff := cmp.Diff(wantDoubt, rec.InDoubt); diff != "" {
		t.Error(diff)
	}
	failed := map[sentinels.RunID]abi.Code{}
	for _, f := range rec.Failed {
		failed[f.Run] = f.Error.Code
	}
	if diff := cmp.Diff(map[sentinels.RunID]abi.Code{lost: abi.NotFound, below: abi.Conflict, unread: abi.Internal}, failed); diff != "" {
		t.Errorf("failed (-want +got):\n%s", diff)
	}
	for _, id := range []sentinels.RunID{event, person, top, low, doubt, paused} {
		if !status(t, rt, id).Live {
			t.Errorf("run %s of %s is not executed", id, status(t, rt, id).Sentinel)
		}
	}
	if got := status(t, rt, paused).Status; got != sentinels.StatusPaused {
		t.Errorf("the paused run is %s", got)
	}
	untilStatus(t, rt, person, sentinels.StatusWaiting)
	untilStatus(t, rt, doubt, sentinels.StatusWaiting)
	if again, err := rt.ResumeAll(within(t), runtime.ResumeOptions{}); err != nil || again.Resumed != 0 || len(again.Failed) != len(rec.Failed) {
		t.Errorf("again: %+v, %v; want nothing but the failures", again, err)
	}

	// Each goes on as it would have.
	if _, err := rt.Emit(within(t), sentinels.Event{Name: "go"}); err != nil {
		t.Fatal(err)
	}
	decide(t, rt, person, runtime.Decision{Verdict: "approve", By: "ann"})
	decide(t, rt, doubt, runtime.Decision{Verdict: "skip", By: "ann"})
	for _, id := range []sentinels.RunID{event, person, low, doubt} {
		if res := wait(t, rt, id); res.Status != sentinels.StatusCompleted {
			t.Errorf("run %s of %s: %s, %v", id, res.Sentinel, res.Status, res.Error)
		}
	}
	if err := rt.Resume(within(t), paused, runtime.ResumeOptions{}); err != nil {
		t.Fatal(err)
	}
	if res := wait(t, rt, paused); res.Status != sentinels.StatusCompleted {
		t.Errorf("the paused run: %s, %v", res.Status, res.Error)
	}
}

// A run that is held because its step was executing at too many crashes is
// named, and the others are taken over all the same.
func TestResumeAllNamesTheQuarantined(t *testing.T) {
	src := strings.ReplaceAll(oneAct, `"loop"`, `"safety":{"onInterrupt":"retry"},"loop"`)
	db, id := cutOff(t, src, "world/act", runtime.StartOptions{})
	for crash := 1; ; crash++ {
		w := newFakeHost()
		w.delay = time.Hour
		rt := open(t, w, db, runtime.Options{})
		rec, err := rt.ResumeAll(within(t), runtime.ResumeOptions{})
		if err != nil || rec.Resumed != 1 {
			t.Fatalf("crash %d: %+v, %v", crash, rec, err)
		}
		if crash == 3 {
			want := []runtime.Quarantine{{Run: id, Sentinel: "d", Step: "0", Crashes: 3}}
			if diff := cmp.Diff(want, rec.Quarantined); diff != "" {
				t.Error(diff)
			}
			untilStatus(t, rt, id, sentinels.StatusQuarantined)
			return
		}
		if len(rec.Quarantined) != 0 {
			t.Fatalf("crash %d: %+v", crash, rec.Quarantined)
		}
		until(t, "the step to be tried again", func() bool { return db.count(t, hasCall("world/act")) == crash+1 })
		db = db.prefix(t, db.length())
		rt.Close()
	}
}

// Interrupted is asked once for all runs, where the host can say it at once.
func TestResumeAllAsksOnceForProcesses(t *testing.T) {
	db := store.NewMemory()
	rt := open(t, newFakeHost(), db, runtime.Options{})
	var want []sentinels.RunID
	for range 5 {
		want = append(want, start(t, rt, fmt.Sprintf(awaiting, "w"), runtime.StartOptions{}))
	}
	until(t, "all to wait", func() bool { return rt.Probe().Waiting() == 5 })
	rt.Close()
	w := &bulkHost{fakeHost: newFakeHost(), cut: map[sentinels.RunID][]runtime.InterruptedExecution{want[2]: {{Execution: "x9", Path: "0"}}}}
	rt, err := runtime.OpenOn(context.Background(), db.Snapshot(), runtime.Options{Commands: w, Executions: w})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	if err := runtime.AddModule(rt, steps()); err != nil {
		t.Fatal(err)
	}
	rec, err := rt.ResumeAll(within(t), runtime.ResumeOptions{})
	if err != nil || rec.Resumed != 5 || w.asked != 1 {
		t.Fatalf("%+v, asked %d times, %v", rec, w.asked, err)
	}
	if len(rec.InDoubt) != 1 || rec.InDoubt[0].Run != want[2] || rec.InDoubt[0].What != "background process x9" {
		t.Errorf("in doubt: %+v", rec.InDoubt)
	}
	got := ids(t, rt, runtime.RunFilter{})
	slices.Reverse(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A process whose starting call has no recorded end is not counted beside that call. One that an earlier call of the same
// step has started is.
func TestResumeAllCountsCallWithItsProcessOnce(t *testing.T) {
	f := newRecordingStore()
	rt := open(t, newFakeHost(), f, runtime.Options{})
	id := start(t, rt, `{"name":"d","steps":[{"type":"call","command":"world/spawn","value":1,"outputTo":"x"}],"loop":{"type":"count","max":2}}`, runtime.StartOptions{})
	wait(t, rt, id)
	rt.Close()
	w := newFakeHost()
	w.cut = []runtime.InterruptedExecution{{Execution: "x1", Path: "0"}, {Execution: "x9", Path: "0"}}
	rt = open(t, w, f.prefix(t, f.after(t, 2, hasCall("world/spawn"))), runtime.Options{})
	rec, err := rt.ResumeAll(within(t), runtime.ResumeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := []runtime.Doubt{
		{Run: id, Sentinel: "d", Call: "0!1", Step: "0", What: "command world/spawn", Choice: "ask"},
		{Run: id, Sentinel: "d", Call: "0!x1", Step: "0", What: "background process x1", Choice: "ask"},
	}
	if diff := cmp.Diff(want, rec.InDoubt); diff != "" {
		t.Error(diff)
	}
	for _, call := range []string{"0!x1", "0!1"} { // each is asked about, and nothing else
		until(t, "the question about "+call, func() bool {
			asked := status(t, rt, id).Decisions
			return len(asked) == 1 && asked[0].Call == call
		})
		decide(t, rt, id, runtime.Decision{Call: call, Verdict: "skip"})
	}
	if res := wait(t, rt, id); res.Status != sentinels.StatusCompleted {
		t.Errorf("%s, %v", res.Status, res.Error)
	}
}

type bulkHost struct {
	*fakeHost
	cut   map[sentinels.RunID][]runtime.InterruptedExecution
	asked int
}

func (w *bulkHost) InterruptedRuns(context.Context) (map[sentinels.RunID][]runtime.InterruptedExecution, error) {
	w.asked++
	return w.cut, nil
}

func (w *bulkHost) Interrupted(context.Context, sentinels.RunID) ([]runtime.InterruptedExecution, error) {
	panic("asked for one run")
}
