package runtime

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// suspect reports whether the next crash may quarantine the step. From then on
// it executes only in its turn, so that the next crash shows which step it is.
func (l *Limits) suspect(c StepCrashes) bool { return c.Count >= max(1, l.Crashes-1) }

// poison reports whether the step is quarantined: it was executing at too many
// crashes, and at all but one of them no other step can have been the cause.
func (l *Limits) poison(c StepCrashes) bool {
	return c.Count >= l.Crashes && c.Alone >= max(1, l.Crashes-1)
}

// executingAtCrash returns the paths of the steps of a restored run that were
// executing when the host went down: those that a crash counts against. A step
// that only waited is not among them, nor a suspect that waited for its turn.
// Steps that have ended since their last crash are forgotten.
func (r *run) executingAtCrash() []string {
	turn := r.info.Turn
	r.info.Turn = ""
	if !r.state.Open {
		r.info.Crashes = nil
	}
	if !r.state.Open || !r.rt.unclean {
		return nil
	}
	asked := map[string]bool{}
	for _, q := range r.info.Decisions {
		asked[q.Call] = true
	}
	open := map[string]StepCrashes{}
	var executing []string
	for _, e := range r.state.Executions {
		path := e.Path
		if e.End != nil || e.Last == 0 {
			continue
		}
		before := r.info.Crashes[path]
		if before.Count > 0 {
			open[path] = before
		}
		waited := r.rt.limits.suspect(before) && turn != path
		a := e.Attempt
		if !waited && a != nil && wasExecuting(a, path, asked) && !slices.Contains(executing, path) {
			executing = append(executing, path)
		}
	}
	r.info.Crashes = open
	return executing
}

// countCrash counts the crash against the steps that were executing. alone says
// that of all runs only one step was.
func (r *run) countCrash(alone bool) {
	if len(r.atCrash) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	crashes := maps.Clone(r.info.Crashes) // others may look at the run already
	if crashes == nil {
		crashes = map[string]StepCrashes{}
	}
	for _, path := range r.atCrash {
		c := crashes[path]
		if alone || r.rt.limits.suspect(c) { // a suspect executes only in its turn
			c.Alone++
		}
		c.Count++
		crashes[path] = c
	}
	r.info.Crashes, r.atCrash = crashes, nil
}

// suspects returns how many steps of a restored run execute only in their turn.
func (r *run) suspects() (n int) {
	for _, c := range r.info.Crashes {
		if r.rt.limits.suspect(c) && !r.rt.limits.poison(c) {
			n++
		}
	}
	return n
}

// quarantine returns the step for which a restored run is held, nil if there is
// none, or a decision about it is in the journal.
func (r *run) quarantine() *Quarantine {
	if !r.state.Open {
		return nil
	}
	for _, e := range r.state.Executions {
		path := e.Path
		c := r.info.Crashes[path]
		if e.End == nil && e.Last != 0 && e.Retry == nil && r.rt.limits.poison(c) && r.state.Decisions[quarantineName(path)] == nil {
			return &Quarantine{r.id, r.begin.Sentinel, path, c.Count}
		}
	}
	return nil
}

// wasExecuting reports whether the attempt did something itself when its records
// stop: its guest ran, or an effect was under way about which no person was asked.
func wasExecuting(a *history.Attempt, path string, asked map[string]bool) bool {
	for _, c := range a.Calls {
		if c.End == nil && c.Start != nil {
			return c.Start.Effect && !asked[history.CallName(path, c.Seq)]
		}
	}
	return true
}

// quarantineName names the question about a quarantined step. Calls are numbered
// from 1.
func quarantineName(path string) string { return history.CallName(path, 0) }

// crashes returns what is counted against a step.
func (r *run) crashes(path string) StepCrashes {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.info.Crashes[path]
}

// checkQuarantine holds a step that is quarantined until a person decides about it, and
// makes one that is suspected wait for its turns. refused is the error that the
// step ends with, if that is the decision.
func (x *stepExecution) checkQuarantine(ctx context.Context) (refused *abi.Error, err error) {
	if x.past == nil || x.past.Last == 0 || x.past.Retry != nil {
		return nil, nil
	}
	limits, c := &x.run.rt.limits, x.run.crashes(x.path)
	if !limits.poison(c) {
		if limits.suspect(c) {
			x.suspect = c.Count
		}
		return nil, nil
	}
	sig, _, err := x.run.awaitDecision(ctx, quarantineName(x.path), PendingDecision{Kind: DecisionQuarantine, Prompt: fmt.Sprintf(
		"step %s was executing at %d crashes of the host and is quarantined: may it execute again?", x.address, c.Count)})
	if err != nil {
		return nil, err
	}
	if sig.Verdict != "retry" {
		return &abi.Error{Code: abi.Interrupted, Permanent: true, Message: fmt.Sprintf(
			"step %s was executing at %d crashes of the host, and %s decided that it fails", x.address, c.Count, sig.By)}, nil
	}
	x.run.liftQuarantine(x.path)
	return nil, nil
}

// liftQuarantine forgets what was counted against a step and writes that the
// decision was acted on: it does not answer for crashes to come.
func (r *run) liftQuarantine(path string) {
	r.mu.Lock()
	left := maps.Clone(r.info.Crashes) // a summary under way may hold the map
	delete(left, path)
	r.info.Crashes = left
	r.mu.Unlock()
	r.write(writeOptions{info: true}, &journal.Record{Kind: journal.Signal, Signal: &journal.SignalBody{Type: history.SignalUsed, Call: quarantineName(path)}})
}

// quarantines returns those of the pending decisions of a run that are about
// quarantined steps.
func quarantines(pending []PendingDecision) []PendingDecision {
	return slices.DeleteFunc(slices.Clone(pending), func(q PendingDecision) bool { return q.Kind != DecisionQuarantine })
}

// lift makes decisions about quarantined steps of a run: they may execute again.
func (rt *Runtime) lift(ctx context.Context, id sentinels.RunID, quarantined []PendingDecision, opt ResumeOptions) error {
	for _, q := range quarantined {
		err := rt.Decide(ctx, id, Decision{Call: q.Call, Verdict: "retry", By: opt.By, Comment: opt.Comment})
		if err != nil {
			return fmt.Errorf("lift quarantine of run %s: %w", id, err)
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
