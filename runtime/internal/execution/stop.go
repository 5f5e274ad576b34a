package execution

import (
	"context"
	"errors"
	"sort"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/execution/step"
	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// StopRun is Runtime.StopWith of package runtime.
func (ex *Executor) StopRun(ctx context.Context, id sentinels.RunID, opt run.StopOptions) error {
	info, err := ex.Status(id)
	if err != nil {
		return err
	}
	if info.Status.Final() {
		return failure.New(abi.Conflict, "run %s is over: %s", id, info.Status)
	}
	if r := ex.live(id); r != nil {
		r.stoppedBy(opt)
		return ex.endRun(ctx, r, step.ErrStopped)
	}
	return ex.stopStored(ctx, info, opt)
}

// stoppedBy notes who stops the run. It is durable before onFailure and finally, which a crash may interrupt.
func (r *liveRun) stoppedBy(opt run.StopOptions) {
	if opt.By == "" {
		return
	}
	r.snap.Lock()
	defer r.snap.Unlock()
	r.mu.Lock()
	kept := r.info.Status.Final() || r.info.EndedBy != "" && !opt.Over
	r.mu.Unlock()
	if !kept {
		r.writeSummary(step.Commit{Summary: true}, func(info *run.Info) { info.EndedBy = opt.By })
	}
}

// cutOff notes what the end of the run cuts off, also of questions that it has not asked again since a crash.
func (r *liveRun) cutOff() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.info.CutOff(append(r.undecided(false), r.info.Decisions...))
}

// endRun ends an active run for a cause, stops its descendants, and returns when its end is
// durable.
func (ex *Executor) endRun(ctx context.Context, r *liveRun, cause error) error {
	again := r.end(cause) // before its descendants: it must not see a child end and continue
	ex.stopTree(r.id, cause)
	if again {
		for _, below := range ex.liveDescendants(r.id) {
			below.cancelLast(stopCause(cause))
		}
	}
	return ex.awaitEnd(ctx, r)
}

// awaitEnd returns when the end of an active run is durable.
func (ex *Executor) awaitEnd(ctx context.Context, r *liveRun) error {
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-ex.opt.Health.Stalled():
		return ex.opt.Health.HeldError("run " + string(r.id) + " is ended; its end")
	}
}

// stopStored stops a run that no process executes, and its descendants. This process takes them over for their
// onFailure and finally, with their contexts ended, so that nothing else of them is executed.
func (ex *Executor) stopStored(ctx context.Context, info run.Info, opt run.StopOptions) error {
	t := &takeover{ex: ex}
	err := t.restore(ctx, info, ex.live(info.Parent), resumeOptions{ResumeOptions: run.ResumeOptions{Tree: true}})
	switch {
	case err != nil && ex.live(info.ID) != nil: // another caller has taken it over
		return ex.StopRun(ctx, info.ID, opt)
	case err != nil && (ctx.Err() != nil || errors.Is(err, ErrClosed)):
		return err
	case err != nil:
		info.EndedBy = opt.By
		return ex.endStored(ctx, info, err)
	}
	r := t.restored[0].run
	for _, x := range t.restored { // continuing them takes away their pauses
		x.run.cutOff()
	}
	r.stoppedBy(opt)
	ex.stopTree(info.ID, step.ErrStopped)
	t.begin()
	if err := ex.awaitEnd(ctx, r); err != nil {
		return err
	}
	return ex.stopBelow(ctx, info.ID) // those that could not be taken over
}

// stopBelow stops the unfinished descendants of a run.
func (ex *Executor) stopBelow(ctx context.Context, id sentinels.RunID) error {
	unfinished, _, err := ex.descendants(id)
	if err != nil {
		return err
	}
	for _, c := range unfinished {
		if err := ex.StopRun(ctx, c.ID, run.StopOptions{}); err != nil && abi.CodeOf(err) != abi.Conflict { // conflict: it has ended meanwhile
			return err
		}
	}
	return nil
}

// endStored ends a run that cannot be taken over, for a reason such as a workspace that is gone, and its
// descendants. Its onFailure and finally are not executed, which the summary says.
func (ex *Executor) endStored(ctx context.Context, info run.Info, cause error) error {
	if err := ex.stopBelow(ctx, info.ID); err != nil {
		return err
	}
	if ex.svc.Executions != nil {
		if err := ex.svc.Executions.EndRun(ctx, info.ID); err != nil {
			return err
		}
	}
	info.CutOff(info.Decisions)
	info.Status, info.EndedAt, info.Decisions = sentinels.StatusStopped, time.Now().UTC(), nil
	info.Error = failure.New(abi.Cancelled, "run was stopped")
	skipped := *failure.From(cause, abi.Internal)
	skipped.Message = "onFailure and finally, if the definition has them, were not executed: " + skipped.Message
	info.Finally = ex.svc.Redact.Error(&skipped)
	ex.svc.Log.Warn("a stopped run could not be taken over for its onFailure and finally", "run", info.ID, "sentinel", info.Sentinel, "error", cause)
	end := &journal.RunEndBody{
		Status: info.Status, Error: info.Error, Finally: info.Finally,
		By: info.EndedBy, PausedBy: info.EndedPause, Asked: info.EndedQuestion,
	}
	err := ex.appendStored(ctx, &info, &journal.Record{Kind: journal.RunEnd, RunEnd: end})
	if err == nil {
		ex.opt.Triggers.RunEnded(OverlapID(info), info.ID)
	}
	return err
}

// stopTree cancels an active run and its active descendants. Parents are cancelled
// first, because a parent must not see its child end and continue.
func (ex *Executor) stopTree(id sentinels.RunID, cause error) {
	if r := ex.live(id); r != nil {
		r.cancel(stopCause(cause))
	}
	for _, r := range ex.liveDescendants(id) {
		r.cancel(stopCause(cause))
	}
}

// stopCause returns the cause with which descendants of a cancelled run are cancelled.
func stopCause(cause error) error {
	if errors.Is(cause, step.ErrShutdown) {
		return step.ErrShutdown
	}
	return step.ErrStopped
}

// stopDescendants stops the run's active descendants and waits until they have ended. A
// descendant may start further runs before it ends, so this repeats until none is left.
func (r *liveRun) stopDescendants() {
	for {
		below := r.ex.liveDescendants(r.id)
		if len(below) == 0 {
			return
		}
		for _, c := range below {
			c.cancel(step.ErrStopped)
		}
		for _, c := range below {
			<-c.done
		}
	}
}

// liveDescendants returns the active descendants of a run, parents first.
func (ex *Executor) liveDescendants(id sentinels.RunID) []*liveRun {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	var below []*liveRun
	for _, c := range ex.runs {
		for up := c.parent; up != nil; up = up.parent {
			if up.id == id {
				below = append(below, c)
				break
			}
		}
	}
	sort.Slice(below, func(i, j int) bool { return len(below[i].begin.Ancestry) < len(below[j].begin.Ancestry) })
	return below
}
