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

// executingAtCrash returns the paths of the steps of a restored run that were
// executing when the host went down: those that a crash counts against. A step
// that only waited is not among them, nor a suspect that waited for its turn.
// Steps that have ended since their last crash are forgotten.
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

// countCrash counts the crash against the steps that were executing. alone says
// that of all runs only one step was.
func (r *liveRun) countCrash(alone bool) {
	if len(r.stepsAtCrash) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	crashes := maps.Clone(r.info.Crashes) // others may look at the run already
	if crashes == nil {
		crashes = map[string]run.StepCrashes{}
	}
	for _, path := range r.stepsAtCrash {
		c := crashes[path]
		if alone || r.ex.svc.Limits.Suspected(c) { // a suspect executes only in its turn
			c.Alone++
		}
		c.Count++
		crashes[path] = c
	}
	r.info.Crashes, r.stepsAtCrash = crashes, nil
}

// suspects returns how many steps of a restored run execute only in their turn.
func (r *liveRun) suspects() (n int) {
	for _, c := range r.info.Crashes {
		if r.ex.svc.Limits.Suspected(c) && !r.ex.svc.Limits.Quarantined(c) {
			n++
		}
	}
	return n
}

// quarantine returns the step for which a restored run is held, nil if there is
// none, or a decision about it is in the journal.
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

// wasExecuting reports whether the attempt did something itself when its records
// stop: its guest ran, or an effect was under way about which no person was asked.
func wasExecuting(a *history.Attempt, path string, pending map[string]bool) bool {
	for _, c := range a.Calls {
		if c.End == nil && c.Start != nil {
			return c.Start.Effect && !pending[history.CallName(path, c.Seq)]
		}
	}
	return true
}

// Crashes returns what is counted against a step.
func (r *liveRun) Crashes(path string) run.StepCrashes {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.info.Crashes[path]
}

// LiftQuarantine forgets what was counted against a step and writes that the
// decision was acted on: it does not answer for crashes to come.
func (r *liveRun) LiftQuarantine(path string) {
	r.mu.Lock()
	left := maps.Clone(r.info.Crashes) // a summary under way may hold the map
	delete(left, path)
	r.info.Crashes = left
	r.mu.Unlock()
	r.Write(step.Commit{Summary: true}, &journal.Record{Kind: journal.Signal, Signal: &journal.SignalBody{Type: history.SignalUsed, Call: step.QuarantineName(path)}})
}

// quarantines returns the questions about quarantined steps of a run.
func quarantines(info run.Info) []run.PendingDecision {
	return slices.DeleteFunc(slices.Clone(info.Decisions), func(q run.PendingDecision) bool { return q.Kind != run.DecisionQuarantine })
}

// lift lets the quarantined steps of a run execute again, as a decision about
// each of them would.
func (ex *Executor) liftQuarantines(ctx context.Context, info run.Info, opt run.ResumeOptions) error {
	for _, q := range quarantines(info) {
		err := ex.Decide(ctx, info.ID, run.Decision{Call: q.Call, Verdict: "retry", By: opt.By, Comment: opt.Comment})
		if err != nil {
			return fmt.Errorf("lift quarantine of run %s: %w", info.ID, err)
		}
	}
	return nil
}

// needsComment is the error for a quarantine that is lifted without a reason.
func needsComment(id sentinels.RunID) *abi.Error {
	return &abi.Error{
		Code: abi.BadFields, Field: "comment", Message: fmt.Sprintf("run %s is quarantined: say why its step may execute again", id),
		Hint: fmt.Sprintf("sentinel resume %s --comment WHY", id),
	}
}
