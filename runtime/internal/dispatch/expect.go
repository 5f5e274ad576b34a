package dispatch

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/trigger"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// # Runs that are expected
//
// A trigger that expects runs is watched apart from its firings, because the reasons why none
// comes are those for which nothing fires: a pause, a host that was down, a definition that
// cannot be read. What is expected next is stored with the trigger, so that it is reported
// after a restart and without the definition.

// maxWatchSleep bounds how long a watch sleeps: the clock may be set meanwhile.
const maxWatchSleep = 30 * time.Second

// An expectation is the planned time that a trigger expects a run for. Zero is none.
type expectation struct {
	Planned   time.Time `json:"planned"`
	Due       time.Time `json:"due"` // when it is overdue
	Completed bool      `json:"completed,omitempty"`
}

// overdueEvent is the data of an event sentinel:ID:overdue.
type overdueEvent struct {
	Sentinel sentinels.ID     `json:"sentinel"`
	Trigger  string           `json:"trigger"`
	Status   triggers.Outcome `json:"status"`
	Planned  time.Time        `json:"planned"`
	WithinMs int64            `json:"withinMs"`
	Expect   string           `json:"expect"`
	Reason   string           `json:"reason"`
	Run      sentinels.RunID  `json:"run,omitempty"`
}

// watch reports each expected run that does not come, until ctx ends or nothing is expected.
func (t *armedTrigger) watch(ctx context.Context) {
	for {
		next := t.expectNext()
		if next.Planned.IsZero() {
			return
		}
		wait := next.Due.Sub(t.s.d.opt.Now().Round(0))
		if wait > 0 {
			if !sleep(ctx, min(wait, maxWatchSleep)) {
				return
			}
			continue
		}
		err := t.s.d.opt.Writable()
		if err == nil {
			err = t.settleExpected(next)
		}
		if err != nil && ctx.Err() == nil {
			t.s.d.log.Warn("it is not known whether an expected run came, this is tried again", "sentinel", t.s.id, "trigger", t.name, "error", err)
		}
		if ctx.Err() != nil || err != nil && !sleep(ctx, maxWatchSleep) {
			return
		}
	}
}

// expectNext returns what the trigger expects next.
func (t *armedTrigger) expectNext() expectation {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if t.rec.Expected.Planned.IsZero() {
		t.rec.Expected = t.expectAfter(t.rec.Since)
		if !t.rec.Expected.Planned.IsZero() {
			t.s.newest = t.s.d.opt.Store.Enqueue(store.Batch{Puts: []store.Put{encodePut(bucketTriggers, triggerKey(t.s.id, t.name), t.rec)}, Lazy: true})
		}
	}
	return t.rec.Expected
}

// expectAfter returns what the trigger expects for the first planned time after a time.
func (t *armedTrigger) expectAfter(after time.Time) (next expectation) {
	x, ok := t.armed.(triggers.Expecter)
	if !ok {
		return next
	}
	within, completed := x.Expects()
	if planned := x.Planned(after); within > 0 && !planned.IsZero() && t.common.Ended(t.rec.Started, planned) == "" {
		next = expectation{Planned: planned.UTC(), Due: planned.Add(within).UTC(), Completed: completed}
	}
	return next
}

// settleExpected reports what was expected, if it did not happen, and expects the next. Several
// planned times that passed without a run, as while the host was down, are reported once.
func (t *armedTrigger) settleExpected(x expectation) error {
	d := t.s.d
	ran, run, status, err := d.opt.Runs.Ran(t.s.id, x.Planned, x.Due, x.Completed)
	if err != nil {
		return err
	}
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if t.s.retired || t.rec.Expected != x {
		return nil
	}
	dec := t.decision()
	dec.rec.Expected = t.expectAfter(x.Planned)
	if ran || t.common.Ended(t.rec.Started, x.Planned) != "" { // one that has ended by maxRuns since starts none
		ticket := d.opt.Store.Enqueue(store.Batch{Puts: dec.all(), Lazy: true})
		t.rec, t.s.newest = dec.rec, ticket
		return nil
	}
	// A planned time whose own time is over too is part of this report.
	if over := d.opt.Now().Round(0).Add(-x.Due.Sub(x.Planned)); over.After(x.Planned) && !dec.rec.Expected.Planned.IsZero() {
		dec.rec.Expected = t.expectAfter(over)
	}
	dec.rec.Overdue++
	e := overdueEvent{
		Sentinel: t.s.id, Trigger: t.name, Status: triggers.Overdue, Planned: x.Planned, WithinMs: x.Due.Sub(x.Planned).Milliseconds(),
		Expect: "started", Reason: t.overdueReason(x, run, status), Run: run,
	}
	if x.Completed {
		e.Expect = "completed"
	}
	ticket := d.opt.Announce(t.s.id, sentinels.SentinelOverdue, t.name+"/"+x.Planned.Format(time.RFC3339Nano), e, store.Batch{Puts: dec.all()})
	t.rec, t.s.newest = dec.rec, ticket
	report := trigger.Fired{
		Sentinel: t.s.id, Trigger: t.name, Type: t.def.Type, At: x.Planned, Outcome: triggers.Overdue, Run: run,
		Reason: fmt.Sprintf("no run %s within %s: %s", map[bool]string{false: "began", true: "completed"}[x.Completed], x.Due.Sub(x.Planned), e.Reason),
	}
	d.report(ticket, []trigger.Fired{report})
	return nil
}

// overdueReason says why no run came for a planned time, as far as it is known. run is one that
// began in time and did not complete. The caller holds the sentinel's lock.
func (t *armedTrigger) overdueReason(x expectation, run sentinels.RunID, status sentinels.Status) string {
	t.s.d.mu.Lock()
	opened := t.s.d.opened
	t.s.d.mu.Unlock()
	switch {
	case run != "":
		return fmt.Sprintf("run %s is %s", run, status)
	case x.Due.Before(opened):
		return "the server did not run"
	case t.s.paused:
		return "the triggers are paused"
	case t.s.problem != "":
		return "the definition cannot be read: " + t.s.problem
	case t.broken != "":
		return "the trigger cannot fire: " + t.broken
	case !t.rec.LastFire.Before(x.Planned):
		return fmt.Sprintf("the firing was %s: %s", t.rec.LastOutcome, cmp.Or(t.rec.LastReason, "no reason is known"))
	case x.Planned.Before(opened):
		return "the server did not run at that time"
	}
	return "the trigger did not fire"
}
