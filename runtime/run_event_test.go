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
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// nextRunEvent returns the next event of a run that is written after a position.
func nextRunEvent(t testing.TB, rt *runtime.Runtime, after uint64) (sentinels.Event, uint64) {
	t.Helper()
	e, position, _, err := rt.NextRunEvent(within(t), after)
	if err != nil {
		t.Fatal(err)
	}
	return e, position
}

// runEvents returns the names of the events of runs in the log, in order.
func runEvents(t testing.TB, rt *runtime.Runtime) []string {
	t.Helper()
	all, err := rt.Events("sentinel:*:*", 1000)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range all {
		names = append(names, e.Name)
	}
	return names
}

// "sentinel:<id>:started paused resumed waiting completed failed stopped timed_out
// quarantined with {run, sentinel, parent, status, reason, error, iterations, durationMs,
// usage}"
func TestSpecRunEvents(t *testing.T) {
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{})
	rt.ExpectRunEvents("sentinel:*:*")
	run := func(id, rest string) sentinels.RunID {
		return start(t, rt, fmt.Sprintf(`{"id":%q,"name":%q,"loop":{"type":"once"},%s}`, id, id, rest), runtime.StartOptions{})
	}
	var schema struct{ Properties map[string]any }
	if err := json.Unmarshal(sentinels.RunEventSchema("sentinel:*:*"), &schema); err != nil || len(schema.Properties) != 9 {
		t.Fatal(schema, err)
	}
	at := uint64(0)
	next := func(name string, id sentinels.RunID) map[string]json.RawMessage {
		t.Helper()
		e, position := nextRunEvent(t, rt, at)
		at = position
		var data map[string]json.RawMessage
		if err := json.Unmarshal(e.Data, &data); err != nil {
			t.Fatal(err)
		}
		if e.Name != name || string(data["run"]) != fmt.Sprintf("%q", id) {
			t.Fatalf("event %s %s, want %s of run %s", e.Name, e.Data, name, id)
		}
		word := name[strings.LastIndex(name, ":")+1:]
		want := word
		if word == "started" || word == "resumed" {
			want = "running"
		}
		for _, field := range []string{"sentinel", "iterations", "durationMs", "usage"} {
			if len(data[field]) == 0 {
				t.Errorf("%s has no %s: %s", name, field, e.Data)
			}
		}
		for field := range data {
			if schema.Properties[field] == nil {
				t.Errorf("the schema of %s has no %s", name, field)
			}
		}
		if string(data["status"]) != fmt.Sprintf("%q", want) {
			t.Errorf("%s has status %s", name, data["status"])
		}
		return data
	}

	id := run("p", `"steps":[{"type":"pause","event":"go"}]`)
	next("sentinel:p:started", id)
	if err := rt.Pause(within(t), id, "ann"); err != nil {
		t.Fatal(err)
	}
	if data := next("sentinel:p:paused", id); string(data["reason"]) != `"by ann"` {
		t.Errorf("reason %s", data["reason"])
	}
	if err := rt.Resume(within(t), id, runtime.ResumeOptions{By: "ann"}); err != nil {
		t.Fatal(err)
	}
	next("sentinel:p:resumed", id)
	emit(t, rt, "go", "")
	if data := next("sentinel:p:completed", id); string(data["iterations"]) != "1" {
		t.Errorf("iterations %s", data["iterations"])
	}

	id = run("w", `"steps":[{"type":"pause","decision":{"prompt":"well?"}}]`)
	next("sentinel:w:started", id)
	next("sentinel:w:waiting", id)
	if err := rt.Stop(within(t), id); err != nil {
		t.Fatal(err)
	}
	next("sentinel:w:stopped", id)

	id = run("f", `"steps":[{"type":"call","command":"world/none"}]`)
	next("sentinel:f:started", id)
	if data := next("sentinel:f:failed", id); !strings.Contains(string(data["error"]), "message") {
		t.Errorf("error %s", data["error"])
	}

	id = start(t, rt, `{"id":"t","name":"t","loop":{"type":"once"},"safety":{"timeoutMs":20},"steps":[{"type":"pause","event":"never"}]}`, runtime.StartOptions{})
	next("sentinel:t:started", id)
	if data := next("sentinel:t:timed_out", id); string(data["reason"]) != `"timeoutMs"` {
		t.Errorf("reason %s", data["reason"])
	}

	// A child has its parent's run, and the chain of both.
	id = run("mother", `"steps":[{"type":"child","definition":{"name":"kid","steps":[],"loop":{"type":"once"}}}]`)
	next("sentinel:mother:started", id)
	e, position := nextRunEvent(t, rt, at)
	at = position
	if e.Name != "sentinel:mother@0:started" || !strings.Contains(string(e.Data), fmt.Sprintf(`"parent":%q`, id)) || strings.Join(e.Path, " ") != "mother mother@0" {
		t.Errorf("event of the child: %s %v %s", e.Name, e.Path, e.Data)
	}
}

func TestRunEventQuarantined(t *testing.T) {
	db, id := quarantined(t)
	rt, _ := life(t, db)
	rt.ExpectRunEvents("sentinel:*:quarantined")
	resumeAll(t, rt)
	if e, _ := nextRunEvent(t, rt, 0); e.Name != "sentinel:bad:quarantined" || !strings.Contains(string(e.Data), string(id)) {
		t.Errorf("%s %s", e.Name, e.Data)
	}
}

// "for triggers": the end of a run fires others, never itself, and never a sentinel on
// its way.
func TestSpecRunEventsFire(t *testing.T) {
	s := serve(t, store.NewMemory(), runtime.Options{})
	s.saveSteps(t, "triage", `{"type":"pause","durationMs":0}`, `"concurrency":"parallel","trigger":{"type":"event","event":"sentinel:build:failed"}`)
	s.saveSteps(t, "any", `{"type":"pause","durationMs":0}`, `"concurrency":"parallel","trigger":{"type":"event","event":"sentinel:*:*"}`)
	s.saveSteps(t, "all", `{"type":"pause","durationMs":0}`, `"concurrency":"parallel","trigger":{"type":"event","event":"**"}`)
	build := s.saveSteps(t, "build", `{"type":"call","command":"world/none"}`, `"trigger":{"type":"event","event":"sentinel:triage:completed"}`)
	startStored(t, s.Runtime, build, runtime.StartOptions{})
	until(t, "the runs of triage and any", func() bool {
		triage, any := s.info(t, "triage", 0), s.info(t, "any", 0)
		return triage.Started == 1 && any.Started == 4 // build and triage, each with two events
	})
	time.Sleep(50 * time.Millisecond) // for what must not come
	for id, want := range map[sentinels.ID]uint64{"triage": 1, "any": 4, "all": 0, "build": 0} {
		if i := s.info(t, id, 0); i.Fired != want || i.Missed != 0 {
			t.Errorf("%s: fired %d, missed %d, want %d", id, i.Fired, i.Missed, want)
		}
	}
	runs, err := s.Runs(runtime.RunFilter{Sentinel: "triage"})
	if err != nil {
		t.Fatal(err)
	}
	e, err := runtime.StartEvent(s.Runtime, runs[0].ID)
	if err != nil || e == nil || e.Name != "sentinel:build:failed" || strings.Join(e.Path, " ") != "build" || e.Hops != 1 {
		t.Errorf("event %+v, %v", e, err)
	}
}

// "for waits": a step and a loop wait for events of runs, but not for their own.
func TestSpecRunEventsEndWaits(t *testing.T) {
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{})
	id := start(t, rt, `{"id":"w","name":"w","loop":{"type":"once"},"steps":[{"type":"pause","event":"sentinel:b:completed","outputTo":"e"}]}`, runtime.StartOptions{})
	loop := start(t, rt, `{"id":"l","name":"l","loop":{"type":"event","event":"sentinel:*:completed"},"safety":{"maxIterations":2},"steps":[{"type":"child","definition":{"name":"kid","steps":[],"loop":{"type":"once"}}}]}`, runtime.StartOptions{})
	start(t, rt, `{"id":"b","name":"b","loop":{"type":"once"},"steps":[]}`, runtime.StartOptions{})
	if res := wait(t, rt, id); res.Status != sentinels.StatusCompleted || !strings.Contains(string(res.Variables["e"]), "sentinel:b:completed") {
		t.Errorf("%+v", res)
	}
	if res := wait(t, rt, loop); res.Iterations != 2 { // b and w, and not its children
		t.Errorf("%+v", res)
	}
	if got := runEvents(t, rt); len(got) < 2 || got[0] != "sentinel:b:completed" {
		t.Errorf("events %v", got)
	}
}

// "durable in the same way as other events": an end before a crash fires after it, once.
func TestRunEventSurvivesACrash(t *testing.T) {
	db := newRecordingStore()
	s := serve(t, db, runtime.Options{})
	s.saveSteps(t, "after", `{"type":"pause","durationMs":0}`, `"concurrency":"parallel","trigger":{"type":"event","event":"sentinel:b:*"}`)
	s.Disarm()
	id := start(t, s.Runtime, `{"id":"b","name":"b","loop":{"type":"once"},"steps":[]}`, runtime.StartOptions{})
	wait(t, s.Runtime, id)
	next := crashed(t, db, s.Runtime)
	for range 2 {
		s = serve(t, next, runtime.Options{})
		until(t, "both runs", func() bool { return s.info(t, "after", 0).Started >= 2 })
		if i := s.info(t, "after", 0); i.Started != 2 || i.Fired != 2 {
			t.Errorf("%+v", i)
		}
		next = crashed(t, next, s.Runtime)
	}
}

// A run that is taken over after a crash has not started again.
func TestTakeoverIsNoStart(t *testing.T) {
	db := newRecordingStore()
	rt, w := life(t, db, "hold")
	rt.ExpectRunEvents("sentinel:*:*")
	start(t, rt, fmt.Sprintf(retried, "hold"), runtime.StartOptions{})
	until(t, "the effect to begin", func() bool { return w.count() == 1 })
	db = crashed(t, db, rt)
	rt, _ = life(t, db)
	rt.ExpectRunEvents("sentinel:*:*")
	resumeAll(t, rt)
	until(t, "the end", func() bool { return len(runEvents(t, rt)) >= 2 })
	if diff := cmp.Diff([]string{"sentinel:hold:started", "sentinel:hold:completed"}, runEvents(t, rt)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// A run that no process executes is stopped: its event has the chain of its start.
func TestStoredRunEndsWithAnEvent(t *testing.T) {
	db := store.NewMemory()
	rt := open(t, newFakeHost(), db, runtime.Options{})
	id := start(t, rt, `{"id":"s","name":"s","loop":{"type":"once"},"steps":[{"type":"pause","event":"never"}]}`, runtime.StartOptions{})
	if err := db.Enqueue(store.Batch{}).Wait(within(t)); err != nil { // the start is lazy
		t.Fatal(err)
	}
	snap := db.Snapshot()
	rt.Close()
	rt = open(t, newFakeHost(), snap, runtime.Options{})
	rt.ExpectRunEvents("sentinel:s:stopped")
	if err := rt.Stop(within(t), id); err != nil {
		t.Fatal(err)
	}
	if e, _ := nextRunEvent(t, rt, 0); e.Name != "sentinel:s:stopped" || strings.Join(e.Path, " ") != "s" {
		t.Errorf("%+v", e)
	}
}

// Events of runs "cost nothing" without a reader: no event is written.
// "the engine's own events carry a source that users cannot set"
func TestRunEventsAreWrittenForReadersOnly(t *testing.T) {
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{})
	wait(t, rt, start(t, rt, `{"id":"a","name":"a","loop":{"type":"once"},"steps":[]}`, runtime.StartOptions{}))
	if n := rt.RunEventPosition(); n != 0 {
		t.Errorf("%d events were written", n)
	}
	rt.ExpectRunEvents("sentinel:a:failed")
	wait(t, rt, start(t, rt, `{"id":"a","name":"a","loop":{"type":"once"},"steps":[]}`, runtime.StartOptions{}))
	if n := rt.RunEventPosition(); n != 0 {
		t.Errorf("%d events were written that no reader expects", n)
	}
	for _, source := range []string{"engine/a", "engine/"} {
		if _, err := rt.Emit(context.Background(), sentinels.Event{Name: "sentinel:a:completed", Source: source}); abi.CodeOf(err) != abi.BadFields {
			t.Errorf("emit with the source %s: %v", source, err)
		}
	}
}

// A run that waits, is paused or is quarantined does not say so again at each start of the
// host; what happens to it then does.
func TestTakeoverRepeatsNoStatus(t *testing.T) {
	db := newRecordingStore()
	rt, _ := life(t, db)
	rt.ExpectRunEvents("sentinel:*:*")
	id := start(t, rt, `{"id":"w","name":"w","loop":{"type":"once"},"steps":[{"type":"pause","decision":{"prompt":"well?"}}]}`, runtime.StartOptions{})
	untilStatus(t, rt, id, sentinels.StatusWaiting)
	for range 2 {
		db = crashed(t, db, rt)
		rt, _ = life(t, db)
		rt.ExpectRunEvents("sentinel:*:*")
		resumeAll(t, rt)
		untilStatus(t, rt, id, sentinels.StatusWaiting)
	}
	decide(t, rt, id, runtime.Decision{Verdict: "approve", By: "ann"})
	wait(t, rt, id)
	want := []string{"sentinel:w:started", "sentinel:w:waiting", "sentinel:w:resumed", "sentinel:w:completed"}
	if diff := cmp.Diff(want, runEvents(t, rt)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// "a sentinel is never fired by events of its own runs or their descendants": of children,
// of what a child starts by a command, and of what these fire.
func TestSpecRunEventsNeverFireTheirCause(t *testing.T) {
	s := serve(t, store.NewMemory(), runtime.Options{})
	top := s.saveSteps(t, "top", `{"type":"child","definition":{"name":"kid","steps":[{"type":"pause","event":"go"}],"loop":{"type":"once"}}}`,
		`"concurrency":"parallel","trigger":{"type":"event","event":"sentinel:*:*"}`)
	id := startStored(t, s.Runtime, top, runtime.StartOptions{})
	var kid sentinels.RunID
	until(t, "the child", func() bool {
		runs, err := s.Runs(runtime.RunFilter{Parent: id})
		if err == nil && len(runs) == 1 {
			kid = runs[0].ID
		}
		return kid != ""
	})
	until(t, "its iteration", func() bool { hops, _ := s.Chain(kid); return hops == 1 })
	started, err := s.Start(within(t), decode(t, s.Runtime, `{"id":"helper","name":"helper","steps":[],"loop":{"type":"once"}}`), runtime.StartOptions{Starter: kid})
	if err != nil {
		t.Fatal(err)
	}
	wait(t, s.Runtime, started)
	emit(t, s.Runtime, "go", "")
	wait(t, s.Runtime, id)
	// An event of a run that has nothing to do with it comes behind all of those.
	wait(t, s.Runtime, start(t, s.Runtime, `{"id":"other","name":"other","steps":[],"loop":{"type":"once"}}`, runtime.StartOptions{}))
	until(t, "the events of the other run", func() bool { return s.info(t, "top", 0).Fired == 2 })
	all, err := s.Events("sentinel:*:*", 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		caused := !strings.HasPrefix(e.Name, "sentinel:other:")
		if got := strings.Contains(" "+strings.Join(e.Path, " ")+" ", " top "); got != caused && !strings.HasPrefix(e.Name, "sentinel:top:") {
			t.Errorf("%s has the path %v", e.Name, e.Path)
		}
	}
	if i := s.info(t, "top", 0); i.Fired != 2 || i.Missed != 0 {
		t.Errorf("fired %d, missed %d; want the two events of the other run", i.Fired, i.Missed)
	}
}

// That they "cost nothing" without a reader is measured by BenchmarkRunThreeSteps. Who may
// read them is known from the definitions, and only as long as these are stored.
func TestRunEventsFollowDefinitions(t *testing.T) {
	s := serve(t, store.NewMemory(), runtime.Options{})
	written := func() uint64 {
		before := s.RunEventPosition()
		wait(t, s.Runtime, start(t, s.Runtime, `{"id":"b","name":"b","loop":{"type":"once"},"steps":[]}`, runtime.StartOptions{}))
		return s.RunEventPosition() - before
	}
	expect := func(when string, want uint64) {
		t.Helper()
		if n := written(); n != want {
			t.Errorf("%s: %d events were written, want %d", when, n, want)
		}
	}
	expect("without a reader", 0)
	s.saveSteps(t, "x", quick, `"trigger":{"type":"event","event":"sentinel:b:failed"}`)
	expect("with a reader of another word", 0)
	s.saveSteps(t, "x", quick, `"trigger":{"type":"event","event":"sentinel:b:completed"}`)
	expect("with a trigger", 1)
	var fired []runtime.RunInfo
	until(t, "the run that it fired", func() bool {
		var err error
		fired, err = s.Runs(runtime.RunFilter{Sentinel: "x"})
		return err == nil && len(fired) == 1
	})
	wait(t, s.Runtime, fired[0].ID) // an active run has the old definition
	s.saveSteps(t, "x", `{"type":"pause","event":"sentinel:*:started"}`, `"trigger":{"type":"manual"}`)
	expect("with a step", 1)
	if err := s.Delete(within(t), "x", runtime.AnyRevision); err != nil {
		t.Fatal(err)
	}
	expect("after it was deleted", 0)
	id := start(t, s.Runtime, `{"id":"w","name":"w","loop":{"type":"once"},"steps":[{"type":"pause","event":"sentinel:b:started"}]}`, runtime.StartOptions{})
	expect("while an unsaved run waits", 1)
	wait(t, s.Runtime, id)
	expect("after its end", 0)
}
