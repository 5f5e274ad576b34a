package runtime

import (
	"sync"
	"time"
)

// An activeClock counts the time in which the host was up and the run was not
// paused. Limits of runs and steps are measured with it, so that neither a
// crash nor a pause burns or resets them.
//
// # Concurrency
//
// Safe for concurrent use. Timer functions run on their own goroutine.
type activeClock struct {
	mu      sync.Mutex
	base    time.Duration // what was counted before since
	since   time.Time     // zero while stopped
	timers  map[*activeTimer]struct{}
	paused  bool
	holds   int // reasons besides a pause why it stands still
	stopped bool
}

type activeTimer struct {
	clock *activeClock
	due   time.Duration
	timer *time.Timer
	fn    func()
}

func newActiveClock(elapsed time.Duration) *activeClock {
	return &activeClock{base: elapsed, since: time.Now(), timers: map[*activeTimer]struct{}{}}
}

func (c *activeClock) elapsed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

func (c *activeClock) now() time.Duration {
	if c.stopped {
		return c.base
	}
	return c.base + time.Since(c.since)
}

// at calls fn once the clock shows due. The returned timer must be stopped.
func (c *activeClock) at(due time.Duration, fn func()) *activeTimer {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &activeTimer{clock: c, due: due, fn: fn}
	c.timers[t] = struct{}{}
	if !c.stopped {
		t.timer = time.AfterFunc(due-c.now(), t.fire)
	}
	return t
}

func (t *activeTimer) fire() {
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

func (t *activeTimer) stop() {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	delete(t.clock.timers, t)
	if t.timer != nil {
		t.timer.Stop()
	}
}

// pause stops the clock and its timers until resume.
func (c *activeClock) pause() { c.change(func() { c.paused = true }) }

// resume ends a pause; the clock continues where it stopped.
func (c *activeClock) resume() { c.change(func() { c.paused = false }) }

// hold stops the clock until release. Holds and a pause do not end each other.
func (c *activeClock) hold() { c.change(func() { c.holds++ }) }

func (c *activeClock) release() { c.change(func() { c.holds-- }) }

func (c *activeClock) change(reason func()) {
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

func (c *activeClock) halt() {
	c.base = c.now()
	c.stopped = true
	for t := range c.timers {
		if t.timer != nil {
			t.timer.Stop()
		}
	}
}

func (c *activeClock) proceed() {
	c.stopped = false
	c.since = time.Now()
	for t := range c.timers {
		t.timer = time.AfterFunc(t.due-c.base, t.fire)
	}
}
