package runtime_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime"
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
			at := db.length()
			second := start(t, s.Runtime, overlapping, runtime.StartOptions{Overlap: policy})
			next := db.prefix(t, at+1) // the start of the second one is the next batch
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
