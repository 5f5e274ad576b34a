package runtime_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// chores is a sentinel for each policy and way to wait, with what fires it.
var chores = []struct {
	id, trigger string
	fires       uint64
}{
	{"queue", `"concurrency":"queue","trigger":{"type":"list","n":6}`, 6},
	{"parallel", `"concurrency":"parallel","trigger":{"type":"list","n":4}`, 4},
	{"event", `"concurrency":"queue","trigger":{"type":"event","event":"go:*","filter":"$event.n !== 2"}`, 4},
	{"debounce", `"concurrency":"queue","trigger":{"type":"list","n":5,"debounceMs":1}`, 5},
	{"restart", `"concurrency":"restart","trigger":{"type":"list","n":4}`, 4},
	{"skip", `"trigger":{"type":"list","n":4}`, 4},
}

// doChores brings a process from wherever a crash left its store to the end of
// all that is to do. What a user did and was not told is done again.
func doChores(t *testing.T, db store.Store) serving {
	t.Helper()
	s := serve(t, db, runtime.Options{OnInterrupt: sentinels.InterruptRetry, Limits: runtime.Limits{Crashes: 1000}})
	for _, c := range chores {
		s.saveSteps(t, c.id, `{"type":"pause","durationMs":1},{"type":"call","command":"world/act","value":"$event.n"}`, c.trigger)
	}
	for n := range 4 {
		e := sentinels.Event{ID: fmt.Sprint("go", n), Source: "test", Name: fmt.Sprint("go:", n), Data: fmt.Appendf(nil, `{"n":%d}`, n)}
		if _, err := s.Emit(within(t), e); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range chores {
		until(t, "the end of "+c.id, func() bool {
			i := s.info(t, sentinels.ID(c.id), 0)
			if i.Fired < c.fires || i.Waiting > 0 {
				return false
			}
			runs, err := s.Runs(runtime.RunFilter{Sentinel: sentinels.ID(c.id)})
			return err == nil && !slices.ContainsFunc(runs, func(r runtime.RunInfo) bool { return !r.Status.Final() })
		})
	}
	return s
}

// checkChores proves that every fire ended in exactly one outcome.
func checkChores(t *testing.T, s serving) {
	t.Helper()
	runs := map[string][]int{}
	for _, c := range chores {
		i := s.info(t, sentinels.ID(c.id), 0)
		sums(t, i)
		runs[c.id] = s.order(t, i.Sentinel)
		if i.Fired != c.fires || int(i.Started) != len(runs[c.id]) || i.Duplicates != 0 || i.Refused != 0 || i.Missed != 0 {
			t.Errorf("%s: %d runs %v, %+v", c.id, len(runs[c.id]), runs[c.id], i)
		}
	}
	want := map[string][]int{"queue": {0, 1, 2, 3, 4, 5}, "parallel": {0, 1, 2, 3}, "event": {0, 1, 3}}
	for id, order := range want {
		if diff := cmp.Diff(order, runs[id]); diff != "" {
			t.Errorf("runs of %s (-want +got):\n%s", id, diff)
		}
	}
	for id, last := range map[string]int{"debounce": 4, "restart": 3, "skip": -1} {
		order := runs[id]
		if !slices.IsSorted(order) || len(slices.Compact(slices.Clone(order))) != len(order) {
			t.Errorf("runs of %s: %v", id, order)
		}
		if last >= 0 && order[len(order)-1] != last {
			t.Errorf("runs of %s: %v, want the newest fire's at the end", id, order)
		}
	}
}

// TestTriggerCrashAnywhere ends the process after every commit in turn, and for
// some a second time. Wherever that is, each fire ends in exactly one outcome:
// nothing is lost from the queue or while it waits for quiet, nothing is started
// twice, and the counts stay exact.
func TestTriggerCrashAnywhere(t *testing.T) {
	f := newRecordingStore()
	s := doChores(t, f)
	checkChores(t, s)
	s.Close()
	step := 1
	if testing.Short() {
		step = 3
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 0; n < f.length(); n += step {
		t.Run(fmt.Sprint("commit ", n), func(t *testing.T) {
			again := f.prefix(t, n)
			had := again.length()
			s := doChores(t, again)
			checkChores(t, s)
			s.Close()
			if t.Failed() || n%4 != 0 {
				return
			}
			at := had + rng.IntN(again.length()-had+1)
			s = doChores(t, again.prefix(t, at))
			checkChores(t, s)
			s.Close()
		})
		if t.Failed() {
			break
		}
	}
	t.Logf("%d commits", f.length())
}
