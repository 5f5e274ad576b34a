package cron

import (
	"math"
	"time"
)

// An interval is the plan of "@every". It counts from when the trigger was first
// armed and an offset of its own, so that restarts do not shift it. It follows elapsed time, in no zone.
type interval struct {
	since time.Time
	every time.Duration
}

// maxOffset bounds what a trigger of a long interval fires later than a person expects it.
const maxOffset = time.Minute

// offset returns how much later than the second of their first arming the planned times of a trigger are: up to a
// tenth of the interval, or a second. Triggers that were armed together, such as those of a project at its first
// start, so do not fire together for ever.
func (v interval) offset(sentinel, trigger string) time.Duration {
	spread := min(max(v.every/10, time.Second), v.every, maxOffset)
	return time.Duration(number("offset", sentinel, trigger) % uint64(spread)).Truncate(time.Millisecond)
}

// upTo returns the number of planned times up to t. ok is false when t is too far
// from since for a time.Duration, about 290 years.
func (v interval) upTo(t time.Time) (n int64, ok bool) {
	d := t.Sub(v.since)
	if d == math.MaxInt64 || d == math.MinInt64 {
		return 0, false
	}
	return int64(max(d, 0) / v.every), true
}

func (v interval) at(n int64) time.Time { return v.since.Add(time.Duration(n) * v.every).UTC() }

func (v interval) next(after time.Time) time.Time {
	n, ok := v.upTo(after)
	if !ok || n+1 > math.MaxInt64/int64(v.every) {
		return time.Time{}
	}
	return v.at(n + 1)
}

func (v interval) count(after, until time.Time) int {
	from, ok := v.upTo(after)
	to, ok2 := v.upTo(until)
	if !ok || !ok2 {
		return 0
	}
	return int(max(to-from, 0))
}

func (v interval) back(_, until time.Time, k int) time.Time {
	n, _ := v.upTo(until)
	return v.at(n - int64(k) + 1)
}

var _ plan = interval{}
