package runtime_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// everywhere carries src on from every step-th state that a crash can leave and
// compares the results with that of a run without a crash.
func everywhere(t *testing.T, src string, step int) {
	t.Helper()
	opt := runtime.Options{OnInterrupt: sentinels.InterruptRetry, Limits: runtime.Limits{Crashes: 1000}}
	f := newRecordingStore()
	rt := open(t, newFakeHost(), f, opt)
	id := start(t, rt, src, runtime.StartOptions{Workspace: "/w"})
	res := wait(t, rt, id)
	want := stable(t, res)
	want["step"] = res.Step
	rt.Close()
	for n := f.after(t, 1, kind(journal.RunStart)); n < f.length(); n += step {
		rt := open(t, newFakeHost(), f.prefix(t, n), opt)
		if !status(t, rt, id).Status.Final() {
			if err := rt.Resume(within(t), id, runtime.ResumeOptions{}); err != nil {
				t.Fatalf("crash behind batch %d: %v", n, err)
			}
		}
		res := wait(t, rt, id)
		got := stable(t, res)
		got["step"] = res.Step
		rt.Close()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("crash behind batch %d (-want +got):\n%s", n, diff)
		}
	}
}

func TestCrashOfRunTreeAnywhere(t *testing.T) {
	tests := map[string]string{
		"a nested step writes the loop's own variable": `{"name":"a","steps":[
			{"type":"times","count":2,"steps":[
				{"type":"call","command":"world/act","value":"$index","outputTo":"index"},
				{"type":"call","command":"world/act","value":"$index.value","outputTo":"seen"}]}],"loop":{"type":"once"}}`,
		"a run that fails names its step": `{"name":"b","steps":[
			{"type":"call","command":"world/act","value":1},
			{"type":"seq","steps":[{"type":"call","command":"world/act","value":2},{"type":"call","command":"missing/command","value":3}]}],"loop":{"type":"once"}}`,
		"skipped steps stay skipped": `{"name":"c","steps":[
			{"type":"call","command":"missing/command","onError":"skip","outputTo":"a"},
			{"type":"call","command":"world/act","value":1,"condition":"$a.success","outputTo":"b"},
			{"type":"call","command":"world/act","value":"$a.error.code","outputTo":"c"}],"loop":{"type":"count","max":2}}`,
		"retries go on where they were": `{"name":"d","steps":[
			{"type":"seq","onError":{"retry":{"maxRetries":2,"baseDelayMs":1,"backoffType":"none"}},"steps":[
				{"type":"call","command":"world/act","value":1,"outputTo":"a"},
				{"type":"call","command":"world/flaky","value":2,"onError":{"retry":{"maxRetries":1,"baseDelayMs":1}},"outputTo":"b"}]}],"loop":{"type":"once"}}`,
		"refused calls are replayed": `{"name":"f","steps":[{"type":"stumble","outputTo":"a"}],"loop":{"type":"once"}}`,
		"a model talks": `{"name":"e","steps":[
			{"type":"talk","prompt":"a","turns":3,"outputTo":"a"},
			{"type":"both","branches":[[{"type":"talk","prompt":"b","turns":2,"outputTo":"b"}],[{"type":"talk","prompt":"c","outputTo":"c"}]]}],"loop":{"type":"count","max":2}}`,
	}
	for name, src := range tests {
		t.Run(name, func(t *testing.T) {
			step := 1
			if testing.Short() {
				step = 4
			}
			everywhere(t, src, step)
		})
	}
}

// A start key is one run's, however many start with it and when.
func TestStartKeyIsUnique(t *testing.T) {
	w := newFakeHost()
	rt := open(t, w, store.NewMemory(), runtime.Options{})
	def := decode(t, rt, oneAct)
	ids := make([]sentinels.RunID, 16)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			id, err := rt.Start(within(t), def, runtime.StartOptions{Key: "k"})
			if err != nil {
				t.Error(err)
			}
			ids[i] = id
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("two runs with one key: %s and %s", ids[0], id)
		}
	}
	wait(t, rt, ids[0])
	if id, err := rt.Start(within(t), def, runtime.StartOptions{Key: "k"}); err != nil || id != ids[0] {
		t.Errorf("later start: %s, %v; want %s", id, err, ids[0])
	}
	runs, err := rt.Runs(runtime.RunFilter{})
	if err != nil || len(runs) != 1 || len(w.made) != 1 {
		t.Errorf("%d runs, %d effects, %v; want one of each", len(runs), len(w.made), err)
	}
}

// family is a parent that starts a child and ends; the child starts one too and
// ends; the grandchild waits for an event and then acts.
const family = `{"name":"top","steps":[
	{"type":"child","await":false,"definition":{"name":"mid","steps":[
		{"type":"child","await":false,"definition":{"name":"low","steps":[
			{"type":"pause","event":"go"},{"type":"call","command":"world/act","value":"late"}],"loop":{"type":"once"}}}],"loop":{"type":"once"}}},
	{"type":"pause","event":"stay"}],"loop":{"type":"once"}}`

func familyRuns(t testing.TB, rt *runtime.Runtime) map[sentinels.ID]runtime.RunInfo {
	t.Helper()
	runs, err := rt.Runs(runtime.RunFilter{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[sentinels.ID]runtime.RunInfo{}
	for _, r := range runs {
		all[sentinels.ID(r.Name)] = r // inline children have other ids than names
	}
	return all
}

// startFamily returns when only the middle one is over and all is durable.
func startFamily(t testing.TB, rt *runtime.Runtime, db *recordingStore) sentinels.RunID {
	t.Helper()
	id := start(t, rt, family, runtime.StartOptions{})
	until(t, "the middle run to end, the others to wait", func() bool {
		return familyRuns(t, rt)["mid"].Status == sentinels.StatusCompleted && db.has(t, hasCall("go")) && db.has(t, hasCall("stay"))
	})
	return id
}

// Each child is a run of its own that knows its parent and its root, and a stop
// reaches every descendant, over one that has ended and over a crash.
func TestStopReachesEveryDescendant(t *testing.T) {
	check := func(t *testing.T, rt *runtime.Runtime, w *fakeHost, id sentinels.RunID) {
		t.Helper()
		if err := rt.Stop(within(t), id); err != nil {
			t.Fatal(err)
		}
		runs := familyRuns(t, rt)
		if runs["top"].Status != sentinels.StatusStopped || runs["low"].Status != sentinels.StatusStopped || runs["mid"].Status != sentinels.StatusCompleted {
			t.Errorf("top %s, mid %s, low %s", runs["top"].Status, runs["mid"].Status, runs["low"].Status)
		}
		if _, err := rt.Emit(within(t), sentinels.Event{Name: "go"}); err != nil {
			t.Fatal(err)
		}
		if len(w.made) != 0 {
			t.Error("something started after the stop")
		}
		if err := rt.Stop(within(t), id); abi.CodeOf(err) != abi.Conflict {
			t.Errorf("stopped twice: %v", err)
		}
	}
	t.Run("live", func(t *testing.T) {
		w, db := newFakeHost(), newRecordingStore()
		rt := open(t, w, db, runtime.Options{})
		id := startFamily(t, rt, db)
		runs := familyRuns(t, rt)
		for name, parent := range map[sentinels.ID]sentinels.ID{"mid": "top", "low": "mid"} {
			if r := runs[name]; r.Parent != runs[parent].ID || r.Root != id || r.ID == id {
				t.Errorf("%s has parent %s and root %s", name, r.Parent, r.Root)
			}
		}
		check(t, rt, w, id)
	})
	for _, resumed := range []bool{false, true} {
		name := "stored"
		if resumed {
			name = "resumed"
		}
		t.Run(name, func(t *testing.T) {
			db := newRecordingStore()
			rt := open(t, newFakeHost(), db, runtime.Options{})
			id := startFamily(t, rt, db)
			rt.Close()
			w := newFakeHost()
			rt = open(t, w, db.prefix(t, db.length()), runtime.Options{})
			if resumed {
				if err := rt.Resume(within(t), id, runtime.ResumeOptions{}); err != nil {
					t.Fatal(err)
				}
				if !familyRuns(t, rt)["low"].Live {
					t.Error("the resume of the root left the grandchild behind")
				}
			}
			check(t, rt, w, id)
		})
	}
}

// A child is resumed with its tree, not beside it; one that was paused for
// itself stays so.
func TestChildIsResumedWithItsTree(t *testing.T) {
	const src = `{"name":"top","steps":[{"type":"child","definition":{"name":"kid","steps":[
		{"type":"pause","event":"go"},{"type":"call","command":"world/act","value":1}],"loop":{"type":"once"}}}],"loop":{"type":"once"}}`
	db := newRecordingStore()
	rt := open(t, newFakeHost(), db, runtime.Options{})
	top := start(t, rt, src, runtime.StartOptions{})
	until(t, "the child to wait", func() bool { return db.has(t, hasCall("go")) && familyRuns(t, rt)["kid"].ID != "" })
	kid := familyRuns(t, rt)["kid"].ID
	if err := rt.Pause(within(t), kid, "ann"); err != nil {
		t.Fatal(err)
	}
	rt.Close()

	rt = open(t, newFakeHost(), db.prefix(t, db.length()), runtime.Options{})
	if err := rt.Resume(within(t), kid, runtime.ResumeOptions{}); abi.CodeOf(err) != abi.Conflict {
		t.Errorf("the child was resumed without its parent: %v", err)
	}
	if err := rt.Resume(within(t), top, runtime.ResumeOptions{}); err != nil {
		t.Fatal(err)
	}
	if info := status(t, rt, kid); info.Status != sentinels.StatusPaused || !info.Live {
		t.Fatalf("the child is %s, live %t; want paused and live", info.Status, info.Live)
	}
	if _, err := rt.Emit(within(t), sentinels.Event{Name: "go"}); err != nil {
		t.Fatal(err)
	}
	if err := rt.Resume(within(t), kid, runtime.ResumeOptions{}); err != nil {
		t.Fatal(err)
	}
	if res := wait(t, rt, top); res.Status != sentinels.StatusCompleted {
		t.Errorf("%s: %v", res.Status, res.Error)
	}
}

// A child sees the event of the pass that starts it.
func TestChildSeesTheEventOfTheIteration(t *testing.T) {
	const src = `{"name":"top","steps":[{"type":"child","definition":{"name":"kid","steps":[
		{"type":"call","command":"world/look","value":"$event.n","outputTo":"n"}],"loop":{"type":"once"}},"outputTo":"kid"}],
		"loop":{"type":"event","event":"tick"},"safety":{"maxIterations":2}}`
	rt := open(t, newFakeHost(), newRecordingStore(), runtime.Options{})
	id := start(t, rt, src, runtime.StartOptions{Event: &sentinels.Event{Name: "other", Data: json.RawMessage(`{"n":0}`)}})
	for _, n := range []string{"1", "2"} {
		if _, err := rt.Emit(within(t), sentinels.Event{Name: "tick", Data: json.RawMessage(`{"n":` + n + `}`)}); err != nil {
			t.Fatal(err)
		}
	}
	if got := variable(t, wait(t, rt, id), "kid"); !strings.Contains(got, `"value":2`) {
		t.Errorf("the child of the second pass saw %s", got)
	}
}

// Two looping runs that answer each other's events are a circle and end at the
// hop limit.
func TestHopLimitHoldsForLoopingRuns(t *testing.T) {
	const ping = `{"name":"ping","steps":[{"type":"say","event":"pong"}],"loop":{"type":"event","event":"ping"},"safety":{"maxIterations":1000}}`
	const pong = `{"name":"pong","steps":[{"type":"pause","event":"pong"},{"type":"say","event":"ping"}],"loop":{"type":"while","check":"true"},"safety":{"maxIterations":1000}}`
	rt := open(t, newFakeHost(), newRecordingStore(), runtime.Options{})
	a := start(t, rt, ping, runtime.StartOptions{})
	b := start(t, rt, pong, runtime.StartOptions{})
	if _, err := rt.Emit(within(t), sentinels.Event{Name: "ping"}); err != nil {
		t.Fatal(err)
	}
	until(t, "the end of the circle", func() bool { return status(t, rt, a).Status.Final() || status(t, rt, b).Status.Final() })
	for _, id := range []sentinels.RunID{a, b} {
		if info := status(t, rt, id); info.Status.Final() && (info.Error == nil || info.Error.Code != abi.Limit || !strings.Contains(info.Error.Message, "limit is 16")) {
			t.Errorf("ended %s with %v, want the hop limit", info.Status, info.Error)
		}
		if n := status(t, rt, id).Iteration; n > 10 {
			t.Errorf("%d passes, want 8 or so", n)
		}
	}
}

// A parent's budget pauses the parent; a child that waits for it can be stopped
// all the same.
func TestStopOfChildAtBudgetOfParent(t *testing.T) {
	const src = `{"name":"top","steps":[{"type":"child","definition":{"name":"kid","steps":[{"type":"talk","prompt":"x","turns":9}],
		"loop":{"type":"once"},"budget":{"calls":100}},"onError":"skip"}],"loop":{"type":"once"},"budget":{"calls":2},"safety":{"onTimeout":"pause"}}`
	rt := open(t, newFakeHost(), newRecordingStore(), runtime.Options{})
	top := start(t, rt, src, runtime.StartOptions{})
	info := untilStatus(t, rt, top, sentinels.StatusPaused)
	if info.Limit != "budget.calls" {
		t.Errorf("paused at %q, want budget.calls", info.Limit)
	}
	kid := familyRuns(t, rt)["kid"].ID
	if err := rt.Stop(within(t), kid); err != nil {
		t.Fatal(err)
	}
	if got := status(t, rt, top).Status; got != sentinels.StatusPaused {
		t.Errorf("stopping the child made the parent %s", got)
	}
	if err := rt.Resume(within(t), top, runtime.ResumeOptions{}); abi.CodeOf(err) != abi.Limit {
		t.Errorf("resumed without room: %v", err)
	}
	if err := rt.Resume(within(t), top, runtime.ResumeOptions{Extension: runtime.LimitExtension{Calls: 1}}); err != nil {
		t.Fatal(err)
	}
	if res := wait(t, rt, top); res.Status != sentinels.StatusCompleted || res.Usage.Calls != 2 {
		t.Errorf("%s after %d calls; want completed after 2", res.Status, res.Usage.Calls)
	}
}

// An edit between two passes brings its limits along.
func TestEditBringsItsLimits(t *testing.T) {
	const src = `{"id":"ed","name":"ed","steps":[{"type":"pause","event":"go"},{"type":"talk","prompt":"x"}],"loop":{"type":"count","max":9},"budget":{"calls":9}}`
	rt := open(t, newFakeHost(), newRecordingStore(), runtime.Options{})
	stored, err := rt.Save(within(t), decode(t, rt, src), 0)
	if err != nil {
		t.Fatal(err)
	}
	def, err := rt.Decoded(stored)
	if err != nil {
		t.Fatal(err)
	}
	id, err := rt.Start(within(t), def, runtime.StartOptions{Revision: 1})
	if err != nil {
		t.Fatal(err)
	}
	pinned, err := rt.Start(within(t), def, runtime.StartOptions{Revision: 1, Pinned: true})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the first pass", func() bool { return status(t, rt, id).Iteration == 1 && status(t, rt, pinned).Iteration == 1 })
	edited := strings.Replace(strings.Replace(src, `"calls":9`, `"calls":2`, 1), `"prompt":"x"`, `"prompt":"y"`, 1)
	if _, err := rt.Save(within(t), decode(t, rt, edited), 5); abi.CodeOf(err) != abi.Conflict {
		t.Errorf("an edit of a revision that is not there: %v", err)
	}
	if _, err := rt.Save(within(t), decode(t, rt, edited), 1); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		n, m := status(t, rt, id).Iteration, status(t, rt, pinned).Iteration
		if _, err := rt.Emit(within(t), sentinels.Event{Name: "go"}); err != nil {
			t.Fatal(err)
		}
		until(t, "the next pass", func() bool {
			a, b := status(t, rt, id), status(t, rt, pinned)
			return (a.Iteration > n || a.Status.Final()) && b.Iteration > m
		})
	}
	res := wait(t, rt, id)
	if res.Status != sentinels.StatusTimedOut || res.Reason != "budget.calls" || res.Usage.Calls != 2 {
		t.Errorf("%s at limit %q after %d calls; want timed_out at budget.calls after 2", res.Status, res.Reason, res.Usage.Calls)
	}
	trace, err := rt.Trace(id)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := trace.Iterations[0].Revision, trace.Iterations[1].Revision; a != 1 || b != 2 {
		t.Errorf("the passes used revisions %d and %d, want 1 and 2", a, b)
	}
	if info := status(t, rt, pinned); info.Status != sentinels.StatusRunning || info.Revision != 1 {
		t.Errorf("the pinned run is %s on revision %d", info.Status, info.Revision)
	}
	if err := rt.Stop(context.Background(), pinned); err != nil {
		t.Fatal(err)
	}
}

// $ragContext that a step made is kept until it is built again.
func TestStepMayMakeTheContext(t *testing.T) {
	const src = `{"name":"rag","recipe":"r","steps":[
		{"type":"call","command":"world/look","value":"$ragContext","outputTo":"first"},
		{"type":"call","command":"world/look","value":"mine","outputTo":"ragContext"},
		{"type":"call","command":"world/look","value":"$ragContext.value","outputTo":"second"}],"loop":{"type":"count","max":2}}`
	rt := open(t, newFakeHost(), newRecordingStore(), runtime.Options{Contexts: fixedContext(`"built"`)})
	res := runToEnd(t, rt, src, runtime.StartOptions{})
	for name, want := range map[string]string{"first": `"value":"built"`, "second": `"value":"mine"`} {
		if got := variable(t, res, name); !strings.Contains(got, want) {
			t.Errorf("%s = %s, want %s", name, got, want)
		}
	}
}

type fixedContext string

func (c fixedContext) Build(context.Context, runtime.ContextRequest) (json.RawMessage, error) {
	return json.RawMessage(c), nil
}

// The failed step that a result names is the innermost one, whatever other
// branches came to.
func TestResultNamesTheFailedStep(t *testing.T) {
	w := newFakeHost()
	rt := open(t, w, newRecordingStore(), runtime.Options{})
	res := runToEnd(t, rt, `{"name":"n","steps":[{"type":"seq","steps":[
		{"type":"both","failFast":true,"branches":[[{"type":"call","command":"missing/command"}],[{"type":"call","command":"world/look","value":1},{"type":"pause","event":"never"}]]},
		{"type":"call","command":"missing/command"}]}],"loop":{"type":"once"}}`, runtime.StartOptions{})
	if res.Status != sentinels.StatusFailed || res.Step != "0.steps.1" {
		t.Errorf("%s at %q, want failed at 0.steps.1", res.Status, res.Step)
	}
}

// TestGivenKeysAreNotOfChildren: a caller that knows the key of a child, which a step will look for, does not
// find that child and does not put another run in its place.
func TestGivenKeysAreNotOfChildren(t *testing.T) {
	db := store.NewMemory()
	rt := open(t, newFakeHost(), db, runtime.Options{})
	id, err := rt.Start(within(t), decode(t, rt, family), runtime.StartOptions{Key: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]string{}
	for ctx := within(t); len(keys) < 3; { // the run and two children
		if ctx.Err() != nil {
			t.Fatal("the children are not started")
		}
		if err := db.Scan("startkeys", nil, nil, false, func(key, run []byte) bool {
			keys[string(key)] = string(run)
			return true
		}); err != nil {
			t.Fatal(err)
		}
	}
	for key, run := range keys {
		if run == string(id) {
			continue
		}
		other, err := rt.Start(within(t), decode(t, rt, oneAct), runtime.StartOptions{Key: key})
		if err != nil || string(other) == run {
			t.Errorf("the key of the child %s gives the run %s, %v", run, other, err)
		}
	}
}
