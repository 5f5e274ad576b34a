package execution

import (
	"maps"
	"slices"

	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Status is Runtime.Status of package runtime.
func (ex *Executor) Status(id sentinels.RunID) (run.Info, error) {
	if r := ex.live(id); r != nil {
		return r.summary(), nil
	}
	info, found, err := ex.opt.Index.Stored(id)
	if err == nil && !found {
		err = failure.New(abi.NotFound, "no run has the id %q", id)
	}
	return info, err
}

// summary returns the current summary.
func (r *liveRun) summary() run.Info {
	r.mu.Lock()
	defer r.mu.Unlock()
	info := r.info
	info.Live, info.Iteration, info.Usage, info.Elapsed = true, r.folded.Iteration, r.folded.Usage, r.clock.Elapsed().Milliseconds()
	info.Revision, info.Hash, info.Edit = r.revision, r.hash, r.folded.Definitions.Edits()
	info.Decisions = slices.Clip(info.Decisions)
	for _, q := range r.pending { // of the last process: a run that is paused does not ask again
		if info.Status == sentinels.StatusPaused && !q.asked && !q.made && !slices.ContainsFunc(info.Decisions, func(shown run.PendingDecision) bool { return shown.Call == q.Call }) {
			info.Decisions = append(info.Decisions, q.PendingDecision)
		}
	}
	info.Retries = nil
	for _, w := range r.retries {
		info.Retries = append(info.Retries, *w)
	}
	info.Queued = nil
	for _, w := range r.queued {
		info.Queued = append(info.Queued, *w)
	}
	return info
}

// Summary returns the summary of an active run.
func (ex *Executor) Summary(id sentinels.RunID) (run.Info, bool) {
	r := ex.live(id)
	if r == nil {
		return run.Info{}, false
	}
	return r.summary(), true
}

// Starting returns the summaries of runs whose start is not durable yet.
func (ex *Executor) Starting() []run.Info {
	ex.mu.Lock()
	unstored := slices.Collect(maps.Values(ex.unstored))
	ex.mu.Unlock()
	infos := make([]run.Info, 0, len(unstored))
	for _, r := range unstored {
		infos = append(infos, r.summary())
	}
	return infos
}

// Waiting returns the number of active runs that wait: no step executes, and the
// journal contains what the run waits for.
func (ex *Executor) Waiting() int {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	n := 0
	for _, r := range ex.runs {
		if r.isWaiting() {
			n++
		}
	}
	return n
}

// isWaiting reports whether the run waits and has recorded the start of a host call.
func (r *liveRun) isWaiting() bool {
	const started = 4 // start records of the run, an iteration, a step and a host call
	if !r.slot.TryLock() {
		return false // a step waits for an execution slot
	}
	idle := r.active == 0
	r.slot.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	return idle && r.folded.Seq >= started
}
