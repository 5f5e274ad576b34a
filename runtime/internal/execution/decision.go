package execution

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/runtime/internal/execution/step"
	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A pendingDecision is a decision that a live run waits for, or that it waited for in the
// last process and has not asked for again. A user can make both.
type pendingDecision struct {
	run.PendingDecision
	asked  bool                     // the run waits for it now
	made   bool                     // an answer was accepted, or the wait has ended
	answer chan *journal.SignalBody // capacity 1, so that the sender never blocks
}

// restorePending restores the pending decisions of the last process, so that they can
// be made before the run asks again. The caller has not published the run yet.
func (r *liveRun) restorePending() {
	for _, q := range r.info.Decisions {
		if r.folded.Decisions[q.Call] == nil {
			r.pending[q.Call] = &pendingDecision{PendingDecision: q, answer: make(chan *journal.SignalBody, 1)}
		}
	}
}

// dropUnasked removes the pending decisions of the last process that the recovered
// iteration did not ask for again. The caller holds r.mu.
func (r *liveRun) dropUnasked() {
	maps.DeleteFunc(r.pending, func(_ string, q *pendingDecision) bool { return !q.asked })
}

// decisions returns the decisions that can be made about the run, with those of the
// last process.
func (r *liveRun) decisions() []run.PendingDecision {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.undecided(false)
}

// undecided returns the decisions that can be made about the run, sorted by name. With
// asked it omits those that only the last process asked for. The caller holds r.mu.
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

// AwaitDecision implements [step.Decisions].
func (r *liveRun) AwaitDecision(ctx context.Context, name string, attempt int, what run.PendingDecision) (*journal.SignalBody, error) {
	r.mu.Lock()
	if sig := r.folded.Decisions[name]; sig != nil {
		delete(r.pending, name)
		r.mu.Unlock()
		return sig, nil
	}
	again := r.pending[name] != nil
	r.mu.Unlock()
	var others []string // what is behind the run besides its own start
	what.OriginBy = r.originBy()
	if what.Kind == run.DecisionApproval {
		var by string
		others, by = r.ex.elsewhere(r.summary())
		what.OriginBy = cmp.Or(what.OriginBy, by)
		if err := r.ex.checkInputs(r.id); err != nil {
			return nil, err
		}
		leave, err := r.admitQuestion(again)
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	r.mu.Lock()
	what.Prompt, what.CallKind = r.ex.svc.Redact.Text(what.Prompt), r.ex.svc.Redact.Text(what.CallKind)
	what.Question = questionOf(r.id, r.folded.Iteration, attempt, name, what)
	what.Call, what.Choices, what.Since = name, what.Kind.Choices(), time.Now().UTC()
	what.Origin = r.ex.svc.Redact.Text(originOf(r.begin, r.folded.Event, r.maker, r.folded.Given, others))
	q := r.pending[name] // of the last process: its decision may be under way
	if q != nil && q.Question == what.Question {
		what.Since = q.Since
	}
	if q == nil {
		q = &pendingDecision{answer: make(chan *journal.SignalBody, 1)}
		r.pending[name] = q
	}
	q.PendingDecision, q.asked = what, true
	r.mu.Unlock()
	r.asksAbout(what) // before the run is seen to wait
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
	return sig, err
}

// questionOf returns the name of a question. What it is made of stays the same when a process
// asks again after a crash.
func questionOf(id sentinels.RunID, iteration, attempt int, name string, what run.PendingDecision) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d %q %s %q", id, iteration, attempt, name, what.Kind, what.Prompt))
	return hex.EncodeToString(sum[:6])
}

// answer waits for the answer to q and removes q from the pending decisions.
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
	if made && !step.RunEnding(ctx) { // an answer is being committed and its caller will see a success, so it must count
		select {
		case sig := <-q.answer:
			return sig, nil
		case <-r.ctx.Done():
		}
	}
	return nil, context.Cause(ctx)
}

// decisionsChanged derives the run's status from its pending decisions. A paused run
// stays paused. added is a new pending decision to report; nil if one was removed.
func (r *liveRun) decisionsChanged(added *run.PendingDecision) {
	r.snap.Lock()
	defer r.snap.Unlock()
	r.updateStatus(added, r.status() == sentinels.StatusPaused)
}

// updateStatus sets the status to quarantined, waiting, queued or running, by the pending
// decisions, unless the run is paused. The caller holds r.snap.
func (r *liveRun) updateStatus(added *run.PendingDecision, paused bool) {
	r.mu.Lock()
	pending := r.undecided(true)
	body := journal.StatusBody{Status: r.activeStatus()}
	switch {
	case paused:
		body.Status, body.Reason, body.Limit, body.With = r.info.Status, r.info.Reason, r.info.Limit, r.info.PausedWith
	case slices.ContainsFunc(pending, func(q run.PendingDecision) bool { return q.Kind == run.DecisionQuarantine }):
		body.Status = sentinels.StatusQuarantined
	case len(pending) > 0:
		body.Status = sentinels.StatusWaiting
	}
	r.mu.Unlock()
	r.setStatus(body, pending, added)
}

// asks lists what a run asks.
func asks(pending []run.PendingDecision) string {
	lines := make([]string, len(pending))
	for i, q := range pending {
		lines[i] = fmt.Sprintf("%q (question %s)", textcut.Mark(q.Prompt, 200), q.Question)
	}
	return "it asks " + strings.Join(lines, ", ")
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
	var found *run.PendingDecision
	names := make([]string, 0, len(pending))
	for i, q := range pending {
		names = append(names, q.Call)
		if q.Call == d.Call || d.Call == "" && (d.Question != "" && q.Question == d.Question || len(pending) == 1) {
			found = &pending[i]
		}
	}
	if found == nil || d.Question != "" && found.Question != d.Question {
		if err := ex.lapsed(id, d); err != nil {
			return err
		}
	}
	switch {
	case len(names) == 0:
		return failure.New(abi.Conflict, "run %s has no pending decision", id)
	case found != nil && d.Question != "" && found.Question != "" && found.Question != d.Question, found == nil && d.Question != "":
		return &abi.Error{Code: abi.Conflict, Permanent: true, Field: "question", Message: fmt.Sprintf("run %s does not ask question %s any more", id, d.Question), Hint: asks(pending)}
	case found == nil:
		return &abi.Error{Code: abi.NotFound, Message: fmt.Sprintf("run %s has no pending decision %q", id, d.Call), Hint: "the pending decisions are " + strings.Join(names, ", ")}
	case !slices.Contains(found.Choices, d.Verdict):
		return &abi.Error{Code: abi.BadFields, Message: fmt.Sprintf("invalid verdict %q for %s", d.Verdict, found.Call), Hint: "want one of: " + strings.Join(found.Choices, ", ")}
	case len(found.Approvers) > 0 && !slices.Contains(found.Approvers, d.By):
		return failure.New(abi.Denied, "%q is not an approver of %s: want one of %s", d.By, found.Call, strings.Join(found.Approvers, ", "))
	}
	if !found.Deadline.IsZero() && !ex.svc.Calendar.Now().Before(found.Deadline) {
		return tooLate(id, found)
	}
	d.Call = found.Call
	if found.Kind == run.DecisionQuarantine && d.Verdict == "retry" && strings.TrimSpace(d.Comment) == "" {
		return needsComment(id)
	}
	if err := ex.opt.Health.Writable(); err != nil {
		return err
	}
	sig := &journal.SignalBody{Type: "decision", Call: d.Call, Verdict: d.Verdict, By: d.By, At: time.Now().UTC(), Comment: d.Comment, Result: d.Result}
	if found.Kind == run.DecisionApproval {
		sig.Asked = found.Since
	}
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
		return failure.New(abi.Conflict, "%s was decided already", d.Call)
	}
	note := func(info *run.Info) { noteDecision(info, sig) }
	t := r.writeSummary(step.Commit{Summary: true}, note, &journal.Record{Kind: journal.Signal, Signal: sig})
	// OnDone rather than after Await: the decision counts even if its caller has given
	// up.
	t.OnDone(func(err error) {
		if err == nil {
			q.answer <- sig
		}
	})
	return ex.opt.Health.Await(ctx, t)
}

// noteDecision notes in a summary who approved a step, or decided that an interrupted call or a quarantined step fails.
func noteDecision(info *run.Info, sig *journal.SignalBody) {
	switch {
	case sig.Approves():
		info.ApprovedBy = sig.By
	case sig.Verdict == "fail":
		info.EndedBy = sig.By
	}
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
