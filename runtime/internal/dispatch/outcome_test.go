package dispatch_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime/internal/dispatch"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/trigger"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// TestOutcomes fires several times while the run of the first firing is active, and
// compares outcomes and counts with the states of the package comment.
func TestOutcomes(t *testing.T) {
	long := firing("a")
	long.Event.Hops = 16
	keyed := firing("a")
	keyed.Key = "k"
	for _, tt := range []struct {
		name, options string
		overlap       sentinels.Overlap
		firings       []triggers.Firing
		want          []triggers.Outcome
		counts        trigger.Counts
		waiting       int
	}{
		{"skip", `{}`, "", []triggers.Firing{firing("a"), firing("a")},
			[]triggers.Outcome{triggers.Started, triggers.Skipped}, trigger.Counts{Fired: 2, Started: 1, Skipped: 1}, 0},
		{"queue", `{}`, sentinels.OverlapQueue, []triggers.Firing{firing("a"), firing("a")},
			[]triggers.Outcome{triggers.Started, triggers.Queued}, trigger.Counts{Fired: 2, Started: 1, Queued: 1}, 1},
		{"parallel", `{}`, sentinels.OverlapParallel, []triggers.Firing{firing("a"), firing("a")},
			[]triggers.Outcome{triggers.Started, triggers.Started}, trigger.Counts{Fired: 2, Started: 2}, 0},
		{"policy of the trigger", `{"allowConcurrent":false}`, sentinels.OverlapParallel, []triggers.Firing{firing("a"), firing("a")},
			[]triggers.Outcome{triggers.Started, triggers.Skipped}, trigger.Counts{Fired: 2, Started: 1, Skipped: 1}, 0},
		{"key", `{}`, sentinels.OverlapParallel, []triggers.Firing{keyed, keyed},
			[]triggers.Outcome{triggers.Started, triggers.Duplicate}, trigger.Counts{Fired: 2, Started: 1, Duplicates: 1}, 0},
		{"filter", `{"filter":"a"}`, sentinels.OverlapParallel, []triggers.Firing{firing("a"), firing("b")},
			[]triggers.Outcome{triggers.Started, triggers.Filtered}, trigger.Counts{Fired: 2, Started: 1, Filtered: 1}, 0},
		{"broken filter", `{"filter":"broken"}`, sentinels.OverlapParallel, []triggers.Firing{firing("a")},
			[]triggers.Outcome{triggers.Refused}, trigger.Counts{Fired: 1, Refused: 1}, 0},
		{"chain", `{}`, sentinels.OverlapParallel, []triggers.Firing{long},
			[]triggers.Outcome{triggers.Refused}, trigger.Counts{Fired: 1, Refused: 1}, 0},
		{"debounce", `{"debounceMs":3600000}`, "", []triggers.Firing{firing("a"), firing("a"), firing("a")},
			[]triggers.Outcome{triggers.Debounced, triggers.Debounced, triggers.Debounced}, trigger.Counts{Fired: 3, Coalesced: 2}, 1},
		{"missed", `{}`, "", []triggers.Firing{{Missed: 7}},
			[]triggers.Outcome{triggers.Started}, trigger.Counts{Fired: 1, Started: 1, Missed: 7}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHarness(t, store.NewMemory())
			h.arm(t, "s", tt.overlap, tt.options)
			for i, f := range tt.firings {
				if adm := h.fire(t, "s", f); adm.Outcome != tt.want[i] {
					t.Errorf("firing %d: %+v, want %s", i, adm, tt.want[i])
				}
			}
			i := h.info(t, "s")
			if diff := cmp.Diff(tt.counts, i.Counts); diff != "" || i.Waiting != tt.waiting {
				t.Errorf("%d wait, counts (-want +got):\n%s", i.Waiting, diff)
			}
			eventually(t, "the observer", func() bool { return len(h.outcomes()) == len(tt.want) })
			if diff := cmp.Diff(tt.want, h.outcomes()); diff != "" {
				t.Errorf("observed (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRestartCoalesces: while the old run is being stopped, only the newest firing
// waits. Those that it replaced are counted as coalesced.
func TestRestartCoalesces(t *testing.T) {
	h := newHarness(t, store.NewMemory())
	h.runs.block = make(chan struct{})
	h.arm(t, "s", sentinels.OverlapRestart, `{}`)
	h.fire(t, "s", firing("first"))
	for n := range 5 {
		if adm := h.fire(t, "s", firing(fmt.Sprint(n))); adm.Outcome != triggers.Queued {
			t.Fatalf("%+v", adm)
		}
	}
	if i := h.info(t, "s"); i.Waiting != 1 || i.Coalesced != 4 || i.Skipped != 0 {
		t.Errorf("%+v", i)
	}
	close(h.runs.block)
	eventually(t, "the second run", func() bool { return h.info(t, "s").Started == 2 })
	if i := h.info(t, "s"); i.Waiting != 0 || i.Coalesced != 4 || i.Queued != 5 || i.Fired != 6 {
		t.Errorf("%+v", i)
	}
}

// TestQueueIsDrained: what is queued starts one by one, also after a restart of the
// process, and also if its trigger was edited away meanwhile.
func TestQueueIsDrained(t *testing.T) {
	h := newHarness(t, store.NewMemory())
	h.arm(t, "s", sentinels.OverlapQueue, `{}`)
	first := h.fire(t, "s", firing("a"))
	for range 2 {
		h.fire(t, "s", firing("a"))
	}
	if err := h.runs.end(first.Run, sentinels.StatusCompleted); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the second run", func() bool { return h.runs.count() == 2 && h.info(t, "s").Waiting == 1 })

	h.Close()
	next := newHarness(t, h.db.Snapshot())
	next.defs.save("s", sentinels.OverlapQueue, `{"tag":"another trigger"}`)
	if err := next.Arm(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the third run", func() bool { return next.runs.count() == 1 })
	if i := next.info(t, "s"); i.Fired != 0 || i.Waiting != 0 {
		t.Errorf("the new trigger has counts of the old one: %+v", i)
	}
}

// TestUndecidedIsEnded: a run that asks about an interrupted call is ended for a firing that waits,
// before or after it asks, and nothing is ended without a firing.
func TestUndecidedIsEnded(t *testing.T) {
	for _, overlap := range []sentinels.Overlap{sentinels.OverlapSkip, sentinels.OverlapQueue, sentinels.OverlapRestart, sentinels.OverlapParallel} {
		h := newHarness(t, store.NewMemory())
		h.arm(t, "s", overlap, `{}`)
		first := h.fire(t, "s", firing("a"))
		if overlap == sentinels.OverlapQueue {
			h.fire(t, "s", firing("b"))
			h.runs.ask(first.Run)
		} else {
			h.runs.ask(first.Run)
			if r, err := h.runs.Run(first.Run); err != nil || r.Status.Final() {
				t.Fatalf("%s: %s without a firing, %v", overlap, r.Status, err)
			}
			h.fire(t, "s", firing("b"))
		}
		eventually(t, "the second run", func() bool { return h.info(t, "s").Started == 2 && h.info(t, "s").Waiting == 0 })
		eventually(t, "the end of the first", func() bool {
			r, err := h.runs.Run(first.Run)
			return err == nil && r.Status == sentinels.StatusFailed
		})
		if i := h.info(t, "s"); i.Skipped != 0 || i.Fired != 2 {
			t.Errorf("%s: %+v", overlap, i)
		}
	}
}

// TestCannotStart: a run that cannot be started refuses its firing, with the reason;
// an engine that takes nothing now leaves it undecided.
func TestCannotStart(t *testing.T) {
	h := newHarness(t, store.NewMemory())
	h.arm(t, "s", "", `{}`)
	keyed := firing("a")
	keyed.Key = "k"
	for _, tt := range []struct {
		fail      error
		undecided bool
	}{
		{&abi.Error{Code: abi.Unavailable, Message: "closing"}, true},
		{errors.New("disk error"), true},
		{&abi.Error{Code: abi.BadFields, Message: "an input is missing"}, false},
		{sentinels.Problems{{Message: "a step is wrong"}}, false},
	} {
		h.runs.fail = tt.fail
		before := h.info(t, "s")
		adm, err := h.kind.fire(t.Context(), "s", keyed)
		after := h.info(t, "s")
		switch {
		case tt.undecided && (!errors.Is(err, tt.fail) || after.Fired != before.Fired):
			t.Errorf("%v: %+v, %v", tt.fail, adm, err)
		case !tt.undecided && (adm.Outcome != triggers.Refused || !strings.Contains(adm.Reason, tt.fail.Error()) || after.Refused != before.Refused+1 || after.Problem == ""):
			t.Errorf("%v: %+v, %+v, %v", tt.fail, adm, after, err)
		}
	}
	h.runs.fail = nil
	if adm := h.fire(t, "s", keyed); adm.Outcome != triggers.Started { // a refused firing leaves no key
		t.Errorf("%+v", adm)
	}
}

// TestStartedBefore: a key that the trigger no longer remembers is found by the
// start, and the firing is a duplicate that changes nothing else.
func TestStartedBefore(t *testing.T) {
	h := newHarness(t, store.NewMemory())
	h.arm(t, "s", sentinels.OverlapParallel, `{}`)
	keyed := firing("a")
	keyed.Key = "k"
	first := h.fire(t, "s", keyed)
	if err := dispatch.ForgetKeys(t.Context(), h.db); err != nil {
		t.Fatal(err)
	}
	adm := h.fire(t, "s", keyed)
	if adm.Outcome != triggers.Duplicate || adm.Run != first.Run {
		t.Errorf("%+v", adm)
	}
	want := trigger.Counts{Fired: 2, Started: 1, Duplicates: 1}
	if diff := cmp.Diff(want, h.info(t, "s").Counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

// TestReceiveFromRun: a request that a step sent continues the chain of its run, and a chain
// that is too long starts nothing.
func TestReceiveFromRun(t *testing.T) {
	h := newHarness(t, store.NewMemory())
	h.arm(t, "s", sentinels.OverlapParallel, `{}`)
	for hops, want := range map[int]triggers.Outcome{0: triggers.Started, 15: triggers.Started, 16: triggers.Refused} {
		req := triggers.Request{Body: []byte("a"), Chain: func() (int, []string) { return hops, []string{"a"} }}
		list, err := h.Receive(t.Context(), "s", "", req)
		if err != nil || len(list) != 1 || list[0].Outcome != want {
			t.Errorf("%d: %+v %v, want %s", hops, list, err, want)
		}
		if want != triggers.Started {
			continue
		}
		if _, event := h.runs.newest(); event.Hops != hops {
			t.Errorf("%d: %+v", hops, event)
		}
	}
}

// TestReceive: a request gets the outcome of its firings, and the errors of triggers
// that cannot fire.
func TestReceive(t *testing.T) {
	h := newHarness(t, store.NewMemory())
	code := func(want abi.Code) {
		t.Helper()
		if _, err := h.Receive(t.Context(), "s", "", triggers.Request{Body: []byte("a")}); abi.CodeOf(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	code(abi.Unavailable)
	h.arm(t, "s", "", `{}`)
	list, err := h.Receive(t.Context(), "s", "0", triggers.Request{Body: []byte("a")})
	if err != nil || len(list) != 1 || list[0].Outcome != triggers.Started {
		t.Errorf("%+v, %v", list, err)
	}
	if err := h.Pause(t.Context(), "s", trigger.Pause{}); err != nil {
		t.Fatal(err)
	}
	code(abi.Conflict)
	h.set(&h.readOnly, &abi.Error{Code: abi.Unavailable, Message: "read-only"})
	code(abi.Unavailable)
	h.set(&h.readOnly, nil)
	h.defs.delete("s")
	if err := h.Refresh(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	code(abi.NotFound)
	if n := dispatch.Stored(t, h.db); n != 0 {
		t.Errorf("%d pairs are left of a deleted sentinel", n)
	}
}

// TestDebounceIsDue: a debounced firing starts its run once, also if the process
// ended before, and edits refuse it.
func TestDebounceIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, store.NewMemory())
		h.arm(t, "s", "", `{"debounceMs":60000}`)
		h.fire(t, "s", firing("a"))
		time.Sleep(59 * time.Second)
		if h.runs.count() != 0 {
			t.Error("it did not wait")
		}
		h.Disarm()
		time.Sleep(time.Hour)
		if h.runs.count() != 0 {
			t.Error("it fired while disarmed")
		}
		if err := h.Arm(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if i := h.info(t, "s"); h.runs.count() != 1 || i.Started != 1 || i.Waiting != 0 {
			t.Errorf("%d runs, %+v", h.runs.count(), i)
		}
		h.fire(t, "s", firing("b"))
		h.defs.save("s", "", `{"debounceMs":70000}`)
		if err := h.Refresh(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		want := []triggers.Outcome{triggers.Debounced, triggers.Started, triggers.Debounced, triggers.Refused}
		if diff := cmp.Diff(want, h.outcomes()); diff != "" {
			t.Errorf("observed (-want +got):\n%s", diff)
		}
	})
}
