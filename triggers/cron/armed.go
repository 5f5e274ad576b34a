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

	mu sync.Mutex
	// base is the newest planned time that is decided; all behind it are open.
	base time.Time
	// missed counts those that were left out since the newest fire.
	missed int
}

// state is what is kept over restarts.
type state struct {
	// Planned is the planned time of the newest fire.
	Planned time.Time `json:"planned"`
}

// readState returns behind which planned time all are open: since without a
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

// now is the time on the wall: without the reading of the monotonic clock, which
// would hide that the wall clock was set.
func (a *armed) now() time.Time { return a.env.Now().Round(0) }

// Run fires each planned time as it comes until ctx ends. A fire that was not
// decided ends it with the error; run again it goes on with that same fire.
func (a *armed) Run(ctx context.Context, fire triggers.Func) error {
	for {
		now := a.now()
		a.distrust(now)
		for _, planned := range a.take(now) {
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

// data is the data of the event.
type data struct {
	Scheduled  time.Time `json:"scheduled"` // the planned time
	Fired      time.Time `json:"fired"`     // when it came to it
	Missed     int       `json:"missed"`    // planned times left out since the fire before
	Expression string    `json:"expression"`
}

// key names a planned time. It is the key of its fire, so that one whose record
// a crash has swallowed is not fired twice.
func key(planned time.Time) string { return planned.UTC().Format(time.RFC3339Nano) }

// fire has one planned time admitted. Only then is it done: until then base and
// missed stay, so that the same fire is made again.
func (a *armed) fire(ctx context.Context, fire triggers.Func, planned time.Time) error {
	kept, err := json.Marshal(state{planned})
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
	_, err = fire(ctx, triggers.Fire{
		Key: key(planned), At: planned, State: kept, Missed: missed,
		Event: &sentinels.Event{
			ID: stable(string(a.env.Sentinel), a.env.Name, key(planned)), Name: "schedule",
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

// sleep waits until the next fire is due, but never longer than the kind has
// triggers sleep; false says that ctx has ended.
func (a *armed) sleep(ctx context.Context) bool {
	before, mark := a.now(), time.Now()
	rest := a.kind.opt.Wake
	a.mu.Lock()
	planned := a.plan.next(a.base)
	a.mu.Unlock()
	if !planned.IsZero() {
		rest = min(rest, a.due(planned).Sub(before))
	}
	// The wall clock may run slower than the timer: then a little is left.
	timer := time.NewTimer(max(rest, time.Millisecond))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	}
	a.kind.jumps.watch(a.env.Logger, time.Since(mark), before, a.now())
	return true
}

// Next returns when the schedule fires next, its jitter included.
func (a *armed) Next(now time.Time) time.Time {
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

var (
	_ triggers.Armed   = (*armed)(nil)
	_ triggers.Planner = (*armed)(nil)
)
