package runtime

import (
	"fmt"
	"slices"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// The overlap policy of a sentinel asks which of its runs are on: begun, by
// whomever, and not durably over. Runs of this process say so themselves, by
// began and ended, whether triggers are armed or not; those that an earlier
// process left are found when triggers are armed.

// findRuns notes the runs that an earlier process began and that are not over.
func (a *arming) findRuns() error {
	var live []sentinels.RunID
	err := a.rt.indexed(indexLive, "", func(run sentinels.RunID) bool {
		live = append(live, run)
		return true
	})
	if err != nil {
		return fmt.Errorf("find the active runs: %w", err)
	}
	for _, run := range live {
		a.mu.Lock()
		// It may have ended since it was listed. Its end is durable before ended
		// is called, and ended needs the lock: so either the status says it, or
		// ended comes after this and takes the run out again.
		info, err := a.rt.Status(run)
		if err == nil && info.Parent == "" && !info.Status.Final() {
			a.note(info.Sentinel, run)
		}
		a.mu.Unlock()
		if err != nil && abi.CodeOf(err) != abi.NotFound {
			a.rt.log.Error("run cannot be read, its sentinel's triggers do not know of it", "run", run, "error", err)
		}
	}
	return nil
}

// note counts a run as on. The caller holds mu.
func (a *arming) note(id sentinels.ID, run sentinels.RunID) {
	if a.on[id] == nil {
		a.on[id] = map[sentinels.RunID]struct{}{}
	}
	a.on[id][run] = struct{}{}
}

// began and ended count the active runs. A child belongs to its
// parent's run and is none of its own.
func (a *arming) began(r *run) {
	if r.begin.Parent != "" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.note(r.begin.Sentinel, r.id)
}

// ended is called once the end of a run is durable, on the goroutine that
// delivers the store's receipts: it must not block.
func (a *arming) ended(id sentinels.ID, run sentinels.RunID) {
	a.mu.Lock()
	delete(a.on[id], run)
	if len(a.on[id]) == 0 {
		delete(a.on, id)
	}
	s := a.sentinels[id]
	a.mu.Unlock()
	// A fire that joins the queue at this moment has the queue drained itself.
	if s != nil && s.waiting.Load() > 0 {
		a.spawn(s.drain)
	}
}

// runsOn returns the runs of a sentinel that are on.
func (a *arming) runsOn(id sentinels.ID) []sentinels.RunID {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []sentinels.RunID
	for run := range a.on[id] {
		out = append(out, run)
	}
	slices.Sort(out) // the oldest first
	return out
}

// describe says that a run is on, in words.
func (a *arming) describe(id sentinels.RunID) string {
	info, err := a.rt.Status(id)
	if err != nil {
		return fmt.Sprintf("run %s is on", id)
	}
	return fmt.Sprintf("run %s is %s", id, info.Status)
}
