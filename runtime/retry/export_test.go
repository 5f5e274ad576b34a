package retry

import "time"

// A Backoff is how often and with which backoff to retry.
type Backoff struct {
	Type        string
	Base, Limit time.Duration
}

// Delay returns the delay before the n-th retry, counted from 1.
func (s Backoff) Delay(n int) time.Duration {
	return strategy{backoff: s.Type, base: s.Base, limit: s.Limit}.delay(n)
}

// HasStrategy reports whether the table has a row for each error of a category.
func HasStrategy(c Category) bool {
	for _, r := range Steps().rows {
		if r.category == c && r.subcategory == "" {
			return true
		}
	}
	return false
}
