package retry

import (
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// The backoff types. With any other string there is no delay.
const (
	exponential = "exponential" // base, 2 x base, 4 x base, ...
	linear      = "linear"      // base, 2 x base, 3 x base, ...
	none        = "none"        // base each time
)

// A strategy is how often and with which backoff to retry.
type strategy struct {
	maxRetries int           // attempts after the first
	backoff    string        // exponential, linear or none
	base       time.Duration // delay of the first retry
	limit      time.Duration // maximum delay; 0 for none
}

// A row gives the strategy of a category, or of one subcategory.
type row struct {
	category    Category // empty for any
	subcategory string   // empty for any
	strategy    strategy
}

// A Profile is a table of strategies. Its zero value retries nothing.
type Profile struct {
	name string
	rows []row // the first that matches applies
}

// unknownError is the strategy of a step for errors of unknown category.
var unknownError = strategy{2, exponential, 1000 * time.Millisecond, 0}

// Steps is the profile of steps: [Fine], and an error of unknown category is retried
// twice, since no person watches a step.
func Steps() Profile {
	rows := []row{{ManualReview, "unclassified", unknownError}, {ManualReview, "empty_error", unknownError}, {API, blamed, strategy{backoff: none}}}
	return Profile{"steps", append(rows, Fine().rows...)}
}

// Fine is the default profile of tickets: a strategy for each category.
func Fine() Profile {
	return Profile{"fine", []row{
		{API, "", strategy{7, exponential, 1000 * time.Millisecond, 0}},
		{Timeout, "", strategy{5, exponential, 2000 * time.Millisecond, 0}},
		{Runtime, "", strategy{3, linear, 5000 * time.Millisecond, 0}},
		{Logic, "", strategy{2, linear, 3000 * time.Millisecond, 0}},
		{Syntax, "", strategy{0, none, 0, 0}},
		{Context, "", strategy{1, linear, 5000 * time.Millisecond, 0}},
		{Security, "", strategy{3, linear, 5000 * time.Millisecond, 0}},
		{Verification, "", strategy{3, linear, 5000 * time.Millisecond, 0}},
		{ManualReview, "", strategy{0, none, 0, 0}},
	}}
}

// Coarse is a profile of five classes: transient errors, other errors of an API, errors
// of code, of the system, and unknown ones.
func Coarse() Profile {
	transient := strategy{3, exponential, 1000 * time.Millisecond, 0}
	code := strategy{1, none, 0, 0}
	unknown := strategy{1, linear, 5000 * time.Millisecond, 0}
	return Profile{"coarse", []row{
		{API, "rate", transient},
		{API, "network", transient},
		{API, "unavailable", transient},
		{Timeout, "", transient},
		{API, "", strategy{2, linear, 2000 * time.Millisecond, 0}},
		{Syntax, "", code},
		{Logic, "", code},
		{Runtime, "", strategy{2, exponential, 5000 * time.Millisecond, 0}},
		{Context, "", unknown},
		{Security, "", strategy{3, linear, 5000 * time.Millisecond, 0}},
		{Verification, "", strategy{3, linear, 5000 * time.Millisecond, 0}},
		{ManualReview, "unclassified", unknown},
		{ManualReview, "empty_error", unknown},
		{ManualReview, "", strategy{0, none, 0, 0}},
	}}
}

// ProfileNamed returns the profile "fine", "coarse" or "steps".
func ProfileNamed(name string) (Profile, bool) {
	for _, p := range []Profile{Fine(), Coarse(), Steps()} {
		if p.name == name {
			return p, true
		}
	}
	return Profile{}, false
}

// Name returns the name of the profile.
func (p Profile) Name() string { return p.name }

// A Strategy is how often and with which backoff errors of a category are retried.
type Strategy struct {
	MaxRetries  int    `json:"maxRetries"`  // attempts after the first
	BackoffType string `json:"backoffType"` // exponential, linear or none
	BaseDelayMs int64  `json:"baseDelayMs"` // delay of the first retry
}

// Strategy returns what the profile says of an error.
func (p Profile) Strategy(c Classification) Strategy {
	s := p.of(c)
	if c.Permanent {
		s = strategy{backoff: none}
	}
	return Strategy{s.maxRetries, s.backoff, s.base.Milliseconds()}
}

// A Default is what a retry without a policy of the step does for a category of errors.
type Default struct {
	Category   Category
	MaxRetries int // attempts after the first; the others are 0 without any
	Backoff    string
	Base       time.Duration // the shortest delay; the longest is not limited
}

// Defaults returns the table of strategies. Unclassified errors are of the category "".
func Defaults() []Default {
	var list []Default
	for _, r := range Steps().rows {
		c := r.category
		switch r.subcategory {
		case "unclassified":
			c = ""
		case "":
		default:
			continue
		}
		list = append(list, Default{c, r.strategy.maxRetries, r.strategy.backoff, r.strategy.base})
	}
	return list
}

// of returns the strategy of a classification. Without a matching row there are no
// retries.
func (p Profile) of(c Classification) strategy {
	for _, r := range p.rows {
		if r.category == c.Category && (r.subcategory == "" || r.subcategory == c.Subcategory) {
			return r.strategy
		}
	}
	return strategy{backoff: none}
}

// with returns the strategy with the fields that the policy sets.
func (s strategy) with(p sentinels.RetryPolicy) strategy {
	if p.When != "" && s.maxRetries == 0 { // the author asks for retries of errors that have none by their category
		s = unknownError
	}
	if p.MaxRetries > 0 {
		s.maxRetries = p.MaxRetries
	}
	if p.BackoffType != "" {
		if s.backoff = p.BackoffType; s.backoff == none {
			s.base = 0 // that of the category belongs to its backoff
		}
	}
	if p.BaseDelayMs > 0 {
		s.base = milliseconds(p.BaseDelayMs)
		if s.backoff == none && p.BackoffType == "" {
			s.backoff = linear // without a backoff the given delay would have no effect
		}
	}
	if p.MaxDelayMs > 0 {
		s.limit = milliseconds(p.MaxDelayMs)
	}
	if s.base == 0 && s.backoff != none {
		s.base = defaultBase
	}
	return s
}

// maxDelay is the maximum of all delays, so that they cannot overflow.
const maxDelay = 100 * 365 * 24 * time.Hour

// milliseconds converts ms, limited to maxDelay.
func milliseconds(ms int64) time.Duration {
	return time.Duration(min(ms, int64(maxDelay/time.Millisecond))) * time.Millisecond
}

// delay returns the delay before the n-th retry, counted from 1.
func (s strategy) delay(n int) time.Duration {
	if n < 1 || s.base <= 0 {
		return 0
	}
	limit := maxDelay
	if s.limit > 0 {
		limit = min(limit, s.limit)
	}
	switch s.backoff {
	case exponential:
		d := min(s.base, limit)
		for i := 1; i < n && d < limit; i++ {
			d = min(2*d, limit) // limit is far below overflow
		}
		return d
	case linear:
		if int64(n) > int64(limit/s.base) {
			return limit
		}
		return min(s.base*time.Duration(n), limit)
	case none:
		return min(s.base, limit)
	}
	return 0
}
