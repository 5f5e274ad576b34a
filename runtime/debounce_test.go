package runtime_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// quick is a definition's only step where the run shall end at once.
const quick = `{"type":"call","command":"world/look"}`

// Debounced fires start one run with the newest event, once it was quiet for long
// enough, and at the latest after the longest wait.
func TestDebounce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, store.NewMemory(), runtime.Options{})
		defer s.Close()
		s.saveSteps(t, "a", quick, `"concurrency":"queue","trigger":{"type":"test","debounceMs":100,"maxWaitMs":250}`)
		begin := time.Now()
		at := func(ms int) { time.Sleep(time.Until(begin.Add(time.Duration(ms) * time.Millisecond))) }
		runs := func(want ...int) {
			t.Helper()
			synctest.Wait()
			if diff := cmp.Diff(append([]int{}, want...), s.order(t, "a")); diff != "" {
				t.Fatalf("runs (-want +got):\n%s", diff)
			}
		}
		fire := func(ms, n int) {
			t.Helper()
			at(ms)
			if adm := s.fire(t, "a", 0, fired(n)); adm.Outcome != triggers.Debounced {
				t.Fatalf("fire %d: %+v", n, adm)
			}
		}
		fire(0, 1)
		fire(60, 2)
		at(150) // 90 ms of quiet are not enough
		runs()
		at(200)
		runs(2)
		for n := range 5 { // never quiet: the longest wait ends it
			fire(1000+60*n, n+3)
		}
		at(1270)
		runs(2, 7)
		at(5000)
		runs(2, 7)
		i := s.info(t, "a", 0)
		sums(t, i)
		want := runtime.TriggerCounts{Fired: 7, Started: 2, Coalesced: 5}
		if diff := cmp.Diff(want, i.Counts); diff != "" || i.Waiting != 0 {
			t.Errorf("%d wait, counts (-want +got):\n%s", i.Waiting, diff)
		}
	})
}

// A fire that waits for quiet survives a crash: it is due at its time, or at once
// if that has passed; and an edit of other parts.
func TestDebounceSurvives(t *testing.T) {
	const trigger = `"trigger":{"type":"test","debounceMs":60000}`
	for name, down := range map[string]time.Duration{"for a moment": time.Second, "beyond its time": time.Hour} {
		t.Run("down "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := store.NewMemory()
				s := serve(t, db, runtime.Options{})
				s.saveSteps(t, "a", quick, trigger)
				begin := time.Now()
				s.fire(t, "a", 0, fired(1))
				s.saveSteps(t, "a", quick, trigger+`,"tags":["edited"]`)
				snap := db.Snapshot()
				s.Close()
				time.Sleep(down)
				s = serve(t, snap, runtime.Options{})
				defer s.Close()
				if early := time.Until(begin.Add(time.Minute)); early > 0 {
					time.Sleep(early - time.Second)
					synctest.Wait()
					if n := len(s.order(t, "a")); n != 0 {
						t.Errorf("%d runs before the fire is due", n)
					}
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if diff := cmp.Diff([]int{1}, s.order(t, "a")); diff != "" {
					t.Errorf("runs (-want +got):\n%s", diff)
				}
				sums(t, s.info(t, "a", 0))
			})
		})
	}
}

// The overlap policy applies when the firing is due. A removed trigger drops its
// debounced firing, which is reported to observers.
func TestDebounceThenPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := make(chan runtime.TriggerFired, 10)
		s := serve(t, store.NewMemory(), runtime.Options{Observer: runtime.Observer{Trigger: func(f runtime.TriggerFired) { told <- f }}})
		defer s.Close()
		s.save(t, "a", `"trigger":[{"type":"test","debounceMs":100},{"type":"test"}]`)
		s.fire(t, "a", 0, triggers.Firing{Key: "k"})
		s.fire(t, "a", 1, fired(2))
		time.Sleep(time.Second)
		synctest.Wait()
		if i := s.info(t, "a", 0); i.Skipped != 1 || i.Waiting != 0 {
			t.Errorf("%+v", i)
		}
		if adm := s.fire(t, "a", 0, triggers.Firing{Key: "k"}); adm.Outcome != triggers.Duplicate || adm.Reason != "a firing with its key was skipped before" {
			t.Errorf("%+v", adm)
		}
		s.fire(t, "a", 0, triggers.Firing{Key: "l"})
		s.save(t, "a", `"trigger":{"type":"test"}`)
		synctest.Wait()
		var got []triggers.Outcome
		for len(told) > 0 {
			got = append(got, (<-told).Outcome)
		}
		want := []triggers.Outcome{triggers.Debounced, triggers.Started, triggers.Skipped, triggers.Duplicate, triggers.Debounced, triggers.Refused}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
	})
}

// A trigger whose Run fails rests longer each time, up to a bound.
func TestFailingTriggerRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, store.NewMemory(), runtime.Options{})
		defer s.Close()
		s.mu.Lock()
		s.fail = errLost
		s.mu.Unlock()
		s.save(t, "a", `"trigger":{"type":"test"}`)
		var after []int
		for _, pause := range []time.Duration{0, 900 * time.Millisecond, 2200 * time.Millisecond, time.Hour} {
			time.Sleep(pause)
			synctest.Wait()
			s.mu.Lock()
			after = append(after, s.runs)
			s.mu.Unlock()
		}
		// At 0, 1, 3, 7, 15, 31, 63, 127, 255 and 511 s, then every five minutes.
		if diff := cmp.Diff([]int{1, 1, 3, 20}, after); diff != "" {
			t.Errorf("runs (-want +got):\n%s", diff)
		}
	})
}
