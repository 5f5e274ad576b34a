package cron

import (
	"math/bits"
	"time"
)

// A wall is a wall clock time in seconds since 1970-01-01 00:00 of the same
// clock. It has no zone, so every day has 86400 seconds.
type wall int64

const day = 86400 // in seconds

// fields are the values that a cron expression allows, as bit sets: bit n is
// second, minute, hour, day or month n; bit 0 of weekday is Sunday.
type fields struct {
	second, minute, hour, date, month, weekday uint64
	// either means that matching one of date and weekday is enough, as in
	// crontab(5) when neither field begins with a star.
	either bool
}

// onDay reports whether the schedule has times on the day of t, a wall clock time
// in UTC.
func (f *fields) onDay(t time.Time) bool {
	date := f.date&(1<<t.Day()) != 0
	weekday := f.weekday&(1<<t.Weekday()) != 0
	if f.month&(1<<t.Month()) == 0 {
		return false
	}
	if f.either {
		return date || weekday
	}
	return date && weekday
}

// days calls fn with the start of each day of the schedule that overlaps
// [from, until), in order, until fn returns false.
func (f *fields) days(from, until wall, fn func(start wall) bool) {
	for at := from - mod(from, day); at < until; {
		t := time.Unix(int64(at), 0).UTC()
		if f.month&(1<<t.Month()) == 0 {
			at = wall(time.Date(t.Year(), t.Month()+1, 1, 0, 0, 0, 0, time.UTC).Unix())
			continue
		}
		if f.onDay(t) && !fn(at) {
			return
		}
		at += day
	}
}

// next returns the first scheduled time in [from, until).
func (f *fields) next(from, until wall) (found wall, ok bool) {
	f.days(from, until, func(start wall) bool {
		var second int
		if second, ok = f.inDay(int(max(from-start, 0))); ok {
			found = start + wall(second)
		}
		return !ok
	})
	return found, ok && found < until
}

// count returns the number of scheduled times in [from, until).
func (f *fields) count(from, until wall) int {
	n := 0
	f.days(from, until, func(start wall) bool {
		n += f.before(int(min(until-start, day))) - f.before(int(max(from-start, 0)))
		return true
	})
	return n
}

// inDay returns the first scheduled second of a day, starting at from.
func (f *fields) inDay(from int) (second int, ok bool) {
	h, m, s := from/3600, from/60%60, from%60
	if f.hour&(1<<h) != 0 {
		if f.minute&(1<<m) != 0 {
			if s, ok = bitFrom(f.second, s); ok {
				return h*3600 + m*60 + s, true
			}
		}
		if m, ok = bitFrom(f.minute, m+1); ok {
			s, _ = bitFrom(f.second, 0)
			return h*3600 + m*60 + s, true
		}
	}
	if h, ok = bitFrom(f.hour, h+1); !ok {
		return 0, false
	}
	m, _ = bitFrom(f.minute, 0)
	s, _ = bitFrom(f.second, 0)
	return h*3600 + m*60 + s, true
}

// before returns the number of scheduled seconds of a day before second, which
// may be the end of the day.
func (f *fields) before(second int) int {
	h, m, s := second/3600, second/60%60, second%60
	minutes, seconds := bits.OnesCount64(f.minute), bits.OnesCount64(f.second)
	n := below(f.hour, h) * minutes * seconds
	if f.hour&(1<<h) != 0 {
		n += below(f.minute, m) * seconds
		if f.minute&(1<<m) != 0 {
			n += below(f.second, s)
		}
	}
	return n
}

// bitFrom returns the lowest bit of a set that is n or higher.
func bitFrom(set uint64, n int) (int, bool) {
	set &^= 1<<n - 1
	return bits.TrailingZeros64(set), set != 0
}

// below returns the number of bits of a set that are lower than n.
func below(set uint64, n int) int { return bits.OnesCount64(set & (1<<n - 1)) }

// mod returns a modulo b, never negative for positive b.
func mod(a, b wall) wall { return ((a % b) + b) % b }
