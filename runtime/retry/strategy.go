package retry

import "time"

// The backoff types. Any other string has no delay.
const (
	Exponential = "exponential" // base, 2 x base, 4 x base, ...
	Linear      = "linear"      // base, 2 x base, 3 x base, ...
	None        = "none"        // no delay
)

// A Strategy is how often and with which backoff to retry.
type Strategy struct {
	MaxRetries int           // attempts after the first
	Backoff    string        // Exponential, Linear or None
	Base       time.Duration // delay of the first retry
	Cap        time.Duration // maximum delay; 0 for none
}

// maxDelay is the maximum of all delays, so that they cannot overflow.
const maxDelay = 100 * 365 * 24 * time.Hour

// Delay returns the delay before the n-th retry, counted from 1.
func Delay(s Strategy, n int) time.Duration {
	if n < 1 || s.Base <= 0 {
		return 0
	}
	limit := maxDelay
	if s.Cap > 0 {
		limit = min(limit, s.Cap)
	}
	switch s.Backoff {
	case Exponential:
		d := min(s.Base, limit)
		for i := 1; i < n && d < limit; i++ {
			d = min(2*d, limit) // limit is far below overflow
		}
		return d
	case Linear:
		if int64(n) > int64(limit/s.Base) {
			return limit
		}
		return min(s.Base*time.Duration(n), limit)
	}
	return 0
}
