package execution

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/execution/step"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A pendingDecision is a decision that a live run waits for.
type pendingDecision struct {
	run.PendingDecision
	answer chan *journal.SignalBody // capacity 1, so that the sender never blocks
}

// AwaitDecision implements [step.Decisions].
func (r *liveRun) AwaitDecision(ctx context.Context, name string, what run.PendingDecision) (*journal.SignalBody, time.Time, error) {
	r.mu.Lock()
	if sig := r.folded.Decisions[name]; sig != nil {
		r.mu.Unlock()
		return sig, time.Now().UTC(), nil
	}
	what.Prompt = r.ex.svc.Redact.Text(what.Prompt)
	what.Call, what.Choices, what.Since = name, what.Kind.Choices(), time.Now().UTC()
	q := &pendingDecision{PendingDecision: what, answer: make(chan *journal.SignalBody, 1)}
	r.pending[name] = q
	r.mu.Unlock()
	r.decisionsChanged(&what)
	if what.Kind != run.DecisionApproval {
		// The decision may take days. If the step timed out meanwhile, its retry would
		// make the call again without a decision.
		r.clock.Hold()
		defer r.clock.Release()
	}
	sig, err := r.answer(ctx, q)
	if !step.RunEnding(ctx) {
		r.decisionsChanged(nil)
	}
	return sig, time.Now().UTC(), err
}

// answer waits for the answer to q and removes q from the pending decisions.
func (r *liveRun) answer(ctx context.Context, q *pendingDecision) (*journal.SignalBody, error) {
	select {
	case sig := <-q.answer:
		return sig, nil
	case <-ctx.Done():
	}
	r.mu.Lock()
	open := r.pending[q.Call] == q
	if open {
		delete(r.pending, q.Call)
	}
	r.mu.Unlock()
	if !open && !step.RunEnding(ctx) { // an answer is being committed and its caller will see a success, so it must count
		select {
		case sig := <-q.answer:
			return sig, nil
		case <-r.ctx.Done():
		}
	}
	return nil, context.Cause(ctx)
}

// decisionsChanged derives the run's status from its pending decisions: quarantined,
// waiting or running. A paused run stays paused. added is a new pending decision to
// report; nil if one was removed.
func (r *liveRun) decisionsChanged(added *run.PendingDecision) {
	r.snap.Lock()
	defer r.snap.Unlock()
	r.mu.Lock()
	pending := make([]run.PendingDecision, 0, len(r.pending))
	for _, q := range r.pending {
		pending = append(pending, q.PendingDecision)
	}
	sort.Slice(pending, func(i, j int) bool { return pending[i].Call < pending[j].Call })
	r.info.Decisions = pending
	body := journal.StatusBody{Status: sentinels.StatusRunning}
	switch {
	case r.info.Status == sentinels.StatusPaused:
		body.Status, body.Reason, body.Limit, body.With = r.info.Status, r.info.Reason, r.info.Limit, r.info.PausedWith
	case slices.ContainsFunc(pending, func(q run.PendingDecision) bool { return q.Kind == run.DecisionQuarantine }):
		body.Status = sentinels.StatusQuarantined
	case len(pending) > 0:
		body.Status = sentinels.StatusWaiting
	}
	r.mu.Unlock()
	r.setStatus(body, added)
}

// Decide is Runtime.Decide of package runtime.
func (ex *Executor) Decide(ctx context.Context, id sentinels.RunID, d run.Decision) error {
	info, err := ex.Status(id)
	if err != nil {
		return err
	}
	if d.Call == "" && len(info.Decisions) == 1 {
		d.Call = info.Decisions[0].Call
	}
	var found *run.PendingDecision
	names := make([]string, 0, len(info.Decisions))
	for i := range info.Decisions {
		names = append(names, info.Decisions[i].Call)
		if info.Decisions[i].Call == d.Call {
			found = &info.Decisions[i]
		}
	}
	switch {
	case len(names) == 0:
		return errf(abi.Conflict, "run %s has no pending decision", id)
	case found == nil:
		return &abi.Error{Code: abi.NotFound, Message: fmt.Sprintf("run %s has no pending decision %q", id, d.Call), Hint: "the pending decisions are " + strings.Join(names, ", ")}
	case !slices.Contains(found.Choices, d.Verdict):
		return &abi.Error{Code: abi.BadFields, Message: fmt.Sprintf("invalid verdict %q for %s", d.Verdict, found.Call), Hint: "want one of: " + strings.Join(found.Choices, ", ")}
	case len(found.Approvers) > 0 && !slices.Contains(found.Approvers, d.By):
		return errf(abi.Denied, "%q is not an approver of %s: want one of %s", d.By, found.Call, strings.Join(found.Approvers, ", "))
	}
	if found.Kind == run.DecisionQuarantine && d.Verdict == "retry" && strings.TrimSpace(d.Comment) == "" {
		return needsComment(id)
	}
	if err := ex.opt.Health.Writable(); err != nil {
		return err
	}
	sig := &journal.SignalBody{Type: "decision", Call: d.Call, Verdict: d.Verdict, By: d.By, Comment: d.Comment, Result: d.Result}
	r := ex.live(id)
	if r == nil {
		return ex.signalStored(ctx, info, sig)
	}
	r.mu.Lock()
	q := r.pending[d.Call]
	delete(r.pending, d.Call) // the first answer counts
	r.mu.Unlock()
	if q == nil {
		return errf(abi.Conflict, "%s was decided already", d.Call)
	}
	t := r.Write(step.Commit{}, &journal.Record{Kind: journal.Signal, Signal: sig})
	// OnDone rather than after Await: the decision counts even if its caller has given
	// up.
	t.OnDone(func(err error) {
		if err == nil {
			q.answer <- sig
		}
	})
	return ex.opt.Health.Await(ctx, t)
}

// OnInterrupt implements [step.Decisions]. The first setting that is not empty counts:
// of the step, the definition, the resume, the start of the run, the host.
func (r *liveRun) OnInterrupt(step sentinels.Interrupt) sentinels.Interrupt {
	for _, next := range []sentinels.Interrupt{r.Definition().Safety.OnInterrupt, r.onInterrupt, r.begin.Interrupt, r.ex.opt.OnInterrupt} {
		if step == "" {
			step = next
		}
	}
	return step
}
