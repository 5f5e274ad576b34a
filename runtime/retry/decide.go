package retry

import (
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A Decision is whether and when to retry.
type Decision struct {
	Retry             bool
	Delay             time.Duration // from now; 0 without Retry
	AttemptsRemaining int           // retries left after this one
}

// MaxRetryAfter limits the delay that a server or plugin can request before the
// next attempt. Longer requests are taken for mistakes of the server.
const MaxRetryAfter = 24 * time.Hour

// defaultBase is the base of a strategy without one whose backoff is overridden.
const defaultBase = time.Second

// Decide decides about the error of a step, by the profile [Steps].
func Decide(c Classification, retriesSoFar int, override sentinels.RetryPolicy, retryAfter time.Duration) Decision {
	return Steps().Decide(c, retriesSoFar, override, retryAfter)
}

// Decide decides about an error after retriesSoFar retries.
//
// override replaces fields of the strategy, but never causes a retry of a
// permanent error. retryAfter is the delay that a server requested: the minimum of
// the delay, even above the strategy's maximum, limited to [MaxRetryAfter]. With
// MaxRetryAfterMs of the override an error that requests more is not retried, for a
// caller that has better things to do than to wait.
func (p Profile) Decide(c Classification, retriesSoFar int, override sentinels.RetryPolicy, retryAfter time.Duration) Decision {
	s := p.of(c).with(override)
	made := max(retriesSoFar, 0)
	if limit := override.MaxRetryAfterMs; c.Permanent || made >= s.maxRetries || limit > 0 && retryAfter > milliseconds(limit) {
		return Decision{}
	}
	return Decision{
		Retry:             true,
		Delay:             max(s.delay(made+1), min(retryAfter, MaxRetryAfter)),
		AttemptsRemaining: s.maxRetries - made - 1,
	}
}
