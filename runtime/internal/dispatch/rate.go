package dispatch

import (
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// startRates bound how many runs the triggers of the sentinels of an agent, or of all models, start: hundreds of
// schedules of a second each would else keep the disk and the processors from the runs of persons. A
// quarter of what a minute has may start at once, and then one after the other.
//
// # Concurrency
//
// Safe for concurrent use.
type startRates struct {
	perMinute int // 0 for no bound
	log       *slog.Logger

	mu sync.Mutex
	by map[string]*startRate // by agent; "model" is all models
}

// A startRate is a token bucket.
type startRate struct {
	starts   float64   // that may happen now
	at       time.Time // of starts
	reported time.Time // when the log said last that firings wait
}

// take takes the start of a run for an agent or for models, or returns after how long one may be free. Persons are
// "", and have no bound.
func (r *startRates) take(by string) (wait time.Duration) {
	if by == "" || r.perMinute <= 0 {
		return 0
	}
	now, burst := time.Now(), float64(max(r.perMinute/4, 1))
	each := time.Minute / time.Duration(r.perMinute)
	r.mu.Lock()
	defer r.mu.Unlock()
	rate := r.by[by]
	if rate == nil {
		rate = &startRate{starts: burst, at: now}
		r.by[by] = rate
	}
	rate.starts = min(burst, rate.starts+float64(now.Sub(rate.at))/float64(each))
	rate.at = now
	if rate.starts >= 1 {
		rate.starts--
		return 0
	}
	if now.Sub(rate.reported) >= time.Minute {
		rate.reported = now
		r.log.Warn("triggers fire more often than they may start runs: firings wait or are skipped", "by", by, "limit", r.perMinute, "setting", "limits.agentStarts")
	}
	return max(time.Duration((1-rate.starts)*float64(each)), time.Millisecond)
}

// reason says why a firing waits.
func (r *startRates) reason(by string) string {
	return fmt.Sprintf("the triggers of %s start at most %d runs a minute (limits.agentStarts)", by, r.perMinute)
}
