package execution

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// The overlap policy of a definition also holds for runs that no trigger starts: with skip such a
// start is refused while a run of the sentinel is active, with queue and restart the new run waits,
// before its first step, until those before it have ended. A trigger has its own queue,
// see package dispatch, whose firings wait for all active runs.

// maxTurns bounds the runs of a sentinel that wait for their turn.
const maxTurns = 1000

// waitsForTurn reports whether a run begins only when those of its sentinel before it have ended.
func (r *liveRun) waitsForTurn() bool { return r.parent == nil && waitsForTurn(r.begin.Overlap) }

func waitsForTurn(policy sentinels.Overlap) bool {
	return policy == sentinels.OverlapQueue || policy == sentinels.OverlapRestart
}

// runsBefore returns the active runs of a sentinel that began before one of its runs, the oldest first.
func (ex *Executor) runsBefore(of sentinels.ID, id sentinels.RunID) (list []*liveRun) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	for _, other := range ex.runs {
		if other.parent == nil && other.begin.Sentinel == of && other.id < id { // ids are ordered by time
			list = append(list, other)
		}
	}
	slices.SortFunc(list, func(a, b *liveRun) int { return strings.Compare(string(a.id), string(b.id)) })
	return list
}

// takeTurn closes the place of a new run, or lets it wait for its turn. The caller holds ex.mu.
func (ex *Executor) takeTurn(r *liveRun) {
	if !r.waitsForTurn() {
		close(r.place)
		return
	}
	ex.enqueueTurn(r)
	ex.fillTurns(r.begin.Sentinel)
}

// enqueueTurn lets r wait for its turn. The caller holds ex.mu.
func (ex *Executor) enqueueTurn(r *liveRun) {
	ex.turns[r.begin.Sentinel] = append(ex.turns[r.begin.Sentinel], r)
	ex.queueRun(r, fmt.Sprintf("an earlier run of %s is active (concurrency: %s)", r.begin.Sentinel, r.begin.Overlap))
}

// fillTurns lets the oldest waiting run of a sentinel begin if none that it waits for is active. Runs of
// persons come before those of agents and models, which could hold up a person with any number of starts.
// The caller holds ex.mu.
func (ex *Executor) fillTurns(id sentinels.ID) {
	waiting := ex.turns[id]
	if len(waiting) == 0 || ex.closed {
		return
	}
	next := slices.MinFunc(waiting, func(a, b *liveRun) int {
		if held := a.slotOwner().Held; held != b.slotOwner().Held {
			if held {
				return 1
			}
			return -1
		}
		return strings.Compare(string(a.id), string(b.id))
	})
	for _, other := range ex.runs {
		// One that began out of the order of starts, as it is of a person, has a later id.
		before := other.id < next.id || other.waitsForTurn()
		if other.parent == nil && other.begin.Sentinel == id && before && other.hasPlace() {
			return
		}
	}
	ex.giveRunPlace(next)
	ex.dropTurn(next)
}

// dropTurn removes r from the runs that wait for their turn. The caller holds ex.mu.
func (ex *Executor) dropTurn(r *liveRun) {
	id := r.begin.Sentinel
	if ex.turns[id] = slices.DeleteFunc(ex.turns[id], func(other *liveRun) bool { return other == r }); len(ex.turns[id]) == 0 {
		delete(ex.turns, id)
	}
}

// stopBefore stops the runs of the sentinel that began before r, for the policy restart. Those that
// begin meanwhile come behind r.
func (r *liveRun) stopBefore() error {
	for _, other := range r.ex.runsBefore(r.begin.Sentinel, r.id) {
		if err := r.ex.StopRun(r.ctx, other.id, run.StopOptions{}); err != nil && abi.CodeOf(err) != abi.Conflict && abi.CodeOf(err) != abi.NotFound {
			return err
		}
	}
	return nil
}

// mayStopBefore returns the error of over for one of the runs that a new run would stop by the policy restart.
func (ex *Executor) mayStopBefore(begin *journal.RunStartBody, id sentinels.RunID, over func(run.Info) error) error {
	if over == nil || begin.Overlap != sentinels.OverlapRestart {
		return nil
	}
	for _, other := range ex.runsBefore(begin.Sentinel, id) {
		info, err := ex.Status(other.id)
		if err == nil && !info.Status.Final() {
			err = over(info)
		}
		if err != nil && abi.CodeOf(err) != abi.NotFound {
			return err
		}
	}
	return nil
}

// checkTurns returns an error if too many runs of a sentinel wait for their turn.
func (ex *Executor) checkTurns(r *liveRun) error {
	if !r.waitsForTurn() || len(ex.turns[r.begin.Sentinel]) < maxTurns {
		return nil
	}
	return &abi.Error{
		Code: abi.Limit, Message: fmt.Sprintf("start %q: %d runs wait until those before them have ended; no more may wait", r.begin.Sentinel, maxTurns),
		Hint: fmt.Sprintf("`sentinel status %s` shows what runs", r.begin.Sentinel),
	}
}

// notAlone is the error of a start that the policy skip refuses.
func (ex *Executor) notAlone(id sentinels.ID, active []sentinels.RunID) error {
	oldest, state := active[0], "active"
	if info, err := ex.Status(oldest); err == nil {
		state = string(info.Status)
	}
	return &abi.Error{
		Code: abi.Conflict, Permanent: true,
		Message: fmt.Sprintf("start %q: run %s is %s, and the definition allows one run at a time (concurrency: skip)", id, oldest, state),
		Hint:    fmt.Sprintf("`sentinel status %s` shows it, `sentinel stop %[1]s` stops it, and `--force` starts beside it (force of the command, which only a person gives)", oldest),
	}
}
