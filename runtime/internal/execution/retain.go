package execution

import (
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
)

// noteIteration remembers at which record an iteration begins. The iteration's first
// records, whose number is given, were just written.
func (r *liveRun) noteIteration(records int) {
	r.log.mu.Lock()
	bytes := r.log.bytes
	r.log.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keptIterations.Add(r.folded.Seq+1-uint64(records), bytes)
}

// trimJournal removes the records of iterations beyond the limits KeepIterations and
// KeepBytes.
func (r *liveRun) trimJournal() {
	r.log.mu.Lock()
	bytes := r.log.bytes
	r.log.mu.Unlock()
	r.mu.Lock()
	from, to, ok := r.keptIterations.Cut(bytes, r.ex.svc.Limits.KeepIterations, r.ex.svc.Limits.KeepBytes)
	r.mu.Unlock()
	if ok {
		r.ex.opt.Store.Enqueue(store.Batch{Lazy: true, Trims: []store.Trim{{Run: string(r.id), From: from, To: to}}})
	}
}
