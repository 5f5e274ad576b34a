package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// within bounds what should take far less.
func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func start(t testing.TB, rt *runtime.Runtime, src string, opt runtime.StartOptions) sentinels.RunID {
	t.Helper()
	id, err := rt.Start(within(t), decode(t, rt, src), opt)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func wait(t testing.TB, rt *runtime.Runtime, id sentinels.RunID) runtime.Result {
	t.Helper()
	res, err := rt.Wait(within(t), id)
	if err != nil {
		info, _ := rt.Status(id)
		t.Fatalf("wait for run %s, %s %s with decisions %v: %v", id, info.Status, info.Reason, info.Decisions, err)
	}
	return res
}

// until waits for a condition that other goroutines bring about.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(200 * time.Microsecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never came: %s", what)
		}
	}
}

func status(t testing.TB, rt *runtime.Runtime, id sentinels.RunID) runtime.RunInfo {
	t.Helper()
	info, err := rt.Status(id)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func untilStatus(t testing.TB, rt *runtime.Runtime, id sentinels.RunID, want sentinels.Status) runtime.RunInfo {
	t.Helper()
	until(t, fmt.Sprintf("status %s of run %s", want, id), func() bool { return status(t, rt, id).Status == want })
	return status(t, rt, id)
}

// reopen is the next process on db, in w; it continues the run.
func reopen(t testing.TB, w *fakeHost, db store.Store, id sentinels.RunID, opt runtime.Options, how runtime.ResumeOptions) *runtime.Runtime {
	t.Helper()
	rt := open(t, w, db, opt)
	if err := rt.Resume(within(t), id, how); err != nil {
		t.Fatal(err)
	}
	return rt
}

// TestCrashAtEveryRecord goes on from every state that a crash can leave. The
// result is always that of a run without one.
func TestCrashAtEveryRecord(t *testing.T) {
	opt := runtime.Options{OnInterrupt: sentinels.InterruptRetry, Limits: runtime.Limits{Crashes: 1000}}
	f := newRecordingStore()
	rt := open(t, newFakeHost(), f, opt)
	id := start(t, rt, everything, runtime.StartOptions{Workspace: "/w"})
	want := stable(t, wait(t, rt, id))
	rt.Close()
	step := 1
	if testing.Short() {
		step = 7
	}
	for n := f.after(t, 1, kind(journal.RunStart)); n < f.length(); n += step {
		db := f.prefix(t, n)
		done := endedCalls(t, db, map[string]bool{})
		w := newFakeHost()
		rt := open(t, w, db, opt)
		if !status(t, rt, id).Status.Final() {
			if err := rt.Resume(within(t), id, runtime.ResumeOptions{}); err != nil {
				t.Fatalf("crash behind batch %d: %v", n, err)
			}
		}
		got := stable(t, wait(t, rt, id))
		rt.Close()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("crash behind batch %d (-want +got):\n%s", n, diff)
		}
		for _, key := range done {
			if w.count(key) != 0 {
				t.Errorf("crash behind batch %d: call %s has a recorded answer and was made again", n, key)
			}
		}
	}
}

// A crash between the end of an until loop and the end of its run does not cost
// another iteration.
func TestUntilLoopThatIsDoneStaysDone(t *testing.T) {
	const src = `{"name":"u","steps":[{"type":"call","command":"world/act","value":1,"outputTo":"a"}],
		"loop":{"type":"until","check":"$a.value === 1"},"safety":{"maxIterations":9}}`
	f := newRecordingStore()
	rt := open(t, newFakeHost(), f, runtime.Options{})
	id := start(t, rt, src, runtime.StartOptions{})
	wait(t, rt, id)
	rt.Close()
	w := newFakeHost()
	rt = reopen(t, w, f.prefix(t, f.after(t, 1, kind(journal.IterationEnd))), id, runtime.Options{}, runtime.ResumeOptions{})
	if res := wait(t, rt, id); res.Status != sentinels.StatusCompleted || res.Iterations != 1 || len(w.made) != 0 {
		t.Errorf("%s after %d iterations, %d effects; want completed after 1, none", res.Status, res.Iterations, len(w.made))
	}
}

// An event that a pass answered is not answered again after a crash, whatever
// pattern it was waited for by.
func TestEventIsAnsweredOnceOverACrash(t *testing.T) {
	const src = `{"name":"e","steps":[{"type":"call","command":"world/act","value":"$event.n","outputTo":"a"}],
		"loop":{"type":"event","event":"git:*"},"safety":{"maxIterations":2}}`
	f := newRecordingStore()
	rt := open(t, newFakeHost(), f, runtime.Options{OnInterrupt: sentinels.InterruptRetry})
	id := start(t, rt, src, runtime.StartOptions{})
	for n := 1; n <= 2; n++ {
		if _, err := rt.Emit(within(t), sentinels.Event{Name: "git:push", Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))}); err != nil {
			t.Fatal(err)
		}
	}
	if res := wait(t, rt, id); res.Reason != "maxIterations" || res.Status != sentinels.StatusCompleted {
		t.Fatalf("%s, limit %q; want completed at maxIterations", res.Status, res.Reason)
	}
	rt.Close()
	for n := f.after(t, 1, kind(journal.IterationStart)); n < f.after(t, 1, kind(journal.RunEnd)); n++ {
		db := f.prefix(t, n)
		rt := reopen(t, newFakeHost(), db, id, runtime.Options{OnInterrupt: sentinels.InterruptRetry}, runtime.ResumeOptions{})
		if events, _ := rt.Events("git:push", 9); len(events) < 2 {
			if _, err := rt.Emit(within(t), sentinels.Event{Name: "git:push", Data: json.RawMessage(`{"n":2}`)}); err != nil {
				t.Fatal(err)
			}
		}
		res := wait(t, rt, id)
		var a struct{ Value int }
		if err := json.Unmarshal(res.Variables["a"], &a); err != nil || a.Value != 2 {
			t.Errorf("crash behind batch %d: the second pass answered event %d, want 2 (%v)", n, a.Value, err)
		}
		rt.Close()
	}
}

// LimitExtension that a resume gave outlives the snapshots that come behind it, and a
// crash right after it was given.
func TestLimitExtensionOutlivesACrash(t *testing.T) {
	const src = `{"name":"r","steps":[{"type":"call","command":"world/act","value":1}],
		"loop":{"type":"while","check":"true"},"safety":{"maxIterations":1,"onTimeout":"pause"}}`
	f := newRecordingStore()
	rt := open(t, newFakeHost(), f, runtime.Options{})
	id := start(t, rt, src, runtime.StartOptions{})
	info := untilStatus(t, rt, id, sentinels.StatusPaused)
	if info.Limit != "maxIterations" {
		t.Fatalf("paused at limit %q", info.Limit)
	}
	if err := rt.Resume(within(t), id, runtime.ResumeOptions{}); err == nil {
		t.Fatal("resumed without more room")
	}
	if err := rt.Resume(within(t), id, runtime.ResumeOptions{Extension: runtime.LimitExtension{Iterations: 3}}); err != nil {
		t.Fatal(err)
	}
	until(t, "the fourth pass", func() bool { return status(t, rt, id).Iteration == 4 })
	untilStatus(t, rt, id, sentinels.StatusPaused)
	rt.Close()

	db := f.prefix(t, f.after(t, 3, kind(journal.IterationEnd)))
	rt = reopen(t, newFakeHost(), db, id, runtime.Options{}, runtime.ResumeOptions{})
	until(t, "the fourth pass after a crash", func() bool { return status(t, rt, id).Iteration == 4 })
	untilStatus(t, rt, id, sentinels.StatusPaused)
	rt.Close()

	// LimitExtension given by the resume that takes the run over.
	paused := f.prefix(t, f.after(t, 1, func(r *journal.Record) bool { return r.Kind == journal.Status && r.Status.Limit != "" }))
	rt = reopen(t, newFakeHost(), paused, id, runtime.Options{}, runtime.ResumeOptions{Extension: runtime.LimitExtension{Iterations: 2}})
	until(t, "the third pass", func() bool { return status(t, rt, id).Iteration == 3 })
	untilStatus(t, rt, id, sentinels.StatusPaused)
	rt.Close()
	again := paused.prefix(t, paused.after(t, 2, kind(journal.IterationEnd)))
	rt = reopen(t, newFakeHost(), again, id, runtime.Options{}, runtime.ResumeOptions{})
	until(t, "the third pass after a crash", func() bool { return status(t, rt, id).Iteration == 3 })
}

// The interval of a continuous loop is calendar time: a crash in it does not
// restart it.
func TestIntervalGoesOnOverACrash(t *testing.T) {
	const src = `{"name":"c","steps":[{"type":"call","command":"world/act","value":1}],
		"loop":{"type":"continuous","intervalMs":600000},"safety":{"maxIterations":2}}`
	f := newRecordingStore()
	rt := open(t, newFakeHost(), f, runtime.Options{})
	id := start(t, rt, src, runtime.StartOptions{})
	until(t, "the first pass", func() bool { return f.length() >= 1 && ended(t, rt, id, 1) })
	rt.Close()
	db := f.prefix(t, f.after(t, 1, kind(journal.IterationEnd)))
	if err := runtime.ShiftJournal(db, string(id), -time.Hour); err != nil {
		t.Fatal(err)
	}
	rt = reopen(t, newFakeHost(), db.Memory, id, runtime.Options{}, runtime.ResumeOptions{})
	if res := wait(t, rt, id); res.Iterations != 2 || res.Reason != "maxIterations" {
		t.Errorf("%d iterations, limit %q; want 2 at maxIterations", res.Iterations, res.Reason)
	}
}

// ended reports whether iteration n is over, as the journal has it.
func ended(t testing.TB, rt *runtime.Runtime, id sentinels.RunID, n int) bool {
	t.Helper()
	trace, err := rt.Trace(id)
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range trace.Iterations {
		if it.Number == n && it.Done {
			return true
		}
	}
	return false
}

// TestRecoveryNeedsTheRecordsOfAnIteration: a run whose first iteration has lost
// records is not resumed: it would execute steps again that have ended.
func TestRecoveryNeedsTheRecordsOfAnIteration(t *testing.T) {
	db, id := crashIn(t, `{"name":"l","steps":[{"type":"pause","event":"go"}],"loop":{"type":"once"}}`, waiting, func(db *recordingStore, id string) error {
		return db.Enqueue(store.Batch{Trims: []store.Trim{{Run: id, From: 2, To: 2}}}).Wait(within(t))
	})
	rt := open(t, newFakeHost(), db.Memory, runtime.Options{})
	err := rt.Resume(within(t), id, runtime.ResumeOptions{})
	if err == nil || !strings.Contains(err.Error(), "records are missing after the first one") {
		t.Errorf("got %v", err)
	}
}
