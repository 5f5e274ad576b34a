package runtime_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// TestSkipHoldsUntilTheRunEnds: the overlap policy holds until the run has ended, not
// only until it has started.
func TestSkipHoldsUntilTheRunEnds(t *testing.T) {
	db := store.NewMemory()
	s := serve(t, db, runtime.Options{})
	s.save(t, "a", `"trigger":{"type":"test","allowConcurrent":false}`)
	first := s.fire(t, "a", 0, fired(1))
	if first.Outcome != triggers.Started || first.Run == "" {
		t.Fatalf("first: %+v", first)
	}
	skipped := func(s serving, n int, because string) {
		t.Helper()
		adm := s.fire(t, "a", 0, fired(n))
		if adm.Outcome != triggers.Skipped || !strings.Contains(adm.Reason, string(first.Run)+" is "+because) {
			t.Errorf("fire %d: %+v, want it skipped because the run is %s", n, adm, because)
		}
	}
	skipped(s, 2, "running")
	// A paused run is active, and so is one that no process executes.
	if err := s.Pause(within(t), first.Run, "test"); err != nil {
		t.Fatal(err)
	}
	skipped(s, 3, "paused")
	snap := db.Snapshot()
	s.Close()
	s = serving{fakeTriggers: new(fakeTriggers), w: newFakeHost()}
	s.Runtime = open(t, s.w, snap, runtime.Options{Triggers: s.set()})
	if err := s.Arm(within(t)); err != nil {
		t.Fatal(err)
	}
	skipped(s, 4, "paused")
	if err := s.Stop(within(t), first.Run); err != nil {
		t.Fatal(err)
	}
	if adm := s.fire(t, "a", 0, fired(5)); adm.Outcome != triggers.Started {
		t.Errorf("after the end: %+v", adm)
	}
	i := s.info(t, "a", 0)
	sums(t, i)
	want := runtime.TriggerCounts{Fired: 5, Started: 2, Skipped: 3}
	if diff := cmp.Diff(want, i.Counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

// A run that waits for a person is on.
func TestWaitingForAPersonIsOn(t *testing.T) {
	s := serve(t, store.NewMemory(), runtime.Options{})
	s.saveSteps(t, "a", `{"type":"pause","decision":{"prompt":"well?"}}`, `"trigger":{"type":"test"}`)
	first := s.fire(t, "a", 0, fired(1))
	untilStatus(t, s.Runtime, first.Run, sentinels.StatusWaiting)
	if adm := s.fire(t, "a", 0, fired(2)); adm.Outcome != triggers.Skipped || !strings.HasSuffix(adm.Reason, "is waiting") {
		t.Errorf("%+v", adm)
	}
}

// Children of other runs are not the sentinel's own, runs that a person started
// are.
func TestWhichRunsAreOn(t *testing.T) {
	s := serve(t, store.NewMemory(), runtime.Options{})
	stored := s.save(t, "a", `"trigger":{"type":"test"}`)
	start(t, s.Runtime, `{"name":"parent","loop":{"type":"once"},"steps":[{"type":"child","definition":{"id":"a","name":"a","loop":{"type":"once"},"steps":[{"type":"pause","event":"end"}]}}]}`, runtime.StartOptions{})
	until(t, "the child", func() bool {
		infos, err := s.Runs(runtime.RunFilter{})
		return err == nil && slices.ContainsFunc(infos, func(i runtime.RunInfo) bool { return i.Name == "a" })
	})
	adm := s.fire(t, "a", 0, fired(1))
	if adm.Outcome != triggers.Started {
		t.Errorf("beside a child: %+v", adm)
	}
	s.end(t, adm.Run)
	def, err := s.Decoded(stored)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Start(within(t), def, runtime.StartOptions{Revision: stored.Revision}); err != nil {
		t.Fatal(err)
	}
	if adm := s.fire(t, "a", 0, fired(2)); adm.Outcome != triggers.Skipped {
		t.Errorf("beside a person's run: %+v", adm)
	}
}

// Fires in the queue start one after the other, in order, also over a restart.
func TestQueue(t *testing.T) {
	db := store.NewMemory()
	s := serve(t, db, runtime.Options{})
	s.save(t, "a", `"concurrency":"queue","trigger":{"type":"test"}`)
	run := s.fire(t, "a", 0, fired(1)).Run
	for n := 2; n <= 4; n++ {
		if adm := s.fire(t, "a", 0, fired(n)); adm.Outcome != triggers.Queued {
			t.Fatalf("fire %d: %+v", n, adm)
		}
	}
	if i := s.info(t, "a", 0); i.Waiting != 3 || i.Queued != 3 {
		t.Errorf("%+v", i)
	}
	s.end(t, run)
	until(t, "the second run", func() bool { return len(s.order(t, "a")) == 2 })
	snap := db.Snapshot()
	s.Close()
	s = serve(t, snap, runtime.Options{})
	for i := 2; i <= 4; i++ {
		until(t, fmt.Sprint("run ", i), func() bool { return len(s.order(t, "a")) == i })
		infos, _ := s.Runs(runtime.RunFilter{Sentinel: "a", Limit: 1})
		s.end(t, infos[0].ID)
	}
	if diff := cmp.Diff([]int{1, 2, 3, 4}, s.order(t, "a")); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	i := s.info(t, "a", 0)
	sums(t, i)
	if diff := cmp.Diff(runtime.TriggerCounts{Fired: 4, Started: 4, Queued: 3}, i.Counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

// The queue has an end: what comes then is dropped and counted.
func TestQueueIsBounded(t *testing.T) {
	s := serve(t, store.NewMemory(), runtime.Options{})
	s.save(t, "a", `"concurrency":"queue","trigger":{"type":"test"}`)
	var last triggers.Admission
	for n := range 1003 {
		last = s.fire(t, "a", 0, fired(n))
	}
	if last.Outcome != triggers.Refused || !strings.Contains(last.Reason, "queue is full") {
		t.Errorf("last: %+v", last)
	}
	i := s.info(t, "a", 0)
	sums(t, i)
	if i.Waiting != 1000 || i.Refused != 2 {
		t.Errorf("%+v", i)
	}
}

func TestParallel(t *testing.T) {
	s := serve(t, store.NewMemory(), runtime.Options{})
	s.save(t, "a", `"concurrency":"queue","trigger":[{"type":"test","allowConcurrent":true},{"type":"test","allowConcurrent":false}]`)
	for n := range 5 {
		if adm := s.fire(t, "a", 0, fired(n)); adm.Outcome != triggers.Started {
			t.Fatalf("fire %d: %+v", n, adm)
		}
	}
	if adm := s.fire(t, "a", 1, fired(9)); adm.Outcome != triggers.Skipped {
		t.Errorf("the other trigger: %+v", adm)
	}
}

// A restart stops the active run completely, and then starts the newest firing.
func TestRestart(t *testing.T) {
	s := serve(t, store.NewMemory(), runtime.Options{})
	s.save(t, "a", `"concurrency":"restart","trigger":{"type":"test"}`)
	first := s.fire(t, "a", 0, fired(1))
	if first.Outcome != triggers.Started {
		t.Fatalf("%+v", first)
	}
	if adm := s.fire(t, "a", 0, fired(2)); adm.Outcome != triggers.Queued {
		t.Fatalf("%+v", adm)
	}
	if res := wait(t, s.Runtime, first.Run); res.Status != sentinels.StatusStopped {
		t.Errorf("the first run ended %s", res.Status)
	}
	until(t, "the second run", func() bool { return len(s.order(t, "a")) == 2 })
	i := s.info(t, "a", 0)
	sums(t, i)
	if i.Started != 2 || i.Coalesced != 0 {
		t.Errorf("%+v", i)
	}
	// A storm ends with the last fire's run, and one run on.
	for n := 3; n < 30; n++ {
		s.fire(t, "a", 0, fired(n))
	}
	until(t, "the last run", func() bool { order := s.order(t, "a"); return order[len(order)-1] == 29 })
	on, err := s.Runs(runtime.RunFilter{Sentinel: "a", Status: sentinels.StatusRunning})
	if err != nil || len(on) != 1 {
		t.Errorf("%d runs are on, %v", len(on), err)
	}
	i = s.info(t, "a", 0)
	sums(t, i)
	if i.Skipped != 0 { // those that a newer one replaced count as coalesced
		t.Errorf("%+v", i)
	}
}

// What a filter says no to is filtered; what it cannot answer is a problem that
// people see, and never a no.
func TestFilter(t *testing.T) {
	s := serve(t, store.NewMemory(), runtime.Options{})
	s.saveSteps(t, "a", `{"type":"call","command":"world/look"}`, `"concurrency":"parallel","trigger":{"type":"test","filter":"[...$event.n][0] > 1"}`)
	data := func(text string) triggers.Firing {
		return triggers.Firing{Event: &sentinels.Event{Name: "x", Data: []byte(text)}}
	}
	tests := []struct {
		fire    triggers.Firing
		outcome triggers.Outcome
		problem bool
	}{
		{data(`{"n":[2]}`), triggers.Started, false},
		{data(`{"n":[1]}`), triggers.Filtered, false},
		{data(`{"n":7}`), triggers.Refused, true},
		{triggers.Firing{}, triggers.Refused, true},
		{data(`{"n":[0]}`), triggers.Filtered, false},
	}
	for i, tt := range tests {
		adm := s.fire(t, "a", 0, tt.fire)
		info := s.info(t, "a", 0)
		if adm.Outcome != tt.outcome || (info.Problem != "") != tt.problem || tt.problem && !strings.HasPrefix(adm.Reason, "filter: ") {
			t.Errorf("fire %d: %+v, problem %q", i, adm, info.Problem)
		}
	}
	i := s.info(t, "a", 0)
	sums(t, i)
	if diff := cmp.Diff(runtime.TriggerCounts{Fired: 5, Started: 1, Filtered: 2, Refused: 2}, i.Counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

// A second fire with a key starts nothing, whatever became of the first, over a
// restart and an edit of other parts. Another trigger has keys of its own.
func TestKeys(t *testing.T) {
	db := store.NewMemory()
	s := serve(t, db, runtime.Options{})
	const two = `"trigger":[{"type":"test","tag":"x","allowConcurrent":true},{"type":"test","tag":"y"}]`
	s.save(t, "a", two)
	key := func(k string) triggers.Firing { return triggers.Firing{Key: k} }
	first := s.fire(t, "a", 0, key("k"))
	if first.Outcome != triggers.Started {
		t.Fatalf("%+v", first)
	}
	again := func(s serving, nth int, run sentinels.RunID) {
		t.Helper()
		if adm := s.fire(t, "a", nth, key("k")); adm.Outcome != triggers.Duplicate || adm.Run != run {
			t.Errorf("again: %+v", adm)
		}
	}
	again(s, 0, first.Run)
	if adm := s.fire(t, "a", 1, key("k")); adm.Outcome != triggers.Skipped {
		t.Errorf("the other trigger: %+v", adm)
	}
	s.end(t, first.Run)
	again(s, 1, "") // it was skipped, and that stands
	s.saveSteps(t, "a", `{"type":"pause","event":"other"}`, two)
	again(s, 0, first.Run)
	snap := db.Snapshot()
	s.Close()
	s = serve(t, snap, runtime.Options{})
	again(s, 0, first.Run)
	// Taken away and written again, a trigger begins at zero.
	s.save(t, "a", `"trigger":{"type":"test","tag":"z"}`)
	s.save(t, "a", two)
	if adm := s.fire(t, "a", 0, key("k")); adm.Outcome != triggers.Started {
		t.Errorf("of the new trigger: %+v", adm)
	}
	if i := s.info(t, "a", 0); i.Fired != 1 {
		t.Errorf("%+v", i)
	}
}

// The window of keys holds its bound, and a fire that has left it is still kept
// from starting a second run.
func TestKeyWindow(t *testing.T) {
	db := store.NewMemory()
	s := serve(t, db, runtime.Options{})
	s.saveSteps(t, "a", `{"type":"call","command":"world/look"}`, `"trigger":{"type":"test"}`)
	first := s.fire(t, "a", 0, triggers.Firing{Key: "first"})
	wait(t, s.Runtime, first.Run)
	start(t, s.Runtime, `{"id":"a","name":"a","loop":{"type":"once"},"steps":[{"type":"pause","event":"never"}]}`, runtime.StartOptions{})
	for n := range 10_100 { // all skipped
		s.fire(t, "a", 0, triggers.Firing{Key: fmt.Sprint(n), State: []byte("1")})
	}
	pairs := 0
	s.fire(t, "a", 0, triggers.Firing{Key: "last"}) // waits for the disk
	err := db.Scan("triggerkeys", nil, nil, false, func([]byte, []byte) bool { pairs++; return true })
	if err != nil || pairs != 2*10_000 {
		t.Errorf("%d pairs are kept, %v", pairs, err)
	}
	infos, err := s.Runs(runtime.RunFilter{Sentinel: "a", Status: sentinels.StatusRunning})
	if err != nil || len(infos) != 1 {
		t.Fatal(infos, err)
	}
	if err := s.Stop(within(t), infos[0].ID); err != nil {
		t.Fatal(err)
	}
	if adm := s.fire(t, "a", 0, triggers.Firing{Key: "first"}); adm.Outcome != triggers.Duplicate || adm.Run != first.Run {
		t.Errorf("%+v", adm)
	}
}

// A trigger refuses an event whose chain is too long and names the way.
func TestTriggerEndsTheCircle(t *testing.T) {
	s := serve(t, store.NewMemory(), runtime.Options{Limits: runtime.Limits{Hops: 4}})
	s.saveSteps(t, "a", `{"type":"say","event":"ping"}`, `"concurrency":"queue","trigger":{"type":"event","event":"pong"}`)
	s.saveSteps(t, "b", `{"type":"say","event":"pong"}`, `"concurrency":"queue","trigger":{"type":"event","event":"ping"}`)
	emit(t, s.Runtime, "ping", "1")
	until(t, "the circle's end", func() bool { return s.info(t, "b", 0).Refused == 1 })
	a, b := s.info(t, "a", 0), s.info(t, "b", 0)
	if a.Started != 2 || b.Started != 2 || !strings.HasSuffix(b.LastReason, "a chain of events runs in a circle: b -> a -> b -> a -> b") {
		t.Errorf("a %+v\nb %+v", a, b)
	}
}

// Runs that make sentinels with triggers of their own, which do the same, come to an end, over
// a restart too. One that edits its own triggers can do so for ever.
func TestTriggersOfRunsEnd(t *testing.T) {
	db := store.NewMemory()
	opt := runtime.Options{Limits: runtime.Limits{Hops: 3}}
	s := serve(t, db, opt)
	save := func(id sentinels.ID, tag string, by sentinels.RunID) {
		t.Helper()
		src := fmt.Sprintf(`{"id":%q,"name":"n","loop":{"type":"once"},"concurrency":"parallel","steps":[{"type":"pause","event":"end"}],"trigger":{"type":"test","tag":%q}}`, id, tag)
		if _, err := s.SaveWith(within(t), decode(t, s.Runtime, src), runtime.SaveOptions{Expect: runtime.AnyRevision, Run: by}); err != nil {
			t.Fatal(err)
		}
	}
	var run sentinels.RunID
	for i, id := range []sentinels.ID{"g0", "g1", "g2", "g3"} {
		save(id, "first", run)
		adm := s.fire(t, id, 0, fired(i))
		if want := i < 3; (adm.Outcome == triggers.Started) != want {
			t.Fatalf("%s: %+v", id, adm)
		}
		if run = adm.Run; run != "" {
			until(t, "the iteration of the run", func() bool { hops, _ := s.Chain(run); return hops == i+1 })
		}
	}
	save("own", "first", "")
	for i := range 5 {
		adm := s.fire(t, "own", 0, fired(i))
		if adm.Outcome != triggers.Started {
			t.Fatalf("own triggers, edit %d: %+v", i, adm)
		}
		s.number(t, adm.Run)
		save("own", fmt.Sprint(i), adm.Run)
	}
	s = serve(t, db.Snapshot(), opt)
	if adm := s.fire(t, "g3", 0, fired(9)); adm.Outcome != triggers.Refused || !strings.Contains(adm.Reason, "g0 -> g1 -> g2 -> g3") {
		t.Errorf("after a restart: %+v", adm)
	}
	save("g3", "of a person", "")
	if adm := s.fire(t, "g3", 0, fired(10)); adm.Outcome != triggers.Started {
		t.Errorf("a trigger of a person: %+v", adm)
	}
}

// Files of definitions that are written during runs continue their chain. A sentinel that writes
// its own file keeps the chain of its triggers, also while longer ones are active.
func TestFilesOfRunsEnd(t *testing.T) {
	s := serve(t, store.NewMemory(), runtime.Options{Limits: runtime.Limits{Hops: 3}})
	save := func(id sentinels.ID, n int, changed time.Time) {
		t.Helper()
		src := fmt.Sprintf(`{"id":%q,"name":"n","loop":{"type":"once"},"concurrency":"parallel","steps":[{"type":"pause","event":"end"}],"trigger":{"type":"test","tag":"%d"}}`, id, n)
		if _, err := s.SaveWith(within(t), decode(t, s.Runtime, src), runtime.SaveOptions{Expect: runtime.AnyRevision, Changed: changed}); err != nil {
			t.Fatal(err)
		}
	}
	before := time.Now().Add(-time.Hour)
	save("own", 0, before)
	for i, id := range []sentinels.ID{"g0", "g1", "g2", "g3"} {
		changed := before
		if i > 0 {
			changed = time.Now()
		}
		save(id, i, changed)
		adm := s.fire(t, id, 0, fired(i))
		if want := i < 3; (adm.Outcome == triggers.Started) != want {
			t.Fatalf("%s: %+v", id, adm)
		}
		if run := adm.Run; run != "" {
			until(t, "the chain of the run", func() bool { hops, _ := s.Chain(run); return hops == i+1 })
		}
	}
	for i := range 5 {
		adm := s.fire(t, "own", 0, fired(i))
		if adm.Outcome != triggers.Started {
			t.Fatalf("own file, edit %d: %+v", i, adm)
		}
		s.number(t, adm.Run)
		save("own", i+1, time.Now())
	}
	save("g3", 9, before)
	if adm := s.fire(t, "g3", 0, fired(10)); adm.Outcome != triggers.Started {
		t.Errorf("a file of a person: %+v", adm)
	}
}

// A firing that reports the save of its definition continues the chain of the run that saved
// it, so that sentinels which edit each other come to an end.
func TestEditsInACircleEnd(t *testing.T) {
	s := serve(t, store.NewMemory(), runtime.Options{Limits: runtime.Limits{Hops: 4}})
	var run sentinels.RunID
	for i := range 5 {
		id := sentinels.ID([]string{"a", "b"}[i%2])
		src := fmt.Sprintf(`{"id":%q,"name":"edit %d","loop":{"type":"once"},"concurrency":"parallel","steps":[{"type":"pause","event":"end"}],"trigger":{"type":"test"}}`, id, i)
		if _, err := s.SaveWith(within(t), decode(t, s.Runtime, src), runtime.SaveOptions{Expect: runtime.AnyRevision, Run: run}); err != nil {
			t.Fatal(err)
		}
		f := fired(i)
		f.Saved = true
		adm := s.fire(t, id, 0, f)
		if want := i < 4; (adm.Outcome == triggers.Started) != want {
			t.Fatalf("edit %d: %+v", i, adm)
		}
		if run = adm.Run; run != "" {
			until(t, "the iteration of the run", func() bool { hops, _ := s.Chain(run); return hops == i+1 })
		}
	}
}

// A run that cannot be started drops the fire and says why.
func TestFireThatCannotStart(t *testing.T) {
	s := serve(t, store.NewMemory(), runtime.Options{})
	s.save(t, "a", `"inputs":{"x":{"type":"string","required":true}},"concurrency":"queue","trigger":{"type":"test"}`)
	adm := s.fire(t, "a", 0, fired(1))
	i := s.info(t, "a", 0)
	if adm.Outcome != triggers.Refused || !strings.Contains(adm.Reason, `requires the input "x"`) || i.Problem == "" || i.Refused != 1 {
		t.Errorf("%+v, %+v", adm, i)
	}
	sums(t, i)
}

// Triggers follow the definitions: saved, edited, deleted, and deleted while
// nothing was armed.
func TestTriggersFollowDefinitions(t *testing.T) {
	db := store.NewMemory()
	s := serve(t, db, runtime.Options{})
	s.save(t, "a", `"trigger":[{"type":"test","tag":"x"},{"type":"test","tag":"x"},{"type":"test","tag":"y"}]`)
	var got []string
	infos, err := s.Triggers("")
	for _, i := range infos {
		got = append(got, fmt.Sprintf("%s %d %s %v %d", i.Sentinel, i.Index, i.Type, i.Armed, strings.Count(i.Name, "#2")))
	}
	want := []string{"a 0 test true 0", "a 1 test true 1", "a 2 test true 0"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("(-want +got):\n%s%v", diff, err)
	}
	first := s.fire(t, "a", 2, fired(1))
	since := s.envs[2]
	// White space, the order of keys and other triggers do not make it another.
	s.save(t, "a", `"trigger":{  "tag":"y", "type":"test"}`)
	if env := s.envs[len(s.envs)-1]; env.Name != since.Name || !env.Since.Equal(since.Since) || env.Revision != 2 || env.Starting {
		t.Errorf("env %+v, before %+v", env, since)
	}
	if i := s.info(t, "a", 0); i.Started != 1 || i.LastRun != first.Run {
		t.Errorf("%+v", i)
	}
	if err := s.Delete(within(t), "a", runtime.AnyRevision); err != nil {
		t.Fatal(err)
	}
	if _, err := s.tryFire(short(t), "a", 0, fired(2)); err == nil {
		t.Error("a deleted sentinel's trigger fired")
	}
	left := func() (n int) {
		for _, bucket := range []string{"triggers", "triggerkeys", "triggerpending", "triggerqueue"} {
			if err := db.Scan(bucket, nil, nil, false, func([]byte, []byte) bool { n++; return true }); err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	if n := left(); n != 0 {
		t.Errorf("%d pairs are left of a deleted sentinel", n)
	}
	s.save(t, "a", `"trigger":{"type":"test","tag":"y"}`)
	if i := s.info(t, "a", 0); i.Fired != 0 {
		t.Errorf("after it was deleted: %+v", i)
	}
	s.Disarm()
	if err := s.Delete(within(t), "a", runtime.AnyRevision); err != nil {
		t.Fatal(err)
	}
	if n := left(); n != 0 {
		t.Errorf("%d pairs are left of a sentinel deleted while nothing was armed", n)
	}
}

func short(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// After Disarm nothing fires and nothing that waits starts; Arm goes on with it.
func TestDisarm(t *testing.T) {
	s := serve(t, store.NewMemory(), runtime.Options{})
	s.save(t, "a", `"concurrency":"queue","trigger":{"type":"test"}`)
	run := s.fire(t, "a", 0, fired(1)).Run
	s.fire(t, "a", 0, fired(2))
	s.Disarm()
	s.Disarm()
	if i := s.info(t, "a", 0); i.Armed || i.Started != 1 || i.Waiting != 1 {
		t.Errorf("%+v", i)
	}
	if _, err := s.tryFire(short(t), "a", 0, fired(3)); err == nil {
		t.Error("a disarmed trigger fired")
	}
	for _, id := range []sentinels.ID{"a", "none"} { // a stranger does not learn which ids there are
		if _, err := s.Receive(within(t), id, "", triggers.Request{}); abi.CodeOf(err) != abi.Unavailable {
			t.Errorf("a request for %q: %v", id, err)
		}
	}
	s.end(t, run)
	if order := s.order(t, "a"); len(order) != 1 {
		t.Errorf("runs %v", order)
	}
	for range 2 {
		if err := s.Arm(within(t)); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "the queued run", func() bool { return len(s.order(t, "a")) == 2 })
	for _, env := range s.envs {
		if env.Starting { // nothing was stored when the host had just started
			t.Errorf("%+v", env)
		}
	}
}

// Paused triggers do not fire, durably, and what waited goes on when they do.
func TestPauseTriggers(t *testing.T) {
	db := store.NewMemory()
	s := serve(t, db, runtime.Options{})
	s.save(t, "a", `"concurrency":"queue","trigger":[{"type":"list","n":3},{"type":"event","event":"go"},{"type":"hook"}]`)
	until(t, "the list", func() bool { return s.info(t, "a", 0).Fired == 3 })
	if err := s.PauseTriggers(within(t), "a", runtime.TriggerPause{}); err != nil {
		t.Fatal(err)
	}
	check := func(s serving) {
		t.Helper()
		for i := range 3 {
			if i := s.info(t, "a", i); i.Armed || !i.Paused || !i.Next.IsZero() {
				t.Errorf("%+v", i)
			}
		}
		good := triggers.Request{Header: map[string][]string{"Key": {"k"}}, Body: []byte("{}")}
		if _, err := s.Receive(within(t), "a", "", good); abi.CodeOf(err) != abi.Conflict {
			t.Errorf("a request: %v", err)
		}
		if _, err := s.Receive(within(t), "a", "", triggers.Request{Body: []byte("forged")}); abi.CodeOf(err) != abi.Denied {
			t.Errorf("a forged request: %v", err)
		}
	}
	check(s)
	emit(t, s.Runtime, "go", "1")
	snap := db.Snapshot()
	s.Close()
	s = serve(t, snap, runtime.Options{})
	check(s)
	s.save(t, "a", `"concurrency":"queue","trigger":[{"type":"list","n":3},{"type":"event","event":"go"},{"type":"hook"}],"tags":["x"]`)
	check(s)
	if n := s.info(t, "a", 1).Fired; n != 0 {
		t.Errorf("%d events fired", n)
	}
	if err := s.ResumeTriggers(within(t), "a", nil); err != nil {
		t.Fatal(err)
	}
	until(t, "the event", func() bool { return s.info(t, "a", 1).Fired == 1 })
	if i := s.info(t, "a", 0); !i.Armed || i.Paused || i.Next.IsZero() || i.Fired != 3 {
		t.Errorf("%+v", i)
	}
	if err := s.PauseTriggers(within(t), "none", runtime.TriggerPause{}); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("of no sentinel: %v", err)
	}
}

func TestReceive(t *testing.T) {
	s := serve(t, store.NewMemory(), runtime.Options{})
	s.save(t, "a", `"trigger":[{"type":"test"},{"type":"hook"}]`)
	s.save(t, "b", `"trigger":[{"type":"hook"},{"type":"hook","tag":"x"}]`)
	s.save(t, "c", `"trigger":{"type":"test"}`)
	request := func(key, body string) triggers.Request {
		return triggers.Request{Method: "POST", Header: map[string][]string{"Key": {key}}, Body: []byte(body)}
	}
	adm, err := s.Receive(within(t), "a", "", request("1", `{"n":7}`))
	if err != nil || len(adm) != 1 || adm[0].Outcome != triggers.Started || s.number(t, adm[0].Run) != 7 {
		t.Fatalf("%+v, %v", adm, err)
	}
	again, err := s.Receive(within(t), "a", "1", request("1", `{"n":7}`))
	if err != nil || len(again) != 1 || again[0].Outcome != triggers.Duplicate || again[0].Run != adm[0].Run {
		t.Errorf("%+v, %v", again, err)
	}
	name := s.info(t, "b", 1).Name
	if adm, err := s.Receive(within(t), "b", name, request("1", `{"n":8}`)); err != nil || adm[0].Outcome != triggers.Started {
		t.Errorf("%+v, %v", adm, err)
	}
	tests := []struct {
		id, trigger, body string
		code              abi.Code
	}{
		{"a", "", "forged", abi.Denied},
		{"b", "", "forged", abi.Denied}, // with several, only a good request learns of them
		{"a", "0", "", abi.NotFound},    // this kind takes no requests
		{"b", "", "", abi.BadFields},
		{"b", "hook", "", abi.NotFound},
		{"c", "", "", abi.NotFound},
		{"d", "", "", abi.NotFound},
		{"a", "", strings.Repeat("x", triggers.MaxBody+1), abi.Limit},
	}
	for _, tt := range tests {
		if _, err := s.Receive(within(t), sentinels.ID(tt.id), tt.trigger, request("2", tt.body)); abi.CodeOf(err) != tt.code {
			t.Errorf("%s %q: %v, want %s", tt.id, tt.trigger, err, tt.code)
		}
	}
}

// What is wrong with a trigger is shown and keeps no other one from firing.
func TestTriggerProblems(t *testing.T) {
	s := serve(t, store.NewMemory(), runtime.Options{})
	_, problems := s.Decode([]byte(`{"name":"a","loop":{"type":"once"},"steps":[],"trigger":{"type":"test","bad":"check"}}`), "")
	if len(problems) != 1 || !strings.Contains(problems[0].Message, "it is bad") {
		t.Errorf("problems %v", problems)
	}
	s.save(t, "a", `"trigger":[{"type":"test","bad":"arm"},{"type":"test"}]`)
	if i := s.info(t, "a", 0); i.Armed || !strings.Contains(i.Problem, "cannot be armed") {
		t.Errorf("%+v", i)
	}
	if adm := s.fire(t, "a", 0, fired(1)); adm.Outcome != triggers.Started { // the one that was armed
		t.Errorf("%+v", adm)
	}
	s.mu.Lock()
	s.fail = errLost
	s.mu.Unlock()
	s.save(t, "b", `"trigger":{"type":"test"}`)
	until(t, "the problem", func() bool { return s.info(t, "b", 0).Problem == "the watch is lost" })
	s.mu.Lock()
	s.fail = nil
	s.mu.Unlock()
	s.fire(t, "b", 0, fired(1)) // it is run again after a rest
	if i := s.info(t, "b", 0); i.Problem != "" || !i.Armed {
		t.Errorf("%+v", i)
	}
}

// Observers receive every outcome once it is durable, in order.
func TestTriggerFiredIsTold(t *testing.T) {
	var mu sync.Mutex
	var told []runtime.TriggerFired
	s := serve(t, store.NewMemory(), runtime.Options{Observer: runtime.Observer{Trigger: func(f runtime.TriggerFired) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, f)
	}}})
	s.save(t, "a", `"concurrency":"queue","trigger":{"type":"test","filter":"$event.n < 5"}`)
	run := s.fire(t, "a", 0, fired(1)).Run
	s.fire(t, "a", 0, fired(9))
	s.fire(t, "a", 0, fired(2))
	s.end(t, run)
	until(t, "the second run", func() bool { mu.Lock(); defer mu.Unlock(); return len(told) == 4 })
	want := []runtime.TriggerFired{
		{Outcome: triggers.Started}, {Outcome: triggers.Filtered}, {Outcome: triggers.Queued}, {Outcome: triggers.Started},
	}
	for i := range want {
		want[i].Sentinel, want[i].Trigger, want[i].Type = "a", s.info(t, "a", 0).Name, "test"
	}
	ignore := cmpopts.IgnoreFields(runtime.TriggerFired{}, "At", "Run", "Reason", "Event")
	if diff := cmp.Diff(want, told, ignore); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	if told[0].Run != run || told[0].Event == nil || string(told[3].Event.Data) != `{"n":2}` {
		t.Errorf("told %+v", told)
	}
}

// A store that cannot be written does not block the end of callers: neither firings
// that wait for their commit nor an edit that waits for theirs.
func TestCloseWhileTheStoreStalls(t *testing.T) {
	db := store.NewMemory()
	s := serve(t, db, runtime.Options{})
	s.save(t, "a", `"concurrency":"parallel","trigger":{"type":"test"}`)
	db.SetFault(errLost)
	var waits sync.WaitGroup
	ended := make(chan struct{})
	waits.Go(func() {
		ctx, cancel := context.WithTimeout(within(t), time.Second)
		defer cancel()
		if adm, err := s.tryFire(ctx, "a", 0, fired(1)); err == nil {
			t.Errorf("a fire was admitted: %+v", adm)
		}
	})
	waits.Go(func() {
		if err := s.PauseTriggers(within(t), "a", runtime.TriggerPause{}); err == nil {
			t.Error("a pause was kept")
		}
	})
	time.AfterFunc(5*time.Millisecond, func() { s.Close(); close(ended) })
	select {
	case <-ended:
	case <-time.After(2 * time.Minute):
		t.Fatal("the runtime does not close")
	}
	// The fake triggers ended with the runtime; a waiter for one ends by itself.
	waits.Wait()
}
