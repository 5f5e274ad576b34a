package cron

import "time"

// A plan computes the planned times of a schedule. Its methods return for any
// arguments. They keep no state, so they are safe for concurrent use.
type plan interface {
	// next returns the first planned time later than after, zero if there is none
	// within [horizon].
	next(after time.Time) time.Time
	// count returns the number of planned times later than after and not later
	// than until. Its cost grows with the days between them, not with the result.
	count(after, until time.Time) int
	// back returns the k-th last of the planned times that count counts. There
	// must be at least k.
	back(after, until time.Time, k int) time.Time
}

// horizon limits how far ahead next searches. A 29 February that is a Monday may
// be 40 years away.
const horizon = 50 * 366 * 24 * time.Hour
