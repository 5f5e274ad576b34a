// Package rate bounds how often agents and models do something, such as the start of runs by their triggers.
package rate

import (
	"sync"
	"time"
)

// A Limiter has a token bucket for each agent, and one for all models. A nil Limiter bounds nothing.
//
// # Concurrency
//
// Safe for concurrent use.
type Limiter struct {
	perMinute, burst int
	reached          func(by string)

	mu sync.Mutex
	by map[string]*bucket // by agent; "model" is all models
}

type bucket struct {
	tokens   float64
	at       time.Time // of tokens
	reported time.Time // when reached was called last
}

// New returns a limiter that permits perMinute in a minute, burst of them at once; perMinute 0 or less means no bound. reached is
// called with an agent that has reached the bound, at most once a minute for each.
func New(perMinute, burst int, reached func(by string)) *Limiter {
	return &Limiter{perMinute: perMinute, burst: max(burst, 1), reached: reached, by: map[string]*bucket{}}
}

// Take takes a token of an agent or of models and returns 0, or returns after how long there may be one. Persons
// are "", and have no bound.
func (l *Limiter) Take(by string) (wait time.Duration) {
	if l == nil || by == "" || l.perMinute <= 0 {
		return 0
	}
	now, each := time.Now(), time.Minute/time.Duration(l.perMinute)
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.filled(by, now, each)
	if b.tokens >= 1 {
		b.tokens--
		return 0
	}
	if now.Sub(b.reported) >= time.Minute {
		b.reported = now
		l.reached(by)
	}
	return max(time.Duration((1-b.tokens)*float64(each)), time.Millisecond)
}

// Owe takes a token of by where there may be none: later ones are waited for the longer, by what burst tokens take at most.
func (l *Limiter) Owe(by string) {
	if l == nil || by == "" || l.perMinute <= 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.filled(by, time.Now(), time.Minute/time.Duration(l.perMinute))
	b.tokens = max(b.tokens-1, -float64(l.burst))
}

// filled returns the bucket of by with what it has at a time, one more token each so often.
func (l *Limiter) filled(by string, now time.Time, each time.Duration) *bucket {
	b := l.by[by]
	if b == nil {
		b = &bucket{tokens: float64(l.burst), at: now}
		l.by[by] = b
	}
	b.tokens = min(float64(l.burst), b.tokens+float64(now.Sub(b.at))/float64(each))
	b.at = now
	return b
}
