package retry

import (
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A Decision says whether to try again.
type Decision struct {
	Retry             bool
	Delay             time.Duration // from now; 0 without Retry
	AttemptsRemaining int           // retries left after this one
	Strategy          Strategy      // the one that was used, overrides included
	Class             string        // the profile's name for this kind of error
	Classification    Classification
	Reason            Reason
}

// Reason is why a decision came out as it did, for programs.
type Reason string

// The reasons.
const (
	ReasonRetry      Reason = "retry"
	ReasonMaxRetries Reason = "max_retries" // none left, or the strategy has none
	ReasonPermanent  Reason = "permanent"   // another try cannot help
)

// baseDefault is the delay of an override that asks for growing delays where
// the strategy has none to grow from.
const baseDefault = time.Second

// Decide says what to do after an error, when retriesSoFar retries of its kind
// have been made.
//
// override replaces the fields of the strategy that it sets, but never makes a
// permanent error retried. retryAfter is what a server asked for: no delay is
// shorter, caps included. jitter returns a number in [0, 1) that scales the
// delay before that ("full jitter"); nil leaves delays exact.
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
	d.Delay = max(d.Delay, min(retryAfter, maxDelay))
	return d
}

// with returns the strategy with what the policy sets.
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
			s.Backoff = Linear // a delay without a kind, where there was none: it must count
		}
	}
	if p.MaxDelayMs > 0 {
		s.Cap = milliseconds(p.MaxDelayMs)
	}
	if s.Base == 0 && s.Backoff != None {
		s.Base = baseDefault
	}
	return s
}

// milliseconds converts without overflow.
func milliseconds(ms int64) time.Duration {
	return time.Duration(min(ms, int64(maxDelay/time.Millisecond))) * time.Millisecond
}

// HoldReason is the sentence for a person when there is no retry, in the words
// of specification 001; "" with one.
func (d Decision) HoldReason() string {
	switch d.Reason {
	case ReasonMaxRetries:
		return fmt.Sprintf("Max retries exceeded for %s error (%d attempts)", d.Classification.Category, d.Strategy.MaxRetries)
	case ReasonPermanent:
		return fmt.Sprintf("Permanent %s error (%s): another try cannot help", d.Classification.Category, d.Classification.Subcategory)
	}
	return ""
}
