package api

import (
	"log/slog"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Limits of the lines about refused webhooks: a stranger must not be able to fill the log.
const (
	refusalTime  = time.Minute
	refusalKinds = 16  // webhooks that are logged by name in a period
	refusalText  = 200 // bytes of a name or a reason
)

// refusals logs the first refusal of each webhook in a period, and at its end how many followed.
//
// # Concurrency
//
// Safe for concurrent use. The zero value is ready.
type refusals struct {
	mu    sync.Mutex
	after map[refusal]int // those that followed the first, in this period
}

// A refusal is the webhook that was called. That of all beyond [refusalKinds] is empty.
type refusal struct{ sentinel, trigger string }

// add logs or counts a refused request.
func (r *refusals) add(log *slog.Logger, id sentinels.ID, trigger string, err error) {
	kind := refusal{textcut.Mark(string(id), refusalText), textcut.Mark(trigger, refusalText)}
	r.mu.Lock()
	if r.after == nil {
		r.after = map[refusal]int{}
		time.AfterFunc(refusalTime, func() { r.endPeriod(log) })
	}
	n, known := r.after[kind]
	if !known && len(r.after) >= refusalKinds {
		kind = refusal{}
		n, known = r.after[kind]
	}
	if known {
		n++
	}
	r.after[kind] = n
	r.mu.Unlock()
	switch {
	case known:
	case kind == refusal{}:
		log.Warn("webhooks refused; further ones are counted", "error", textcut.Mark(err.Error(), refusalText))
	default:
		log.Warn("webhook refused", "sentinel", kind.sentinel, "trigger", kind.trigger, "error", textcut.Mark(err.Error(), refusalText))
	}
}

// endPeriod logs how many refusals followed the first ones.
func (r *refusals) endPeriod(log *slog.Logger) {
	r.mu.Lock()
	ended := r.after
	r.after = nil
	r.mu.Unlock()
	for kind, n := range ended {
		if n > 0 {
			log.Warn("webhooks refused again", "sentinel", kind.sentinel, "trigger", kind.trigger, "times", n, "within", refusalTime)
		}
	}
}
