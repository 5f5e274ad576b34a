package cron

import (
	"math"
	"time"
)

// An interval is the plan of "@every": it counts from the moment at which the
// trigger was armed for the first time, so that no restart shifts it. It goes
// by elapsed time and knows no zone.
type interval struct {
	since time.Time
	every time.Duration
}

// passed returns how many planned times are not behind t; ok is false for times
// that are too far from since to be told apart, some 290 years.
func (v interval) passed(t time.Time) (n int64, ok bool) {
	d := t.Sub(v.since)
	if d == math.MaxInt64 || d == math.MinInt64 {
		return 0, false
	}
	return int64(max(d, 0) / v.every), true
}

func (v interval) at(n int64) time.Time { return v.since.Add(time.Duration(n) * v.every).UTC() }

func (v interval) next(after time.Time) time.Time {
	n, ok := v.passed(after)
	if !ok || n+1 > math.MaxInt64/int64(v.every) {
		return time.Time{}
	}
	return v.at(n + 1)
}

func (v interval) count(after, until time.Time) int {
	from, ok := v.passed(after)
	to, also := v.passed(until)
	if !ok || !also {
		return 0
	}
	return int(max(to-from, 0))
}

func (v interval) back(_, until time.Time, k int) time.Time {
	n, _ := v.passed(until)
	return v.at(n - int64(k) + 1)
}

var _ plan = interval{}
