package execution

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime/internal/execution/step"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// # Runs that are undecided
//
// A call that was interrupted is not repeated unless onInterrupt or a person says so. A
// person may be away for days, and a schedule would stand still meanwhile. So a run that a
// trigger started, and that waits for such a decision only because nothing says otherwise,
// ends as failed at the next firing. One whose definition or step says "ask" waits.

// Undecided returns the call for whose decision the run or a child run of it waits, "" if it
// is not undecided: no trigger started it, it is paused, or its definition says "ask".
func (ex *Executor) Undecided(id sentinels.RunID) string {
	for _, r := range ex.undecidedTree(id) {
		if q := r.defaultDoubt(false); q != nil {
			return q.Call
		}
	}
	return ""
}

// EndUndecided ends a run of [Executor.Undecided] as failed, with the error interrupted, and
// returns when the end is durable. It reports false, and ends nothing, if the run is not
// undecided any more.
func (ex *Executor) EndUndecided(ctx context.Context, id sentinels.RunID) (bool, error) {
	var ended *step.UndecidedError
	tree := ex.undecidedTree(id)
	for _, r := range tree {
		if q := r.defaultDoubt(true); q != nil && ended == nil {
			ended = &step.UndecidedError{Step: stepOf(q.Call), Err: &abi.Error{
				Code: abi.Interrupted, Permanent: true,
				Message: q.Prompt + "; the decision about it was open at the next firing",
				Hint:    "look at what the call did, then start the run again by hand; \"onInterrupt\" of the step or of \"safety\" decides without you: retry, fail, or ask to wait",
			}}
			if r.id != id {
				ended.Step = ""
				ended.Err.Message = fmt.Sprintf("child run %s: %s", r.id, ended.Err.Message)
			}
		}
	}
	if ended == nil {
		return false, nil
	}
	return true, ex.endRun(ctx, tree[0], ended)
}

// undecidedTree returns a run that may be undecided, and then its active descendants; nil if
// it cannot be.
func (ex *Executor) undecidedTree(id sentinels.RunID) []*liveRun {
	r := ex.live(id)
	if r == nil || r.begin.Trigger == "" || r.status() == sentinels.StatusPaused {
		return nil
	}
	return append([]*liveRun{r}, ex.liveDescendants(id)...)
}

// defaultDoubt returns a call that the run asks about because nothing that its author wrote
// says so, nil for none. With take, no decision about it is accepted any more.
func (r *liveRun) defaultDoubt(take bool) *pendingDecision {
	def, status := r.Definition(), r.status()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.pending {
		if q.Kind != run.DecisionDoubt || !q.asked || q.made || status == sentinels.StatusPaused {
			continue
		}
		if cmp.Or(ownInterrupt(def, stepOf(q.Call)), def.Safety.OnInterrupt, r.begin.Interrupt) != sentinels.InterruptAsk {
			q.made = take
			return q
		}
	}
	return nil
}

// stepOf returns the address of the step that a pending decision is about.
func stepOf(call string) string {
	path, _, _ := strings.Cut(call, "!")
	return sentinels.PathAddress(path)
}

// asksAbout has the firings that wait for the run look at it, if it is undecided now.
func (r *liveRun) asksAbout(what run.PendingDecision) {
	root := r
	for root.parent != nil {
		root = root.parent
	}
	if what.Kind == run.DecisionDoubt && root.begin.Trigger != "" {
		r.ex.opt.Triggers.RunAsks(root.begin.Sentinel, root.id)
	}
}
