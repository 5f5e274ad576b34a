package cron

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"
)

// grace is how late a planned time may come and still count as on time: longer
// than triggers sleep, so that a clock which was set a little forward is no
// downtime.
const grace = time.Minute

// maxBack is how far ahead of the clock the newest fire may be before it is
// taken for one of a clock that was wrong. Less is a clock that was set back:
// the schedule waits until it has come to that point again.
const maxBack = 24 * time.Hour

// distrust forgets a newest fire that lies far in the future. The keys of fires
// see to it that a time which did fire does not fire again.
func (a *armed) distrust(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.base.Sub(now) > maxBack {
		a.env.Logger.Warn("the newest fire of a schedule lies in the future, it goes on from now", "sentinel", a.env.Sentinel, "fire", a.base, "now", now)
		a.base = now
	}
}

// take returns the planned times that have to fire now, in order, and counts
// those that are left out. They stay open until they have fired.
func (a *armed) take(now time.Time) []time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	first := a.plan.next(a.base)
	if first.IsZero() || first.After(now) {
		return nil
	}
	n, until := a.plan.count(a.base, now), now
	newest := a.plan.back(a.base, now, 1)
	if a.due(newest).After(now) { // only the newest can be waiting for its jitter
		n, until = n-1, newest.Add(-1)
	}
	if n == 0 {
		return nil
	}
	want := a.wanted(n, until, now)
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

// wanted says how many of the newest n planned times that are not behind until
// have to fire, as the author wishes to catch up.
func (a *armed) wanted(n int, until, now time.Time) int {
	most, window := 1, a.opt.window()
	switch {
	case a.opt.CatchUp == CatchUpAll:
		most = maxCatchUp
	case a.opt.CatchUp == CatchUpNone:
		window = grace
	}
	if window > 0 {
		// What is due exactly that long ago is still within.
		from := now.Add(-window - 1)
		if from.After(a.base) {
			n = a.plan.count(from, until)
		}
	}
	return min(n, most)
}

// due is when a planned time fires: at most the jitter later, and always before
// the next one, so that the order is kept. It is made of the sentinel and the
// time alone and so the same after a restart.
func (a *armed) due(planned time.Time) time.Time {
	spread := a.opt.jitter()
	if spread == 0 {
		return planned
	}
	if next := a.plan.next(planned); !next.IsZero() {
		spread = min(spread, next.Sub(planned))
	}
	sum, err := hex.DecodeString(stable("jitter", string(a.env.Sentinel), key(planned)))
	if err != nil {
		panic(fmt.Errorf("read a digest: %w", err)) // it was written as hex
	}
	return planned.Add(time.Duration(binary.BigEndian.Uint64(sum) % uint64(spread)).Truncate(time.Millisecond))
}
