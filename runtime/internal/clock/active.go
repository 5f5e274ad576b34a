package clock

import (
	"sync"
	"time"
)

// An Active clock counts the time in which the host was up and the run was not
// paused. Limits of runs and steps are measured with it, so that neither a
// crash nor a pause burns or resets them.
//
// # Concurrency
//
// Safe for concurrent use. Timer functions run on their own goroutine.
type Active struct {
	mu      sync.Mutex
	base    time.Duration // what was counted before since
	since   time.Time     // zero while stopped
	timers  map[*ActiveTimer]struct{}
	paused  bool
	holds   int // reasons besides a pause why it stands still
	stopped bool
}

// An ActiveTimer is a function that is due when the clock shows a time.
type ActiveTimer struct {
	clock *Active
	due   time.Duration
	timer *time.Timer
	fn    func()
}

// NewActive returns a clock that runs and shows elapsed.
func NewActive(elapsed time.Duration) *Active {
	return &Active{base: elapsed, since: time.Now(), timers: map[*ActiveTimer]struct{}{}}
}

// Elapsed returns what the clock shows.
func (c *Active) Elapsed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

func (c *Active) now() time.Duration {
	if c.stopped {
		return c.base
	}
	return c.base + time.Since(c.since)
}

// At calls fn once the clock shows due. The returned timer must be stopped.
func (c *Active) At(due time.Duration, fn func()) *ActiveTimer {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &ActiveTimer{clock: c, due: due, fn: fn}
	c.timers[t] = struct{}{}
	if !c.stopped {
		t.timer = time.AfterFunc(due-c.now(), t.fire)
	}
	return t
}

func (t *ActiveTimer) fire() {
	t.clock.mu.Lock()
	_, live := t.clock.timers[t]
	if live && !t.clock.stopped && t.clock.now() >= t.due {
		delete(t.clock.timers, t)
	} else {
		live = false
	}
	t.clock.mu.Unlock()
	if live {
		t.fn()
	}
}

// Stop disarms the timer. A function that runs already is not waited for.
func (t *ActiveTimer) Stop() {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	delete(t.clock.timers, t)
	if t.timer != nil {
		t.timer.Stop()
	}
}

// Pause stops the clock and its timers until Resume.
func (c *Active) Pause() { c.change(func() { c.paused = true }) }

// Resume ends a pause; the clock continues where it stopped.
func (c *Active) Resume() { c.change(func() { c.paused = false }) }

// Hold stops the clock until Release. Holds and a pause do not end each other.
func (c *Active) Hold() { c.change(func() { c.holds++ }) }

// Release ends a Hold.
func (c *Active) Release() { c.change(func() { c.holds-- }) }

func (c *Active) change(reason func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	reason()
	switch stop := c.paused || c.holds > 0; {
	case stop && !c.stopped:
		c.halt()
	case !stop && c.stopped:
		c.proceed()
	}
}

func (c *Active) halt() {
	c.base = c.now()
	c.stopped = true
	for t := range c.timers {
		if t.timer != nil {
			t.timer.Stop()
		}
	}
}

func (c *Active) proceed() {
	c.stopped = false
	c.since = time.Now()
	for t := range c.timers {
		t.timer = time.AfterFunc(t.due-c.base, t.fire)
	}
}
