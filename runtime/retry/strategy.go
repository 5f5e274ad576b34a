package retry

import "time"

// The kinds of backoff. Any other word is read as none.
const (
	Exponential = "exponential" // base, 2 x base, 4 x base, ...
	Linear      = "linear"      // base, 2 x base, 3 x base, ...
	None        = "none"        // at once
)

// A Strategy says how often and when to try again.
type Strategy struct {
	MaxRetries int           // tries after the first
	Backoff    string        // Exponential, Linear or None
	Base       time.Duration // delay of the first retry
	Cap        time.Duration // no delay is longer; 0 for no cap
}

// maxDelay is what delays saturate at: no clock outlives it.
const maxDelay = 100 * 365 * 24 * time.Hour

// Delay returns how long to wait before the n-th retry, counted from 1.
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
