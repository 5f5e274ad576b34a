package dispatch_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime/internal/dispatch"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/trigger"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// restart replaces the dispatcher of a harness as the end of its process does: what is in
// memory is lost.
func (h *harness) restart(t *testing.T) {
	t.Helper()
	h.Dispatcher.Close()
	h.Dispatcher = dispatch.New(h.options)
	if err := h.Arm(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestJoinDuringRun: by default all firings of a Joiner during a run become one run behind
// it, also across a restart; skip remains a choice.
func TestJoinDuringRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, store.NewMemory())
		h.arm(t, "s", "", `{"joins":true}`)
		var got []triggers.Outcome
		for i, name := range []string{"a", "b", "c", "d"} {
			if i == 3 {
				h.restart(t)
			}
			got = append(got, h.fire(t, "s", firing(name)).Outcome)
		}
		if diff := cmp.Diff([]triggers.Outcome{triggers.Started, triggers.Queued, triggers.Queued, triggers.Queued}, got); diff != "" {
			t.Error(diff)
		}
		if i := h.info(t, "s"); i.Waiting != 1 || i.Coalesced != 2 {
			t.Errorf("%+v", i)
		}
		first, _ := h.runs.newest()
		if err := h.runs.end(first, sentinels.StatusCompleted); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, event := h.runs.newest(); h.runs.count() != 2 || event.Name != "b+c+d" {
			t.Errorf("%d runs, the newest for %q", h.runs.count(), event.Name)
		}
		if i := h.info(t, "s"); i.Fired != i.Started+i.Coalesced || i.Waiting != 0 {
			t.Errorf("%+v", i)
		}
	})
	for _, tt := range []struct {
		overlap sentinels.Overlap
		options string
	}{{sentinels.OverlapSkip, `{"joins":true}`}, {"", `{"joins":true,"allowConcurrent":false}`}, {"", `{}`}} {
		h := newHarness(t, store.NewMemory())
		h.arm(t, "s", tt.overlap, tt.options)
		h.fire(t, "s", firing("a"))
		if adm := h.fire(t, "s", firing("b")); adm.Outcome != triggers.Skipped {
			t.Errorf("%q %s: %+v", tt.overlap, tt.options, adm)
		}
	}
}

// TestDebounceKeepsAll: a debounce loses no firing, whether they are joined by the kind or
// listed, and across restarts; beyond its limit it is due at once.
func TestDebounceKeepsAll(t *testing.T) {
	for _, options := range []string{`{"debounceMs":60000}`, `{"debounceMs":60000,"joins":true}`} {
		synctest.Test(t, func(t *testing.T) {
			h := newHarness(t, store.NewMemory())
			h.arm(t, "s", "", options)
			for _, name := range []string{"a", "b", "c"} {
				h.fire(t, "s", firing(name))
				h.restart(t)
				time.Sleep(30 * time.Second)
			}
			time.Sleep(31 * time.Second)
			synctest.Wait()
			_, event := h.runs.newest()
			var names []string
			for _, e := range event.Batch {
				names = append(names, e.Name)
			}
			want, wantNames := "c", []string{"a", "b", "c"}
			if options != `{"debounceMs":60000}` {
				want, wantNames = "a+b+c", nil
			}
			if diff := cmp.Diff(wantNames, names); diff != "" || event.Name != want || h.runs.count() != 1 {
				t.Errorf("%d runs, event %q:\n%s", h.runs.count(), event.Name, diff)
			}
			run, _ := h.runs.newest()
			if err := h.runs.end(run, sentinels.StatusCompleted); err != nil {
				t.Fatal(err)
			}
			h.fire(t, "s", firing("d")) // nothing of the batch before is left
			time.Sleep(time.Hour)
			synctest.Wait()
			if _, event := h.runs.newest(); event.Name != "d" || len(event.Batch) > 1 {
				t.Errorf("%+v", event)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, store.NewMemory())
		h.arm(t, "s", sentinels.OverlapParallel, `{"debounceMs":60000}`)
		for range dispatch.MaxPending {
			h.fire(t, "s", firing("a"))
		}
		synctest.Wait()
		if _, event := h.runs.newest(); len(event.Batch) != dispatch.MaxPending {
			t.Errorf("%d events", len(event.Batch))
		}
	})
}

// TestOwnChanges: runs that make the changes which fire them end by themselves, and a
// change at any other time is never lost.
func TestOwnChanges(t *testing.T) {
	changed := func(ignore bool) triggers.Firing {
		f := firing("f")
		f.Changed, f.IgnoreOwn = []time.Time{time.Now()}, ignore
		return f
	}
	// cycle ends the active run, which made a change shortly before.
	cycle := func(t *testing.T, h *harness, ignore bool) triggers.Admission {
		t.Helper()
		time.Sleep(time.Second)
		f := changed(ignore)
		run, _ := h.runs.newest()
		if err := h.runs.end(run, sentinels.StatusCompleted); err != nil {
			t.Fatal(err)
		}
		time.Sleep(400 * time.Millisecond) // the change settles
		return h.fire(t, "s", f)
	}
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, store.NewMemory())
		h.arm(t, "s", "", `{"joins":true}`)
		h.fire(t, "s", changed(true))
		if adm := cycle(t, h, true); adm.Outcome != triggers.Started {
			t.Fatalf("after one run: %+v", adm)
		}
		for n := range 3 {
			if adm := cycle(t, h, true); adm.Outcome != triggers.Debounced {
				t.Fatalf("%d: %+v", n, adm)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		if adm := cycle(t, h, true); adm.Outcome != triggers.Skipped {
			t.Fatalf("at last: %+v", adm)
		}
		want := trigger.Counts{Fired: 6, Started: 5, Skipped: 1, Own: 4}
		if diff := cmp.Diff(want, h.info(t, "s").Counts); diff != "" {
			t.Error(diff)
		}
		// A change while nothing runs begins a new series.
		time.Sleep(time.Second)
		if adm := h.fire(t, "s", changed(true)); adm.Outcome != triggers.Started {
			t.Fatalf("a change of a person: %+v", adm)
		}
		if adm := cycle(t, h, true); adm.Outcome != triggers.Started {
			t.Fatalf("%+v", adm)
		}
		// One that comes while a firing waits starts both at once.
		if adm := cycle(t, h, true); adm.Outcome != triggers.Debounced {
			t.Fatalf("%+v", adm)
		}
		time.Sleep(time.Second)
		runs := h.runs.count()
		h.fire(t, "s", changed(true))
		synctest.Wait()
		_, event := h.runs.newest()
		if h.runs.count() != runs+1 || event.Name != "f+f" || event.Hops != 0 {
			t.Errorf("%d runs, %+v", h.runs.count()-runs, event)
		}
	})
	// Without ignoreOwn the length of the chain is the limit.
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, store.NewMemory())
		h.arm(t, "s", "", `{"joins":true}`)
		h.fire(t, "s", changed(false))
		n := 1
		for ; cycle(t, h, false).Outcome == triggers.Started; n++ {
		}
		if i := h.info(t, "s"); n != 16 || i.Refused != 1 || i.Own != 0 {
			t.Errorf("%d runs, %+v", n, i)
		}
	})
}
