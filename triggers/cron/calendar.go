package cron

import (
	"math"
	"sort"
	"time"
)

// A calendar is the plan of the cron fields in a time zone.
//
// Two rules apply when a zone's clocks are set back or forward, because "at
// 02:30" means one run a day, and "every quarter of an hour" means one run each
// quarter:
//
//   - A schedule whose hour field allows every hour follows elapsed time: it
//     fires whenever the clock shows one of its times.
//   - Any other schedule follows the clock. It fires at the first instant at
//     which the clock has reached the time or has been set past it. So a skipped
//     time fires once, at the end of the gap, and a repeated time fires only the
//     first time.
type calendar struct {
	fields
	zone    *time.Location
	elapsed bool // follows elapsed time
}

// everyHour is the set of all hours.
const everyHour = 1<<24 - 1

// A period is an interval with a constant UTC offset. Its instants are in seconds
// since 1970; start is inclusive, end exclusive.
type period struct {
	start, end int64
	offset     int64 // wall clock minus instant
	// reached is after every time that the wall clock has shown before start.
	reached wall
}

// lookBack is how far before a period, in seconds, earlier periods can matter
// for its reached. No zone was ever set back or forward by more.
const lookBack = 30 * 3600

// period returns the period that contains an instant.
func (c *calendar) period(at int64) period {
	p := c.bounds(at)
	p.reached = math.MinInt64
	for begin := p.start; begin != math.MinInt64; {
		earlier := c.bounds(begin - 1)
		if earlier.end < p.start-lookBack {
			break
		}
		p.reached = max(p.reached, wall(earlier.end+earlier.offset))
		begin = earlier.start
	}
	return p
}

// bounds returns the period that contains an instant, without reached.
func (c *calendar) bounds(at int64) period {
	t := time.Unix(at, 0).In(c.zone)
	_, offset := t.Zone()
	p := period{start: math.MinInt64, end: math.MaxInt64, offset: int64(offset)}
	start, end := t.ZoneBounds()
	if !start.IsZero() {
		p.start = min(start.Unix(), at)
	}
	if !end.IsZero() {
		p.end = end.Unix()
	}
	if p.end <= at {
		// Beyond a zone's table the standard library assumes years of 365 days, so
		// on the last day of a leap year it returns an end in the past. Its result
		// is correct again from the next day on.
		p.end = at - int64(mod(wall(at), day)) + day
	}
	return p
}

// part limits a period to the instants from at to until. jump reports whether
// its first instant fires because the clock reaches or passes a scheduled time
// there. The other wall clock times that fire are those of the fields in
// [from, to).
func (c *calendar) part(p period, at, until int64) (jump bool, from, to wall) {
	from, to = wall(at+p.offset), wall(min(p.end, until)+p.offset)
	if c.elapsed {
		return false, from, to
	}
	if at == p.start {
		// The first time that the clock shows belongs to the jump.
		_, jump = c.fields.next(p.reached, from+1)
		from++
	}
	return jump, max(from, p.reached), to
}

// next goes through the periods, usually at most two a year, and computes the
// first time in each.
func (c *calendar) next(after time.Time) time.Time {
	at := after.Unix() + 1
	until := at + int64(horizon/time.Second)
	for at < until {
		p := c.period(at)
		jump, from, to := c.part(p, at, until)
		if jump {
			return time.Unix(at, 0).UTC()
		}
		if found, ok := c.fields.next(from, to); ok {
			return time.Unix(int64(found)-p.offset, 0).UTC()
		}
		at = p.end
	}
	return time.Time{}
}

// count adds up the counts of the periods.
func (c *calendar) count(after, until time.Time) int {
	n := 0
	end := until.Unix() + 1
	for at := after.Unix() + 1; at < end; {
		p := c.period(at)
		jump, from, to := c.part(p, at, end)
		if jump {
			n++
		}
		n += c.fields.count(from, to)
		at = p.end
	}
	return n
}

// back finds the instant by binary search, with about 30 counts for a century.
func (c *calendar) back(after, until time.Time, k int) time.Time {
	first := after.Unix()
	// The k-th last planned time is the first second after which fewer than k are
	// left.
	n := sort.Search(int(until.Unix()-first)+1, func(i int) bool {
		return c.count(time.Unix(first+int64(i), 0), until) < k
	})
	return time.Unix(first+int64(n), 0).UTC()
}

var _ plan = (*calendar)(nil)
