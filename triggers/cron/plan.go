package cron

import "time"

// A plan is the planned times of a schedule. All its methods return for any
// times, and none keeps state: they are safe for concurrent use.
type plan interface {
	// next returns the first planned time behind after, zero if there is none
	// within [horizon].
	next(after time.Time) time.Time
	// count returns how many planned times are behind after and not behind
	// until. What it costs grows with the days between, not with the result.
	count(after, until time.Time) int
	// back returns the planned time of which k-1 follow until until, that one
	// included, among those behind after. There must be k of them.
	back(after, until time.Time, k int) time.Time
}

// horizon is how far ahead a planned time is looked for. A 29 February that
// has to be a Monday may be 40 years away.
const horizon = 50 * 366 * 24 * time.Hour
