package execution

import (
	"context"
	"errors"
	"fmt"
	"maps"
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

// A pendingDecision is one that a live run waits for, or that it waited for in the
// last process and has not asked for again. A person can make both.
type pendingDecision struct {
	run.PendingDecision
	asked  bool                     // the run waits for it
	made   bool                     // no other answer counts
	answer chan *journal.SignalBody // capacity 1
}

// restorePending makes what the run waited for in the last process decidable
// before it asks again. It is not visible yet.
func (r *liveRun) restorePending() {
	for _, q := range r.info.Decisions {
		if r.folded.Decisions[q.Call] == nil {
			r.pending[q.Call] = &pendingDecision{PendingDecision: q, answer: make(chan *journal.SignalBody, 1)}
		}
	}
}

// dropUnasked forgets what the run did not ask again in the iteration that was
// recovered. The caller holds r.mu.
func (r *liveRun) dropUnasked() {
	maps.DeleteFunc(r.pending, func(_ string, q *pendingDecision) bool { return !q.asked })
}

// decisions returns what can be decided about the run: what it waits for, and what
// it waited for in the last process.
func (r *liveRun) decisions() []run.PendingDecision {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.undecided(false)
}

// undecided returns what can be decided about the run, in order; asked is for only
// what it waits for. The caller holds r.mu.
func (r *liveRun) undecided(asked bool) []run.PendingDecision {
	pending := make([]run.PendingDecision, 0, len(r.pending))
	for _, q := range r.pending {
		if !q.made && (q.asked || !asked) {
			pending = append(pending, q.PendingDecision)
		}
	}
	sort.Slice(pending, func(i, j int) bool { return pending[i].Call < pending[j].Call })
	return pending
}

func (r *liveRun) AwaitDecision(ctx context.Context, name string, what run.PendingDecision) (*journal.SignalBody, time.Time, error) {
	r.mu.Lock()
	if sig := r.folded.Decisions[name]; sig != nil {
		delete(r.pending, name)
		r.mu.Unlock()
		return sig, time.Now().UTC(), nil
	}
	what.Prompt = r.ex.svc.Redact.Text(what.Prompt)
	what.Call, what.Choices, what.Since = name, what.Kind.Choices(), time.Now().UTC()
	q := r.pending[name] // of the last process: its decision may be under way
	if q == nil {
		q = &pendingDecision{answer: make(chan *journal.SignalBody, 1)}
		r.pending[name] = q
	}
	q.PendingDecision, q.asked = what, true
	r.mu.Unlock()
	r.decisionsChanged(&what)
	if what.Kind != run.DecisionApproval {
		// The decision may take days. A step that timed out meanwhile
		// would be tried again, and its call made again undecided.
		r.clock.Hold()
		defer r.clock.Release()
	}
	sig, err := r.answer(ctx, q)
	if !step.Over(ctx) {
		r.decisionsChanged(nil)
	}
	return sig, time.Now().UTC(), err
}

// answer waits for the decision about q and takes q off the run's list.
func (r *liveRun) answer(ctx context.Context, q *pendingDecision) (*journal.SignalBody, error) {
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.pending, q.Call)
	}()
	select {
	case sig := <-q.answer:
		return sig, nil
	case <-ctx.Done():
	}
	r.mu.Lock()
	made := q.made
	q.made = true // too late for others
	r.mu.Unlock()
	if made && !step.Over(ctx) { // a decision is being committed, and its caller has a success
		select {
		case sig := <-q.answer:
			return sig, nil
		case <-r.ctx.Done():
		}
	}
	return nil, context.Cause(ctx)
}

// decisionsChanged updates the status of a run when there is more or less to
// decide. A paused run stays so.
func (r *liveRun) decisionsChanged(fresh *run.PendingDecision) {
	r.snap.Lock()
	defer r.snap.Unlock()
	r.updateStatus(fresh, r.status() == sentinels.StatusPaused)
}

// updateStatus makes the run waiting while there is something to decide, or
// quarantined if that is about a quarantine, unless it is paused. The caller holds
// r.snap.
func (r *liveRun) updateStatus(fresh *run.PendingDecision, paused bool) {
	r.mu.Lock()
	pending := r.undecided(true)
	body := journal.StatusBody{Status: sentinels.StatusRunning}
	switch {
	case paused:
		body.Status, body.Reason, body.Limit, body.With = r.info.Status, r.info.Reason, r.info.Limit, r.info.PausedWith
	case slices.ContainsFunc(pending, func(q run.PendingDecision) bool { return q.Kind == run.DecisionQuarantine }):
		body.Status = sentinels.StatusQuarantined
	case len(pending) > 0:
		body.Status = sentinels.StatusWaiting
	}
	r.mu.Unlock()
	r.setStatus(body, pending, fresh)
}

// Decide is Runtime.Decide of package runtime.
func (ex *Executor) Decide(ctx context.Context, id sentinels.RunID, d run.Decision) error {
	info, err := ex.Status(id)
	if err != nil {
		return err
	}
	r, pending := ex.live(id), info.Decisions
	if r != nil {
		pending = r.decisions()
	}
	if d.Call == "" && len(pending) == 1 {
		d.Call = pending[0].Call
	}
	var found *run.PendingDecision
	names := make([]string, 0, len(pending))
	for i := range pending {
		names = append(names, pending[i].Call)
		if pending[i].Call == d.Call {
			found = &pending[i]
		}
	}
	switch {
	case len(names) == 0:
		return errf(abi.Conflict, "run %s has nothing to decide", id)
	case found == nil:
		return &abi.Error{Code: abi.NotFound, Message: fmt.Sprintf("run %s has no pending decision %q", id, d.Call), Hint: "pending are " + strings.Join(names, ", ")}
	case !slices.Contains(found.Choices, d.Verdict):
		return &abi.Error{Code: abi.BadFields, Message: fmt.Sprintf("%q is no answer to %s", d.Verdict, found.Call), Hint: "the choices are " + strings.Join(found.Choices, ", ")}
	case len(found.Approvers) > 0 && !slices.Contains(found.Approvers, d.By):
		return errf(abi.Denied, "%q may not decide %s: the approvers are %s", d.By, found.Call, strings.Join(found.Approvers, ", "))
	}
	if found.Kind == run.DecisionQuarantine && d.Verdict == "retry" && strings.TrimSpace(d.Comment) == "" {
		return needsComment(id)
	}
	if err := ex.opt.Health.Writable(); err != nil {
		return err
	}
	sig := &journal.SignalBody{Type: "decision", Call: d.Call, Verdict: d.Verdict, By: d.By, Comment: d.Comment, Result: d.Result}
	if r == nil {
		err := ex.signalStored(ctx, info, sig)
		if errors.Is(err, errTakenOver) {
			return ex.Decide(ctx, id, d)
		}
		return err
	}
	r.mu.Lock()
	q := r.pending[d.Call]
	first := q != nil && !q.made
	if first {
		q.made = true
	}
	r.mu.Unlock()
	if !first {
		return errf(abi.Conflict, "%s was decided already", d.Call)
	}
	t := r.Write(step.Commit{}, &journal.Record{Kind: journal.Signal, Signal: sig})
	// Not behind Wait: the decision counts even if its caller has gone.
	t.OnDone(func(err error) {
		if err == nil {
			q.answer <- sig
		}
	})
	return ex.opt.Health.Await(ctx, t)
}

// OnInterrupt is what the step, the definition, the run or the host say
// about calls in doubt; empty when none of them says anything.
func (r *liveRun) OnInterrupt(step sentinels.Interrupt) sentinels.Interrupt {
	for _, next := range []sentinels.Interrupt{r.Definition().Safety.OnInterrupt, r.onInterrupt, r.begin.Interrupt, r.ex.opt.OnInterrupt} {
		if step == "" {
			step = next
		}
	}
	return step
}
