package cron

import (
	"math"
	"sort"
	"time"
)

// A calendar is the plan of the cron fields in a zone.
//
// Where a zone's clocks are set back or forward, there are two wishes. Who
// writes "at 02:30" wants one run a day; who writes "every quarter of an hour"
// wants one each quarter. So:
//
//   - A schedule that names every hour goes by elapsed time: it fires whenever
//     the clock shows one of its times.
//   - Any other goes by the clock, and fires at the first instant at which the
//     clock has reached the time, or has been set past it. Thus what is skipped
//     fires once, at the end of the gap, and what is repeated fires the first
//     time only.
type calendar struct {
	fields
	zone    *time.Location
	elapsed bool
}

// everyHour is the set of all hours.
const everyHour = 1<<24 - 1

// A stretch is a time in which a zone's clocks run on evenly. Its instants are
// in seconds since 1970, start included, end not.
type stretch struct {
	start, end int64
	offset     int64 // what the clock shows is the instant and this
	// reached is behind everything that the clock has shown before start.
	reached wall
}

// lookBack is how long before a stretch others have to be looked at to know what
// clocks have shown: no zone has ever been set back or forward further.
const lookBack = 30 * 3600

// stretch returns the one that an instant is in.
func (c *calendar) stretch(at int64) stretch {
	s := c.bounds(at)
	s.reached = math.MinInt64
	for begin := s.start; begin != math.MinInt64; {
		earlier := c.bounds(begin - 1)
		if earlier.end < s.start-lookBack {
			break
		}
		s.reached = max(s.reached, wall(earlier.end+earlier.offset))
		begin = earlier.start
	}
	return s
}

// bounds returns the stretch of an instant without what was shown before it.
func (c *calendar) bounds(at int64) stretch {
	t := time.Unix(at, 0).In(c.zone)
	_, offset := t.Zone()
	s := stretch{start: math.MinInt64, end: math.MaxInt64, offset: int64(offset)}
	start, end := t.ZoneBounds()
	if !start.IsZero() {
		s.start = min(start.Unix(), at)
	}
	if !end.IsZero() {
		s.end = end.Unix()
	}
	if s.end <= at {
		// Beyond a zone's table the standard library takes every year for one of
		// 365 days, so on the last day of a leap year the stretch has "ended". The
		// next day begins a year that it knows again.
		s.end = at - int64(mod(wall(at), day)) + day
	}
	return s
}

// part is the piece of a stretch from the instant at to until. jump says that
// its first instant fires because the clock then reaches or passes a time; the
// walls that fire besides are those in [from, to).
func (c *calendar) part(s stretch, at, until int64) (jump bool, from, to wall) {
	from, to = wall(at+s.offset), wall(min(s.end, until)+s.offset)
	if c.elapsed {
		return false, from, to
	}
	if at == s.start {
		// The time at which the clock arrives belongs to the jump.
		_, jump = c.fields.next(s.reached, from+1)
		from++
	}
	return jump, max(from, s.reached), to
}

// next goes from stretch to stretch, at most two a year, and in each finds the
// time without a walk.
func (c *calendar) next(after time.Time) time.Time {
	at := after.Unix() + 1
	until := at + int64(horizon/time.Second)
	for at < until {
		s := c.stretch(at)
		jump, from, to := c.part(s, at, until)
		if jump {
			return time.Unix(at, 0).UTC()
		}
		if found, ok := c.fields.next(from, to); ok {
			return time.Unix(int64(found)-s.offset, 0).UTC()
		}
		at = s.end
	}
	return time.Time{}
}

// count adds up whole days.
func (c *calendar) count(after, until time.Time) int {
	n := 0
	end := until.Unix() + 1
	for at := after.Unix() + 1; at < end; {
		s := c.stretch(at)
		jump, from, to := c.part(s, at, end)
		if jump {
			n++
		}
		n += c.fields.count(from, to)
		at = s.end
	}
	return n
}

// back looks for the instant by halves, some thirty counts for a century.
func (c *calendar) back(after, until time.Time, k int) time.Time {
	first := after.Unix()
	// The first second behind which fewer than k are left is the k-th itself.
	n := sort.Search(int(until.Unix()-first)+1, func(i int) bool {
		return c.count(time.Unix(first+int64(i), 0), until) < k
	})
	return time.Unix(first+int64(n), 0).UTC()
}

var _ plan = (*calendar)(nil)
