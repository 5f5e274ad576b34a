package dispatch_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/dispatch"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/trigger"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// overdue returns the reports of expected runs that did not come.
func (h *harness) overdue() (reasons []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.observed {
		if f.Outcome == triggers.Overdue {
			reasons = append(reasons, f.Reason)
		}
	}
	return reasons
}

// untilMinute sleeps until a minute of the hour. Times of a bubble begin at midnight.
func untilMinute(minute int) {
	now := time.Now()
	next := now.Truncate(time.Hour).Add(time.Duration(minute) * time.Minute)
	if !next.After(now) {
		next = next.Add(time.Hour)
	}
	time.Sleep(next.Sub(now))
	synctest.Wait()
}

// TestOverdue: a run that does not come within its time is reported once, with the reason, whatever
// it is; the next planned time is expected then.
func TestOverdue(t *testing.T) {
	tests := []struct {
		name, options string
		before        func(t *testing.T, h *harness) // before the full hour
		at            func(t *testing.T, h *harness) // at two minutes past it
		want          string                         // a part of the reason; "" for no report
	}{
		{name: "nothing fires", options: `{"expect":"started"}`, want: "no run began within 10m0s: the trigger did not fire"},
		{name: "a run began", options: `{"expect":"started"}`, at: func(t *testing.T, h *harness) { h.fire(t, "s", firing("a")) }},
		{name: "a run completed", options: `{"expect":"completed"}`, at: func(t *testing.T, h *harness) {
			if err := h.runs.end(h.fire(t, "s", firing("a")).Run, sentinels.StatusCompleted); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "a run failed", options: `{"expect":"completed"}`, at: func(t *testing.T, h *harness) {
			if err := h.runs.end(h.fire(t, "s", firing("a")).Run, sentinels.StatusFailed); err != nil {
				t.Fatal(err)
			}
		}, want: "no run completed within 10m0s: run run001 is failed"},
		{name: "paused", options: `{"expect":"started"}`, before: func(t *testing.T, h *harness) {
			if err := h.Pause(t.Context(), "s", trigger.Pause{}); err != nil {
				t.Fatal(err)
			}
		}, want: "the triggers are paused"},
		{name: "skipped", options: `{"expect":"started"}`,
			before: func(t *testing.T, h *harness) { h.fire(t, "s", firing("a")) },
			at:     func(t *testing.T, h *harness) { h.fire(t, "s", firing("b")) },
			want:   "the firing was skipped: run run001 is running"},
		{name: "a definition that cannot be read", options: `{"expect":"started"}`, before: func(t *testing.T, h *harness) {
			h.defs.spoil("s", errors.New("its plugin is gone"))
			if err := h.Refresh(t.Context(), "s"); err != nil {
				t.Fatal(err)
			}
		}, want: "the definition cannot be read: its plugin is gone"},
		{name: "nothing is expected", options: `{}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t, store.NewMemory())
				h.arm(t, "s", sentinels.OverlapSkip, tt.options)
				untilMinute(50)
				if tt.before != nil {
					tt.before(t, h)
				}
				untilMinute(2)
				if tt.at != nil {
					tt.at(t, h)
				}
				if got := h.overdue(); len(got) > 0 {
					t.Errorf("reported too early: %q", got)
				}
				untilMinute(12)
				got := h.overdue()
				if tt.want == "" {
					if len(got) > 0 {
						t.Errorf("reported %q", got)
					}
					return
				}
				if len(got) != 1 || !strings.Contains(got[0], tt.want) {
					t.Fatalf("reported %q, want one with %q", got, tt.want)
				}
				h.mu.Lock()
				events := strings.Join(h.announced, "\n")
				h.mu.Unlock()
				if strings.Count(events, "s overdue ") != 1 || !strings.Contains(events, "01:00:00") {
					t.Errorf("events:\n%s", events)
				}
				if tt.name == "a definition that cannot be read" {
					return // nothing says what is expected next
				}
				if i := h.info(t, "s"); i.Overdue != 1 || i.Fired != i.Started+i.Skipped {
					t.Errorf("%+v", i)
				}
				untilMinute(12)
				if got := h.overdue(); len(got) != 2 {
					t.Errorf("an hour later there are %d reports, want one more: %q", len(got), got)
				}
			})
		})
	}
}

// TestOverdueAfterDowntime: planned times that pass while the host is down are reported once.
func TestOverdueAfterDowntime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, store.NewMemory())
		h.arm(t, "s", sentinels.OverlapSkip, `{"expect":"started"}`)
		synctest.Wait()
		h.Close()
		time.Sleep(5*time.Hour + 30*time.Minute)
		next := newHarness(t, h.db.Snapshot())
		next.arm(t, "s", sentinels.OverlapSkip, `{"expect":"started"}`)
		synctest.Wait()
		if got := next.overdue(); len(got) != 1 || !strings.Contains(got[0], "the server did not run") {
			t.Errorf("reported %q, want once that the server did not run", got)
		}
		untilMinute(12)
		if got := next.overdue(); len(got) != 2 || !strings.Contains(got[1], "did not fire") {
			t.Errorf("an hour later: %q", got)
		}
	})
}

// TestSkipsInARow: the trigger says how many firings were skipped, since when and by which run.
func TestSkipsInARow(t *testing.T) {
	h := newHarness(t, store.NewMemory())
	h.arm(t, "s", sentinels.OverlapSkip, `{}`)
	first := h.fire(t, "s", firing("a"))
	var reason string
	for range 3 {
		reason = h.fire(t, "s", firing("a")).Reason
	}
	i := h.info(t, "s")
	if i.Skips.Count != 3 || i.Skips.Run != first.Run || i.Skips.Since.IsZero() || !strings.Contains(reason, "; 3 firings in a row were skipped, since ") {
		t.Errorf("%+v, %q", i.Skips, reason)
	}
	if err := h.runs.end(first.Run, sentinels.StatusCompleted); err != nil {
		t.Fatal(err)
	}
	h.fire(t, "s", firing("a"))
	if i := h.info(t, "s"); i.Skips.Count != 0 {
		t.Errorf("after a run has begun: %+v", i.Skips)
	}
}

// TestSkipsAfterRestart: the row of skipped firings goes on after a restart that the run survives, also when the
// late firing of the restart is queued behind the run. It is reported once, and ends when a run starts.
func TestSkipsAfterRestart(t *testing.T) {
	h := newHarness(t, store.NewMemory())
	h.arm(t, "s", sentinels.OverlapSkip, `{}`)
	first := h.fire(t, "s", firing("a"))
	for range 3 {
		h.fire(t, "s", firing("a"))
	}
	before := h.info(t, "s").Skips
	h.restart(t)
	h.arm(t, "s", sentinels.OverlapSkip, `{}`)
	if i := h.info(t, "s"); i.Skips != before {
		t.Errorf("after the restart %+v, before %+v", i.Skips, before)
	}
	missed := firing("late")
	missed.Missed = 2
	if adm := h.fire(t, "s", missed); adm.Outcome != triggers.Queued {
		t.Fatalf("with missed occasions: %+v", adm)
	}
	h.fire(t, "s", firing("a"))
	if i := h.info(t, "s"); i.Skips.Count != 4 || !i.Skips.Since.Equal(before.Since) || i.Skips.Run != first.Run {
		t.Errorf("%+v, before the restart %+v", i.Skips, before)
	}
	if len(h.announced) != 1 {
		t.Errorf("announced %q, want the first of the row", h.announced)
	}
	if err := h.runs.end(first.Run, sentinels.StatusCompleted); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the late run", func() bool { return h.info(t, "s").Skips.Count == 0 })
}

var _ dispatch.Runs = (*fakeRuns)(nil)
