package runtime_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// overlapping is a run that ends with the event "go".
const overlapping = `{"id":"o","name":"o","loop":{"type":"once"},"steps":[{"type":"pause","event":"go"}]}`

// TestStartsObeyOverlap: with skip a start by hand is refused while a run is active, and says which;
// with queue it begins when those before it have ended; with restart it stops them; without a policy,
// which is that of --force, it begins beside them.
func TestStartsObeyOverlap(t *testing.T) {
	s := serve(t, newRecordingStore(), runtime.Options{})
	begun := func(id sentinels.RunID) bool { return status(t, s.Runtime, id).Iteration > 0 }
	first := start(t, s.Runtime, overlapping, runtime.StartOptions{Overlap: sentinels.OverlapSkip})
	until(t, "the first run", func() bool { return begun(first) })
	_, err := s.Start(within(t), decode(t, s.Runtime, overlapping), runtime.StartOptions{Overlap: sentinels.OverlapSkip})
	if abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), "run "+string(first)+" is running") {
		t.Errorf("a start with skip: %v", err)
	}
	queued := start(t, s.Runtime, overlapping, runtime.StartOptions{Overlap: sentinels.OverlapQueue})
	behind := start(t, s.Runtime, overlapping, runtime.StartOptions{Overlap: sentinels.OverlapQueue})
	beside := start(t, s.Runtime, overlapping, runtime.StartOptions{})
	until(t, "the forced run", func() bool { return begun(beside) })
	until(t, "the reason of the wait", func() bool {
		waits := status(t, s.Runtime, queued).Queued
		return len(waits) == 1 && strings.Contains(waits[0].Reason, "an earlier run of o is active")
	})
	if begun(queued) {
		t.Error("the queued run has begun")
	}
	if err := s.Stop(within(t), first); err != nil {
		t.Fatal(err)
	}
	until(t, "the queued run", func() bool { return begun(queued) })
	if begun(behind) {
		t.Error("both queued runs have begun")
	}
	newest := start(t, s.Runtime, overlapping, runtime.StartOptions{Overlap: sentinels.OverlapRestart})
	until(t, "the newest run", func() bool { return begun(newest) })
	for _, id := range []sentinels.RunID{queued, behind, beside} {
		if res := wait(t, s.Runtime, id); res.Status != sentinels.StatusStopped {
			t.Errorf("run %s is %s", id, res.Status)
		}
	}
	emit(t, s.Runtime, "go", "")
	wait(t, s.Runtime, newest)
	again := start(t, s.Runtime, overlapping, runtime.StartOptions{Overlap: sentinels.OverlapSkip})
	emit(t, s.Runtime, "go", "")
	wait(t, s.Runtime, again)
}

// TestForksObeyOverlap: a fork begins while a run is active as a start does, by the concurrency of the
// definition that it has, and beside it only by force.
func TestForksObeyOverlap(t *testing.T) {
	for _, policy := range []sentinels.Overlap{sentinels.OverlapSkip, sentinels.OverlapQueue, sentinels.OverlapRestart} {
		t.Run(string(policy), func(t *testing.T) {
			s := serve(t, newRecordingStore(), runtime.Options{})
			begun := func(id sentinels.RunID) bool { return status(t, s.Runtime, id).Iteration > 0 }
			def := strings.Replace(overlapping, `"name":"o"`, `"name":"o","concurrency":"`+string(policy)+`"`, 1)
			ended := start(t, s.Runtime, def, runtime.StartOptions{})
			until(t, "the run that is forked", func() bool { return begun(ended) })
			if err := s.Stop(within(t), ended); err != nil {
				t.Fatal(err)
			}
			active := start(t, s.Runtime, def, runtime.StartOptions{})
			until(t, "the active run", func() bool { return begun(active) })
			beside, err := s.Fork(within(t), ended, runtime.ForkOptions{Force: true})
			if err != nil {
				t.Fatal(err)
			}
			until(t, "the forced fork", func() bool { return begun(beside) })
			fork, err := s.Fork(within(t), ended, runtime.ForkOptions{})
			if policy == sentinels.OverlapSkip {
				if abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), "run "+string(active)+" is running") {
					t.Errorf("a fork beside run %s: %s, %v", active, fork, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if policy == sentinels.OverlapQueue {
				until(t, "the reason of the wait", func() bool { return len(status(t, s.Runtime, fork).Queued) == 1 })
				if begun(fork) {
					t.Error("the fork has begun beside the active run")
				}
				for _, id := range []sentinels.RunID{active, beside} {
					if err := s.Stop(within(t), id); err != nil {
						t.Fatal(err)
					}
				}
			}
			until(t, "the fork", func() bool { return begun(fork) })
			for _, id := range []sentinels.RunID{active, beside} {
				if res := wait(t, s.Runtime, id); res.Status != sentinels.StatusStopped {
					t.Errorf("run %s is %s", id, res.Status)
				}
			}
		})
	}
}

// TestPersonsComeBeforeAgents: runs of an agent that wait for their turn hold up no person, and none of
// them begins beside the person's run.
func TestPersonsComeBeforeAgents(t *testing.T) {
	s := serve(t, newRecordingStore(), runtime.Options{})
	begun := func(id sentinels.RunID) bool { return status(t, s.Runtime, id).Iteration > 0 }
	agent := runtime.StartOptions{Overlap: sentinels.OverlapQueue, As: "agent:ci"}
	first := start(t, s.Runtime, overlapping, agent)
	until(t, "the first run", func() bool { return begun(first) })
	var behind []sentinels.RunID
	for range 3 {
		behind = append(behind, start(t, s.Runtime, overlapping, agent))
	}
	person := start(t, s.Runtime, overlapping, runtime.StartOptions{Overlap: sentinels.OverlapQueue})
	if err := s.Stop(within(t), first); err != nil {
		t.Fatal(err)
	}
	until(t, "the run of the person", func() bool { return begun(person) })
	for i, next := range behind {
		for _, id := range behind[i:] {
			if begun(id) {
				t.Fatalf("run %d of the agent has begun beside another one", i)
			}
		}
		before := person
		if i > 0 {
			before = behind[i-1]
		}
		if err := s.Stop(within(t), before); err != nil {
			t.Fatal(err)
		}
		until(t, "the next run of the agent", func() bool { return begun(next) })
	}
}

// TestConcurrentStartsObeyOverlap: of many starts at the same time, one begins.
func TestConcurrentStartsObeyOverlap(t *testing.T) {
	s := serve(t, newRecordingStore(), runtime.Options{})
	def := decode(t, s.Runtime, overlapping)
	var mu sync.Mutex
	var begun []sentinels.RunID
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			id, err := s.Start(within(t), def, runtime.StartOptions{Overlap: sentinels.OverlapSkip})
			if err != nil && abi.CodeOf(err) != abi.Conflict {
				t.Error(err)
			}
			if err == nil {
				mu.Lock()
				begun = append(begun, id)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(begun) != 1 {
		t.Errorf("%d runs have begun", len(begun))
	}
}

// TestOverlapSurvivesACrash: after kill -9 a queued run still waits for the one before it, one with
// restart stops it, and with skip no other begins.
func TestOverlapSurvivesACrash(t *testing.T) {
	for policy, want := range map[sentinels.Overlap]sentinels.Status{sentinels.OverlapQueue: sentinels.StatusCompleted, sentinels.OverlapRestart: sentinels.StatusStopped} {
		t.Run(string(policy), func(t *testing.T) {
			db := newRecordingStore()
			s := serve(t, db, runtime.Options{})
			first := start(t, s.Runtime, overlapping, runtime.StartOptions{})
			until(t, "the first run", func() bool { return status(t, s.Runtime, first).Iteration > 0 })
			second := start(t, s.Runtime, overlapping, runtime.StartOptions{Overlap: policy})
			next := db.prefix(t, db.after(t, 2, kind(journal.RunStart)))
			s.Close()
			s = serving{fakeTriggers: new(fakeTriggers), w: newFakeHost()}
			s.Runtime = open(t, s.w, next, runtime.Options{Triggers: s.set()})
			if rec := resumeAll(t, s.Runtime); rec.Resumed != 2 {
				t.Fatalf("%+v", rec)
			}
			if err := s.Arm(within(t)); err != nil {
				t.Fatal(err)
			}
			if policy == sentinels.OverlapQueue {
				_, err := s.Start(within(t), decode(t, s.Runtime, overlapping), runtime.StartOptions{Overlap: sentinels.OverlapSkip})
				if abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), string(first)) {
					t.Errorf("a start with skip: %v", err)
				}
				if status(t, s.Runtime, second).Iteration > 0 {
					t.Error("the queued run has begun")
				}
				emit(t, s.Runtime, "go", "")
			}
			if res := wait(t, s.Runtime, first); res.Status != want {
				t.Errorf("the first run is %s, want %s", res.Status, want)
			}
			until(t, "the second run", func() bool { return status(t, s.Runtime, second).Iteration > 0 })
		})
	}
}

// TestQueuedIsAStatus: a run that waits for its turn, and a child that waits for its place, are queued: in the answer to
// the start, in lists and their filters, in the progress and events of runs, after a pause, and after kill -9.
func TestQueuedIsAStatus(t *testing.T) {
	const queued, running = sentinels.StatusQueued, sentinels.StatusRunning
	var mu sync.Mutex
	var shown []string
	opt := runtime.Options{Limits: runtime.Limits{Children: 1}}
	opt.Observer.Progress = func(p runtime.Progress) {
		if p.Event == runtime.OnRunStart || p.Event == runtime.OnStatus {
			mu.Lock()
			shown = append(shown, fmt.Sprint(p.Run, " ", p.Event, " ", p.Status, " ", p.Message))
			mu.Unlock()
		}
	}
	db := newRecordingStore()
	s := serve(t, db, opt)
	s.ExpectRunEvents("sentinel:*:*")
	first := start(t, s.Runtime, overlapping, runtime.StartOptions{Overlap: sentinels.OverlapQueue})
	until(t, "the first run", func() bool { return status(t, s.Runtime, first).Iteration > 0 })
	second := start(t, s.Runtime, overlapping, runtime.StartOptions{Overlap: sentinels.OverlapQueue})
	check := func(when string, want sentinels.Status) {
		t.Helper()
		info := status(t, s.Runtime, second)
		if info.Status != want || info.Live && (want == queued) != (len(info.Queued) == 1) {
			t.Errorf("%s: the run is %s behind %+v, want %s", when, info.Status, info.Queued, want)
		}
		for _, filter := range []runtime.RunFilter{{Status: want}, {Sentinel: "o", Statuses: []sentinels.Status{want}}, {Statuses: runtime.Unfinished()}} {
			list, err := s.Runs(filter)
			if err != nil || !slices.ContainsFunc(list, func(r runtime.RunInfo) bool { return r.ID == second && r.Status == want }) {
				t.Errorf("%s: %+v lists %+v, %v", when, filter, list, err)
			}
		}
	}
	check("at once", queued)
	if info := status(t, s.Runtime, first); info.Status != running || len(info.Queued) > 0 {
		t.Errorf("the first run is %s behind %+v", info.Status, info.Queued)
	}
	if err := s.Pause(within(t), second, "ann"); err != nil {
		t.Fatal(err)
	}
	if info := status(t, s.Runtime, second); info.Status != sentinels.StatusPaused {
		t.Errorf("paused in the queue: %s", info.Status)
	}
	if err := s.Resume(within(t), second, runtime.ResumeOptions{}); err != nil {
		t.Fatal(err)
	}
	check("resumed in the queue", queued)
	until(t, "the events", func() bool {
		return slices.Equal(runEvents(t, s.Runtime), []string{"sentinel:o:started", "sentinel:o:started", "sentinel:o:paused", "sentinel:o:resumed"})
	})

	next := db.prefix(t, db.length())
	s.Close()
	s = serving{fakeTriggers: new(fakeTriggers), w: newFakeHost()}
	opt.Triggers = s.set()
	s.Runtime = open(t, s.w, next, opt)
	check("in the store", queued)
	resumeAll(t, s.Runtime)
	check("after a crash", queued)
	s.ExpectRunEvents("sentinel:*:*")
	if err := s.Stop(within(t), first); err != nil {
		t.Fatal(err)
	}
	until(t, "the second run", func() bool { return status(t, s.Runtime, second).Iteration > 0 })
	check("in its turn", running)
	emit(t, s.Runtime, "go", "")
	if res := wait(t, s.Runtime, second); res.Status != sentinels.StatusCompleted {
		t.Errorf("%s %v", res.Status, res.Error)
	}
	mu.Lock()
	defer mu.Unlock()
	const reason = "an earlier run of o is active (concurrency: queue)"
	var got []string
	for _, line := range shown {
		if of, is := strings.CutPrefix(line, string(second)+" "); is {
			got = append(got, of)
		}
	}
	want := []string{
		"run.start queued " + reason, "status paused by ann", "status queued " + reason,
		"status queued " + reason, "status running ", // of the second process
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}

// TestStoppedInTheQueue: a run that is stopped while it waits for its turn executes its finally at once, within its time
// limit, and runs behind it are not held up. A crash within it does not put the run into the queue again.
func TestStoppedInTheQueue(t *testing.T) {
	const ending = `{"id":"o","name":"o","loop":{"type":"once"},"steps":[{"type":"pause","event":"go"}],
		"finally":[{"type":"call","command":"world/act","value":1},{"type":"pause","event":"never"}],"safety":{"finallyTimeoutMs":%d}}`
	for name, crash := range map[string]bool{"alone": false, "with a crash": true} {
		t.Run(name, func(t *testing.T) {
			ms := 50
			if crash {
				ms = 3000 // that the crash is within it
			}
			db := newRecordingStore()
			s := serve(t, db, runtime.Options{})
			first := start(t, s.Runtime, overlapping, runtime.StartOptions{Overlap: sentinels.OverlapQueue})
			until(t, "the first run", func() bool { return status(t, s.Runtime, first).Iteration > 0 })
			second := start(t, s.Runtime, fmt.Sprintf(ending, ms), runtime.StartOptions{Overlap: sentinels.OverlapQueue})
			if crash {
				go func() { _ = s.Stop(context.WithoutCancel(t.Context()), second) }() // ends with the runtime
				until(t, "its finally", func() bool { return db.has(t, kind(journal.CallEnd)) })
				if info := status(t, s.Runtime, second); info.Status != sentinels.StatusRunning || len(info.Queued) > 0 {
					t.Errorf("in its finally it is %s behind %+v", info.Status, info.Queued)
				}
				next := db.prefix(t, db.length())
				s.Close()
				s = serve(t, next, runtime.Options{})
			} else if err := s.Stop(within(t), second); err != nil {
				t.Fatal(err)
			}
			res := wait(t, s.Runtime, second)
			if res.Status != sentinels.StatusStopped || res.Finally == nil || res.Finally.Code != abi.Timeout {
				t.Errorf("%s %v, finally %v", res.Status, res.Error, res.Finally)
			}
			if info := status(t, s.Runtime, first); info.Status != sentinels.StatusRunning {
				t.Errorf("the first run is %s", info.Status)
			}
			emit(t, s.Runtime, "go", "")
			wait(t, s.Runtime, first)
			third := start(t, s.Runtime, overlapping, runtime.StartOptions{Overlap: sentinels.OverlapQueue})
			until(t, "the third run", func() bool { return status(t, s.Runtime, third).Iteration > 0 })
		})
	}
}
