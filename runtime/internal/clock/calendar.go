package clock

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// A Calendar runs functions at times of the wall clock: the ends of waits, of
// backoff and of the interval between iterations.
//
// A timer of package time counts elapsed time. It does not notice that the wall
// clock was set, and on Linux it stands still while the machine is suspended, so
// a wait until 08:00 would end hours late. The calendar compares both clocks
// every few seconds and sets its timers again after a jump:
//
//   - a timer for a time of day (At) follows the wall clock both ways;
//   - a timer for a duration (After) ends early when the clock jumps ahead, since
//     time in which the host did not run counts, and is never prolonged by a
//     clock that was set back.
//
// # Concurrency
//
// All methods are safe for concurrent use.
type Calendar struct {
	wall func() time.Time
	// When both clocks were compared last, by each of them; used by Watch.
	mark, seen time.Time

	mu     sync.Mutex
	timers map[*Timer]struct{}
}

// A Timer is a function that is due at a time.
type Timer struct {
	c     *Calendar
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

// NewCalendar returns a calendar for a wall clock, nil for that of the machine. Its
// timers follow jumps of the clock while [Calendar.Watch] runs.
func NewCalendar(now func() time.Time) *Calendar {
	if now == nil {
		now = time.Now
	}
	c := &Calendar{
		wall:   func() time.Time { return now().Round(0) }, // without the monotonic reading, which hides a jump
		timers: map[*Timer]struct{}{},
	}
	// Timers may be set before Watch begins: a jump between is one for them.
	c.mark, c.seen = time.Now(), c.Now()
	return c
}

// Now returns the time of the wall clock.
func (c *Calendar) Now() time.Time { return c.wall() }

// At runs fn in a goroutine of its own when the wall clock reaches due. The timer
// must be stopped.
func (c *Calendar) At(due time.Time, fn func()) *Timer {
	return c.add(&Timer{c: c, due: due, fixed: true, fn: fn})
}

// After is [Calendar.At] for the end of a duration.
func (c *Calendar) After(due time.Time, fn func()) *Timer {
	return c.add(&Timer{c: c, due: due, fn: fn})
}

func (c *Calendar) add(t *Timer) *Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timers[t] = struct{}{}
	t.timer = time.AfterFunc(t.due.Sub(c.Now()), t.fire)
	return t
}

func (t *Timer) fire() {
	t.c.mu.Lock()
	_, armed := t.c.timers[t]
	if rest := t.due.Sub(t.c.Now()); armed && t.fixed && rest > 0 {
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

// Stop disarms the timer. A function that runs already is not waited for.
func (t *Timer) Stop() {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	delete(t.c.timers, t)
	t.timer.Stop()
}

// wait blocks until the timer that arm makes has fired, or until ctx ends, whose
// cause it returns.
func (c *Calendar) wait(ctx context.Context, due time.Time, arm func(time.Time, func()) *Timer) error {
	done := make(chan struct{})
	t := arm(due, func() { close(done) })
	defer t.Stop()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// WaitUntil blocks until the wall clock reaches due.
func (c *Calendar) WaitUntil(ctx context.Context, due time.Time) error {
	return c.wait(ctx, due, c.At)
}

// WaitFor blocks until a duration that ends at due is over.
func (c *Calendar) WaitFor(ctx context.Context, due time.Time) error {
	return c.wait(ctx, due, c.After)
}

// Watch compares the clocks, the first time with what they were when the calendar was made, until ctx ends. It is called once.
func (c *Calendar) Watch(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(calendarInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		jump := c.Now().Sub(c.seen) - time.Since(c.mark)
		c.mark, c.seen = time.Now(), c.Now()
		if jump.Abs() > calendarDrift {
			log.Warn("the wall clock jumped: it was set, or the machine slept", "by", jump.Round(time.Millisecond))
			c.jumped(jump)
		}
	}
}

// jumped sets the timers again.
func (c *Calendar) jumped(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.Now()
	for t := range c.timers {
		if by > 0 || t.fixed {
			t.timer.Reset(t.due.Sub(now))
		}
	}
}
