package execution

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/sentinel-runtime/sentinel/runtime/internal/execution/step"
	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// findStepsAtCrash returns the execution paths of the steps of a restored run that were
// executing when the host crashed; the crash is counted against these. Steps that only
// waited are not included, nor suspects that waited for their turn. It also drops the
// counts of steps that have ended since their last crash.
func (r *liveRun) findStepsAtCrash() []string {
	turn := r.info.Turn
	r.info.Turn = ""
	if !r.folded.Open {
		r.info.Crashes = nil
	}
	if !r.folded.Open || !r.ex.opt.Unclean {
		return nil
	}
	pending := map[string]bool{}
	for _, q := range r.info.Decisions {
		pending[q.Call] = true
	}
	open := map[string]run.StepCrashes{}
	var executing []string
	for _, e := range r.folded.Executions {
		path := e.Path
		if e.End != nil || e.Last == 0 {
			continue
		}
		before := r.info.Crashes[path]
		if before.Count > 0 {
			open[path] = before
		}
		waited := r.ex.svc.Limits.Suspected(before) && turn != path
		a := e.Attempt
		if !waited && a != nil && wasExecuting(a, path, pending) && !slices.Contains(executing, path) {
			executing = append(executing, path)
		}
	}
	r.info.Crashes = open
	return executing
}

// countCrash counts the crash against the steps that were executing. alone reports that
// only one step of all runs was.
func (r *liveRun) countCrash(alone bool) {
	if len(r.stepsAtCrash) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	crashes := maps.Clone(r.info.Crashes) // other goroutines may read the old map
	if crashes == nil {
		crashes = map[string]run.StepCrashes{}
	}
	for _, path := range r.stepsAtCrash {
		c := crashes[path]
		if alone || r.ex.svc.Limits.Suspected(c) { // no other suspect executes during its turn
			c.Alone++
		}
		c.Count++
		crashes[path] = c
	}
	r.info.Crashes, r.stepsAtCrash = crashes, nil
}

// suspects returns the number of steps of a restored run that execute only in their
// turn.
func (r *liveRun) suspects() (n int) {
	for _, c := range r.info.Crashes {
		if r.ex.svc.Limits.Suspected(c) && !r.ex.svc.Limits.Quarantined(c) {
			n++
		}
	}
	return n
}

// quarantine returns the quarantined step of a restored run, nil if it has none or the
// journal already contains a decision about it.
func (r *liveRun) quarantine() *run.Quarantine {
	if !r.folded.Open {
		return nil
	}
	for _, e := range r.folded.Executions {
		path := e.Path
		c := r.info.Crashes[path]
		if e.End == nil && e.Last != 0 && e.Retry == nil && r.ex.svc.Limits.Quarantined(c) && r.folded.Decisions[step.QuarantineName(path)] == nil {
			return &run.Quarantine{Run: r.id, Sentinel: r.begin.Sentinel, Step: path, Crashes: c.Count}
		}
	}
	return nil
}

// wasExecuting reports whether the attempt was executing at its last record: its guest
// ran, or an effect was under way that is not a pending decision.
func wasExecuting(a *history.Attempt, path string, pending map[string]bool) bool {
	for _, c := range a.Calls {
		if c.End == nil && c.Start != nil {
			return c.Start.Effect && !pending[history.CallName(path, c.Seq)]
		}
	}
	return true
}

// Crashes implements [step.State].
func (r *liveRun) Crashes(path string) run.StepCrashes {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.info.Crashes[path]
}

// LiftQuarantine implements [step.Decisions]. It also records that the decision was
// used, so that it does not apply to later crashes.
func (r *liveRun) LiftQuarantine(path string) {
	r.mu.Lock()
	left := maps.Clone(r.info.Crashes) // a summary that is being encoded may use the old map
	delete(left, path)
	r.info.Crashes = left
	r.mu.Unlock()
	r.Write(step.Commit{Summary: true}, &journal.Record{Kind: journal.Signal, Signal: &journal.SignalBody{Type: history.SignalUsed, Call: step.QuarantineName(path)}})
}

// quarantines returns the pending decisions about quarantined steps.
func quarantines(pending []run.PendingDecision) []run.PendingDecision {
	return slices.DeleteFunc(slices.Clone(pending), func(q run.PendingDecision) bool { return q.Kind != run.DecisionQuarantine })
}

// liftQuarantines decides that the quarantined steps of a run execute again.
func (ex *Executor) liftQuarantines(ctx context.Context, id sentinels.RunID, quarantined []run.PendingDecision, opt run.ResumeOptions) error {
	for _, q := range quarantined {
		err := ex.Decide(ctx, id, run.Decision{Call: q.Call, Verdict: "retry", By: opt.By, Comment: opt.Comment})
		if err != nil {
			return fmt.Errorf("lift quarantine of run %s: %w", id, err)
		}
	}
	return nil
}

// needsComment returns the error for lifting a quarantine without a comment.
func needsComment(id sentinels.RunID) *abi.Error {
	return &abi.Error{
		Code: abi.BadFields, Field: "comment", Message: fmt.Sprintf("run %s is quarantined: resuming it requires a comment", id),
		Hint: fmt.Sprintf("sentinel resume %s --comment WHY", id),
	}
}
