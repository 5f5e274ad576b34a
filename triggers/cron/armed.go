package cron

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// armed is one schedule.
//
// # Concurrency
//
// Run is called by one goroutine at a time, Next by any.
type armed struct {
	kind       *Kind
	opt        options
	plan       plan
	env        triggers.Env
	expression string

	mu     sync.Mutex
	base   time.Time // newest decided planned time; those after it are undecided
	missed int       // planned times left out since the newest firing
}

// state is what the trigger stores with each firing.
type state struct {
	Planned time.Time `json:"planned"` // of the newest firing
}

// readState returns the planned time of the newest firing, or since without a
// state.
func readState(raw json.RawMessage, since time.Time) (time.Time, error) {
	if len(raw) == 0 {
		return since, nil
	}
	var s state
	if err := json.Unmarshal(raw, &s); err != nil {
		return since, fmt.Errorf("read state of schedule: %w", err)
	}
	if s.Planned.IsZero() {
		return since, nil
	}
	return s.Planned, nil
}

// now returns the wall clock time. Round strips the monotonic reading, which
// would hide changes of the wall clock.
func (a *armed) now() time.Time { return a.env.Now().Round(0) }

// Run fires at each planned time until ctx ends. If a firing is not decided, Run
// returns the error; called again, it continues with the same planned time.
func (a *armed) Run(ctx context.Context, fire triggers.FireFunc) error {
	for {
		now := a.now()
		a.resetFutureBase(now)
		for _, planned := range a.takeDue(now) {
			if err := a.fire(ctx, fire, planned); err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return fmt.Errorf("fire schedule of %s: %w", key(planned), err)
			}
		}
		if !a.sleep(ctx) {
			return nil
		}
	}
}

// data is the data of the event, clause T4.9.
type data struct {
	Scheduled  time.Time `json:"scheduled"` // planned time, without jitter
	Fired      time.Time `json:"fired"`     // actual time
	Missed     int       `json:"missed"`    // planned times left out since the previous firing
	Expression string    `json:"expression"`
}

// key returns the idempotency key of a planned time. A crash that loses the
// state of a firing repeats it with the same key.
func key(planned time.Time) string { return planned.UTC().Format(time.RFC3339Nano) }

// fire fires one planned time. On an error base and missed stay unchanged, so
// that the same firing is repeated.
func (a *armed) fire(ctx context.Context, fire triggers.FireFunc, planned time.Time) error {
	saved, err := json.Marshal(state{planned})
	if err != nil {
		return err
	}
	a.mu.Lock()
	missed := a.missed
	a.mu.Unlock()
	body, err := json.Marshal(data{planned, a.now().UTC(), missed, a.expression})
	if err != nil {
		return err
	}
	_, err = fire(ctx, triggers.Firing{
		Key: key(planned), At: planned, State: saved, Missed: missed,
		Event: &sentinels.Event{
			ID: digest(string(a.env.Sentinel), a.env.Name, key(planned)), Name: "schedule",
			Source: "/sentinels/" + string(a.env.Sentinel), Time: planned, Data: body,
		},
	})
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.base, a.missed = planned, 0
	a.mu.Unlock()
	return nil
}

// sleep waits until the next firing is due, but at most Options.Wake. It reports
// whether ctx is still active.
func (a *armed) sleep(ctx context.Context) bool {
	before, start := a.now(), time.Now()
	wait := a.kind.opt.Wake
	a.mu.Lock()
	planned := a.plan.next(a.base)
	a.mu.Unlock()
	if !planned.IsZero() {
		wait = min(wait, a.due(planned).Sub(before))
	}
	// The wall clock may run slower than the timer. The minimum avoids a busy loop
	// when the timer fires slightly before the wall clock reaches the time.
	timer := time.NewTimer(max(wait, time.Millisecond))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	}
	a.kind.clockJumps.check(a.env.Logger, time.Since(start), before, a.now())
	return true
}

// Next returns when the schedule fires next, including jitter, in the zone of the
// schedule.
func (a *armed) Next(now time.Time) time.Time {
	next := a.next(now)
	if next.IsZero() {
		return next
	}
	if c, ok := a.plan.(*calendar); ok {
		return next.In(c.zone)
	}
	return next.Local()
}

func (a *armed) next(now time.Time) time.Time {
	a.mu.Lock()
	base := a.base
	a.mu.Unlock()
	now = now.Round(0)
	if base.Sub(now) > maxBack {
		base = now
	}
	if n := a.plan.count(base, now); n > 0 {
		if due := a.due(a.plan.back(base, now, 1)); due.After(now) {
			return due
		}
	}
	if now.After(base) {
		base = now
	}
	planned := a.plan.next(base)
	if planned.IsZero() {
		return planned
	}
	return a.due(planned)
}

// Expects implements [triggers.Expecter].
func (a *armed) Expects() (within time.Duration, completed bool) {
	return time.Duration(a.opt.ExpectWithinMs) * time.Millisecond, a.opt.Expect == expectCompleted
}

// Planned implements [triggers.Expecter].
func (a *armed) Planned(after time.Time) time.Time { return a.plan.next(after.Round(0)) }

var (
	_ triggers.Armed    = (*armed)(nil)
	_ triggers.Planner  = (*armed)(nil)
	_ triggers.Expecter = (*armed)(nil)
)
