package runtime

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// A calendar runs functions at times of the wall clock: the ends of waits, of
// backoff and of the interval between iterations.
//
// A timer of package time counts elapsed time. It does not notice that the wall
// clock was set, and on Linux it stands still while the machine is suspended, so
// a wait until 08:00 would end hours late. The calendar compares both clocks
// every few seconds and sets its timers again after a jump:
//
//   - a timer for a time of day (at) follows the wall clock both ways;
//   - a timer for a duration (after) ends early when the clock jumps ahead, since
//     time in which the host did not run counts, and is never prolonged by a
//     clock that was set back.
//
// # Concurrency
//
// All methods are safe for concurrent use.
type calendar struct {
	now func() time.Time // the wall clock

	mu     sync.Mutex
	timers map[*calendarTimer]struct{}
}

// A calendarTimer is one function that is due.
type calendarTimer struct {
	c     *calendar
	due   time.Time // wall clock
	fixed bool      // a time of day rather than a duration
	fn    func()
	timer *time.Timer
}

// How often the clocks are compared, and what difference is a jump.
const (
	calendarInterval = 5 * time.Second
	calendarDrift    = time.Second
)

func newCalendar(now func() time.Time) *calendar {
	if now == nil {
		now = time.Now
	}
	return &calendar{
		now:    func() time.Time { return now().Round(0) }, // without the monotonic reading, which hides a jump
		timers: map[*calendarTimer]struct{}{},
	}
}

// at runs fn in a goroutine of its own when the wall clock reaches due. The timer
// must be stopped.
func (c *calendar) at(due time.Time, fn func()) *calendarTimer {
	return c.add(&calendarTimer{c: c, due: due, fixed: true, fn: fn})
}

// after is [calendar.at] for the end of a duration.
func (c *calendar) after(due time.Time, fn func()) *calendarTimer {
	return c.add(&calendarTimer{c: c, due: due, fn: fn})
}

func (c *calendar) add(t *calendarTimer) *calendarTimer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timers[t] = struct{}{}
	t.timer = time.AfterFunc(t.due.Sub(c.now()), t.fire)
	return t
}

func (t *calendarTimer) fire() {
	t.c.mu.Lock()
	_, armed := t.c.timers[t]
	if rest := t.due.Sub(t.c.now()); armed && t.fixed && rest > 0 {
		// The wall clock runs slower, or was set back since the last comparison.
		t.timer.Reset(rest)
		armed = false
	}
	if armed {
		delete(t.c.timers, t)
	}
	t.c.mu.Unlock()
	if armed {
		t.fn()
	}
}

// stop disarms the timer. A function that runs already is not waited for.
func (t *calendarTimer) stop() {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	delete(t.c.timers, t)
	t.timer.Stop()
}

// wait blocks until the timer that arm makes has fired, or until ctx ends, whose
// cause it returns.
func (c *calendar) wait(ctx context.Context, due time.Time, arm func(time.Time, func()) *calendarTimer) error {
	done := make(chan struct{})
	t := arm(due, func() { close(done) })
	defer t.stop()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// waitUntil blocks until the wall clock reaches due.
func (c *calendar) waitUntil(ctx context.Context, due time.Time) error {
	return c.wait(ctx, due, c.at)
}

// waitFor blocks until a duration that ends at due is over.
func (c *calendar) waitFor(ctx context.Context, due time.Time) error {
	return c.wait(ctx, due, c.after)
}

// sleep blocks until the time that a call waits for, if it waits for one, or until
// ctx ends.
func (c *calendar) sleep(ctx context.Context, waits *call) {
	switch {
	case waits.until.IsZero():
	case waits.timeOfDay:
		_ = c.waitUntil(ctx, waits.until) // the caller looks at ctx
	default:
		_ = c.waitFor(ctx, waits.until) // likewise
	}
}

// watch compares the clocks until ctx ends.
func (c *calendar) watch(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(calendarInterval)
	defer tick.Stop()
	mark, wall := time.Now(), c.now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		jump := c.now().Sub(wall) - time.Since(mark)
		mark, wall = time.Now(), c.now()
		if jump.Abs() > calendarDrift {
			log.Warn("the wall clock jumped: it was set, or the machine slept", "by", jump.Round(time.Millisecond))
			c.jumped(jump)
		}
	}
}

// jumped sets the timers again.
func (c *calendar) jumped(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	for t := range c.timers {
		if by > 0 || t.fixed {
			t.timer.Reset(t.due.Sub(now))
		}
	}
}
