package retry

import "time"

// ClassifyMessage classifies an error by its text only.
var ClassifyMessage = classifyMessage

// A Strategy is how often and with which backoff to retry.
type Strategy struct {
	Backoff     string
	Base, Limit time.Duration
}

// Delay returns the delay before the n-th retry, counted from 1.
func (s Strategy) Delay(n int) time.Duration {
	return strategy{backoff: s.Backoff, base: s.Base, limit: s.Limit}.delay(n)
}

// HasStrategy reports whether the table has a row for each error of a category.
func HasStrategy(c Category) bool {
	for _, r := range strategies() {
		if r.category == c && r.subcategory == "" {
			return true
		}
	}
	return false
}
