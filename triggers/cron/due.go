package cron

import "time"

// grace is how late a planned time may fire and still count as on time. It is
// longer than the default of Options.Wake, so that setting the clock slightly
// forward does not count as downtime.
const grace = time.Minute

// maxBack is how far the newest firing may be ahead of the clock. Up to this the
// clock was set back, and the schedule waits until it reaches the newest firing
// again. Beyond it the clock was wrong when the trigger fired.
const maxBack = 24 * time.Hour

// resetFutureBase sets base to now if it is too far in the future. A planned time
// that already fired does not start a second run, because its key is known.
func (a *armed) resetFutureBase(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.base.Sub(now) > maxBack {
		a.env.Logger.Warn("the newest firing of a schedule is in the future; continuing from now", "sentinel", a.env.Sentinel, "fired", a.base, "now", now)
		a.base = now
	}
}

// takeDue returns the planned times that must fire now, in order, and adds those
// that are left out to missed. The returned ones stay undecided until they have
// fired.
func (a *armed) takeDue(now time.Time) []time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	first := a.plan.next(a.base)
	if first.IsZero() || first.After(now) {
		return nil
	}
	n, until := a.plan.count(a.base, now), now
	newest := a.plan.back(a.base, now, 1)
	if a.due(newest).After(now) { // only the newest can be delayed by jitter
		n, until = n-1, newest.Add(-1)
	}
	if n == 0 {
		return nil
	}
	want := a.catchUpCount(n, until, now)
	a.missed += n - want
	if want == 0 {
		a.base = until
		return nil
	}
	list := []time.Time{a.plan.back(a.base, until, want)}
	for len(list) < want {
		list = append(list, a.plan.next(list[len(list)-1]))
	}
	a.base = list[0].Add(-1)
	return list
}

// catchUpCount returns how many of the newest n planned times up to until must
// fire, according to the catch-up options.
func (a *armed) catchUpCount(n int, until, now time.Time) int {
	most, window := 1, a.opt.window()
	switch {
	case a.opt.CatchUp == CatchUpAll:
		most = maxCatchUp
	case a.opt.CatchUp == CatchUpNone:
		window = grace
	}
	if window > 0 {
		// A planned time at the edge of the window is inside.
		from := now.Add(-window - 1)
		if from.After(a.base) {
			n = a.plan.count(from, until)
		}
	}
	return min(n, most)
}

// due returns when a planned time fires: delayed by at most the jitter, and
// always before the next planned time, so that jitter keeps the order. The delay
// depends only on sentinel and planned time, so it is the same after a restart.
func (a *armed) due(planned time.Time) time.Time {
	spread := a.opt.jitter()
	if spread == 0 {
		return planned
	}
	if next := a.plan.next(planned); !next.IsZero() {
		spread = min(spread, next.Sub(planned))
	}
	return planned.Add(time.Duration(number("jitter", string(a.env.Sentinel), key(planned)) % uint64(spread)).Truncate(time.Millisecond))
}
