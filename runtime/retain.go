package runtime

import (
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
)

// A keptIteration is one pass whose records are in the journal.
type keptIteration struct {
	number int
	first  uint64 // its first record
	bytes  int64  // of the run's journal when it began
}

// noteIteration remembers where a pass begins, whose first records were just
// written.
func (r *run) noteIteration(n, records int) {
	r.log.mu.Lock()
	bytes := r.log.bytes
	r.log.mu.Unlock()
	r.mu.Lock()
	first := r.state.Seq + 1 - uint64(records)
	r.kept = append(r.kept, keptIteration{n, first, bytes})
	r.mu.Unlock()
}

// retain drops the records of passes that are too old or too many. Recovery
// needs only the newest snapshot and what follows; the rest is for the trace.
// The first record of a run always stays.
func (r *run) retain() {
	limits := r.rt.limits
	r.log.mu.Lock()
	bytes := r.log.bytes
	r.log.mu.Unlock()
	r.mu.Lock()
	cut := 0
	for cut < len(r.kept)-1 && (len(r.kept)-cut > limits.KeepIterations || bytes-r.kept[cut].bytes > limits.KeepBytes) {
		cut++
	}
	if cut == 0 {
		r.mu.Unlock()
		return
	}
	from, to := r.kept[0].first, r.kept[cut].first-1
	r.kept = append([]keptIteration(nil), r.kept[cut:]...)
	r.mu.Unlock()
	r.rt.db.Enqueue(store.Batch{Lazy: true, Trims: []store.Trim{{Run: string(r.id), From: max(from, 2), To: to}}})
}
