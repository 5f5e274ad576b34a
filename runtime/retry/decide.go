package retry

import (
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A Decision is whether and when to retry.
type Decision struct {
	Retry             bool
	Delay             time.Duration // from now; 0 without Retry
	AttemptsRemaining int           // retries left after this one
	Strategy          Strategy      // including overrides
	Class             string        // class of the error in the profile
	Classification    Classification
	Reason            Reason
}

// Reason is the reason for a decision.
type Reason string

// The reasons.
const (
	ReasonRetry      Reason = "retry"
	ReasonMaxRetries Reason = "max_retries" // no retries left, or none in the strategy
	ReasonPermanent  Reason = "permanent"   // a retry cannot help
)

// MaxRetryAfter limits the delay that a server or plugin can request before the
// next attempt. Longer requests are taken for mistakes of the server.
const MaxRetryAfter = 24 * time.Hour

// defaultBase is the Base of a strategy without one whose backoff is overridden.
const defaultBase = time.Second

// Decide decides about an error after retriesSoFar retries for errors of its
// class.
//
// override replaces fields of the strategy, but never causes a retry of a
// permanent error. retryAfter is the delay that a server requested: the minimum of
// the delay, even above the strategy's Cap, limited to [MaxRetryAfter]. jitter
// returns a number in [0, 1) by which the strategy's delay is multiplied ("full
// jitter"); nil is no jitter.
func Decide(p Profile, c Classification, retriesSoFar int, override sentinels.RetryPolicy, retryAfter time.Duration, jitter func() float64) Decision {
	s, class := p.Strategy(c)
	s = s.with(override)
	d := Decision{Strategy: s, Class: class, Classification: c}
	made := max(retriesSoFar, 0)
	switch {
	case c.Permanent:
		d.Reason = ReasonPermanent
		return d
	case made >= s.MaxRetries:
		d.Reason = ReasonMaxRetries
		return d
	}
	d.Retry, d.Reason = true, ReasonRetry
	d.AttemptsRemaining = s.MaxRetries - made - 1
	d.Delay = Delay(s, made+1)
	if jitter != nil {
		d.Delay = time.Duration(float64(d.Delay) * min(max(jitter(), 0), 1))
	}
	d.Delay = max(d.Delay, min(retryAfter, MaxRetryAfter))
	return d
}

// with returns the strategy with the fields that the policy sets.
func (s Strategy) with(p sentinels.RetryPolicy) Strategy {
	if p.MaxRetries > 0 {
		s.MaxRetries = p.MaxRetries
	}
	if p.BackoffType != "" {
		s.Backoff = p.BackoffType
	}
	if p.BaseDelayMs > 0 {
		s.Base = milliseconds(p.BaseDelayMs)
		if s.Backoff == None && p.BackoffType == "" {
			s.Backoff = Linear // without a backoff the given delay would have no effect
		}
	}
	if p.MaxDelayMs > 0 {
		s.Cap = milliseconds(p.MaxDelayMs)
	}
	if s.Base == 0 && s.Backoff != None {
		s.Base = defaultBase
	}
	return s
}

// milliseconds converts ms, limited to maxDelay.
func milliseconds(ms int64) time.Duration {
	return time.Duration(min(ms, int64(maxDelay/time.Millisecond))) * time.Millisecond
}

// Explanation returns a sentence for people on why there is no retry, "" if there
// is one.
func (d Decision) Explanation() string {
	switch d.Reason {
	case ReasonMaxRetries:
		return fmt.Sprintf("Max retries exceeded for %s error (%d attempts)", d.Classification.Category, d.Strategy.MaxRetries)
	case ReasonPermanent:
		return fmt.Sprintf("Permanent %s error (%s): a retry cannot help", d.Classification.Category, d.Classification.Subcategory)
	}
	return ""
}
