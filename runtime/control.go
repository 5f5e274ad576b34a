package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/maintenance/health"
	"github.com/sentinel-runtime/sentinel/runtime/internal/runindex"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// live returns the run if this process executes it.
func (rt *Runtime) live(id sentinels.RunID) *run {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.runs[id]
}

// Wait returns a run's result once its end is durable. A run that ended before
// returns at once. For a run that no process executes the error is conflict.
func (rt *Runtime) Wait(ctx context.Context, id sentinels.RunID) (Result, error) {
	res, err := rt.wait(ctx, id)
	return res.Result, err
}

// wait is [Runtime.Wait] for those that treat a run that this process released
// differently.
func (rt *Runtime) wait(ctx context.Context, id sentinels.RunID) (waitedResult, error) {
	if r := rt.live(id); r != nil {
		select {
		case <-r.done:
			r.mu.Lock()
			defer r.mu.Unlock()
			return *r.result, nil
		case <-ctx.Done():
			return waitedResult{}, context.Cause(ctx)
		}
	}
	info, err := rt.Status(id)
	if rt.ctx.Err() != nil && (err != nil || !info.Status.Final()) {
		// Close has released the run, perhaps before its first record was committed,
		// and the caller does not know yet. The end of the process is not the end of
		// the run.
		return waitedResult{}, errShutdown
	}
	if err != nil {
		return waitedResult{}, err
	}
	if !info.Status.Final() {
		return waitedResult{}, errf(abi.Conflict, "run %s is %s and no process executes it", id, info.Status)
	}
	res, err := rt.storedResult(info)
	return waitedResult{Result: res}, err
}

func (rt *Runtime) storedResult(info RunInfo) (Result, error) {
	raw, ok, err := rt.db.Get(bucketResults, []byte(info.ID))
	if err != nil {
		return Result{}, err
	}
	if !ok { // its variables went with retention
		return Result{Run: info.ID, Sentinel: info.Sentinel, Status: info.Status, Iterations: info.Iteration,
			Usage: info.Usage, Limit: info.Limit, Step: info.Step, Error: info.Error, Millis: info.Elapsed}, nil
	}
	var v journal.Value
	if err := json.Unmarshal(raw, &v); err != nil {
		return Result{}, err
	}
	body, err := rt.load(v)
	if err != nil {
		return Result{}, err
	}
	var res Result
	err = json.Unmarshal(body, &res)
	res.Duration = time.Duration(res.Millis) * time.Millisecond
	return res, err
}

// resultPut keeps a result for those who ask later.
func (rt *Runtime) resultPut(res Result) ([]store.Put, error) {
	body, err := json.Marshal(res)
	if err != nil {
		return nil, err
	}
	v, err := rt.value(body)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(v)
	return []store.Put{{Bucket: bucketResults, Key: []byte(res.Run), Value: raw}}, err
}

// Status returns the summary of a run, or not_found.
func (rt *Runtime) Status(id sentinels.RunID) (RunInfo, error) {
	if r := rt.live(id); r != nil {
		return r.summary(), nil
	}
	raw, ok, err := rt.db.Get(bucketRuns, []byte(id))
	if err != nil {
		return RunInfo{}, err
	}
	if !ok {
		return RunInfo{}, errf(abi.NotFound, "no run has the id %q", id)
	}
	var info RunInfo
	if err := json.Unmarshal(raw, &info); err != nil {
		return info, fmt.Errorf("read run %s: %w", id, err)
	}
	return info, nil
}

func (r *run) summary() RunInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	info := r.info
	info.Live, info.Iteration, info.Usage, info.Elapsed = true, r.state.Iteration, r.state.Usage, r.clock.Elapsed().Milliseconds()
	info.Revision, info.Hash, info.Edit = r.revision, r.hash, r.edits()
	info.Retries = nil
	for _, w := range r.retries {
		info.Retries = append(info.Retries, *w)
	}
	return info
}

// Stop ends a run and all its descendants. It returns when their steps, host
// calls and processes have ended and that is durable. Stopping a run that is
// over is the error conflict.
func (rt *Runtime) Stop(ctx context.Context, id sentinels.RunID) error {
	info, err := rt.Status(id)
	if err != nil {
		return err
	}
	if info.Status.Final() {
		return errf(abi.Conflict, "run %s is over: %s", id, info.Status)
	}
	if r := rt.live(id); r != nil {
		rt.stopTree(id, errStopped)
		r.cancel(errStopped)
		select {
		case <-r.done:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-rt.health.Stalled():
			return health.HeldError("run " + string(id) + " is stopped; its end")
		}
	}
	return rt.stopStored(ctx, info)
}

// stopStored ends a run that no process executes, and all runs below it.
func (rt *Runtime) stopStored(ctx context.Context, info RunInfo) error {
	living, _, err := rt.descendants(info.ID)
	if err != nil {
		return err
	}
	for _, c := range living {
		if err := rt.Stop(ctx, c.ID); err != nil {
			return err
		}
	}
	if rt.opt.Executions != nil {
		if err := rt.opt.Executions.EndRun(ctx, info.ID); err != nil {
			return err
		}
	}
	info.Status, info.EndedAt, info.Decisions = sentinels.StatusStopped, time.Now().UTC(), nil
	info.Error = errf(abi.Cancelled, "run was stopped")
	err = rt.appendStored(ctx, &info, &journal.Record{Kind: journal.RunEnd, RunEnd: &journal.RunEndBody{Status: info.Status, Error: info.Error}})
	if err == nil {
		rt.dispatch.RunEnded(info.Sentinel, info.ID)
	}
	return err
}

// signalStored writes a signal to the journal of a run that no process
// executes. A resume of the run finds it there.
func (rt *Runtime) signalStored(ctx context.Context, info RunInfo, sig *journal.SignalBody) error {
	var left []PendingDecision
	for _, q := range info.Decisions {
		if q.Call != sig.Call {
			left = append(left, q)
		}
	}
	info.Decisions = left
	return rt.appendStored(ctx, &info, &journal.Record{Kind: journal.Signal, Signal: sig})
}

func (rt *Runtime) appendStored(ctx context.Context, info *RunInfo, rec *journal.Record) error {
	seq, _, err := rt.db.LastSeq(string(info.ID))
	if err != nil {
		return err
	}
	return rt.appendBehind(ctx, seq, info, rec)
}

// errTakenOver says that a run which no process executed is owned by
// this one by now.
var errTakenOver = errf(abi.Conflict, "the run was taken over meanwhile")

// appendBehind is appendStored for the case that seq is still the newest record;
// else it is [store.ErrSequence]. A record that came into the journal while the
// run is taken over would cut it off from its own.
func (rt *Runtime) appendBehind(ctx context.Context, seq uint64, info *RunInfo, rec *journal.Record) error {
	rt.handover.Lock()
	defer rt.handover.Unlock()
	if rt.live(info.ID) != nil {
		return errTakenOver
	}
	now := time.Now().UTC()
	info.UpdatedAt, rec.Time = now, now.UnixMicro()
	rec.Elapsed = info.Elapsed * 1000
	b, err := journal.Encode(rec)
	if err != nil {
		return err
	}
	value, err := json.Marshal(info)
	if err != nil {
		return err
	}
	puts := []store.Put{{Bucket: bucketRuns, Key: []byte(info.ID), Value: value}}
	if info.Status.Final() {
		puts = append(puts, runindex.EndPut(info.ID))
	}
	ticket := rt.db.Enqueue(store.Batch{
		Appends: []store.Append{{Run: string(info.ID), Seq: seq + 1, Record: b}},
		Puts:    puts,
	})
	over := *info
	if !over.Status.Final() {
		return rt.await(ctx, ticket)
	}
	ticket.OnDone(func(err error) { // even if the caller has gone
		if err == nil {
			rt.index.Ended(over)
		}
	})
	if err := rt.await(ctx, ticket); err != nil {
		return err
	}
	rt.index.Ended(over) // receipts may come after us
	return nil
}

// stopTree cancels a live run and every live descendant with cause. Parents come
// first: a parent must not see its child end and continue.
func (rt *Runtime) stopTree(id sentinels.RunID, cause error) {
	if r := rt.live(id); r != nil {
		r.cancel(stopCause(cause))
	}
	for _, r := range rt.below(id) {
		r.cancel(stopCause(cause))
	}
}

func stopCause(cause error) error {
	if errors.Is(cause, errShutdown) {
		return errShutdown
	}
	return errStopped
}

// stopDescendants ends what the run started and waits for it. What one of them
// started in the meantime is found when that one is gone.
func (r *run) stopDescendants() {
	for {
		below := r.rt.below(r.id)
		if len(below) == 0 {
			return
		}
		for _, c := range below {
			c.cancel(errStopped)
		}
		for _, c := range below {
			<-c.done
		}
	}
}

// below returns the runs of this process under a run, parents first.
func (rt *Runtime) below(id sentinels.RunID) []*run {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	var below []*run
	for _, c := range rt.runs {
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

// setStatus records a status that is not final and reports it. The caller holds
// r.snap, so that statuses are written in the order in which they came about.
func (r *run) setStatus(body journal.StatusBody, fresh *PendingDecision) ticket {
	r.mu.Lock()
	r.info.Status, r.info.Reason, r.info.Limit, r.info.PausedWith = body.Status, body.Reason, body.Limit, body.With
	r.mu.Unlock()
	t := r.write(writeOptions{info: true, lazy: body.Resumed}, &journal.Record{Kind: journal.Status, Status: &body})
	t.OnDone(func(error) {
		r.report(Progress{Event: OnStatus, Status: body.Status, Limit: body.Limit, Message: body.Reason, Decision: fresh})
	})
	return t
}

// LimitExtension is what a resume adds to a run's limits.
type LimitExtension = journal.LimitExtension

// ResumeOptions say how a run continues.
type ResumeOptions struct {
	Extension   LimitExtension
	OnInterrupt sentinels.Interrupt // for calls in doubt where the definition says nothing
	By          string              // who resumes it, for its history
	// Comment says why. With one the run's quarantined steps may execute again.
	// Default: none, and they stay quarantined.
	Comment string
	// Tree resumes also the runs below that were paused with their tree. One
	// that was paused for itself stays so. Default: the run alone.
	Tree bool

	all bool                                       // of every run: none begins again that was paused
	cut map[sentinels.RunID][]InterruptedExecution // nil: each run is asked for
}

// Resume lets a paused run continue, or takes over a run that no process executes,
// with every descendant that is not over. A run that was paused at a limit needs
// a limit extension, a quarantined one a comment: it lifts the quarantine, and
// the journal has who did that and why.
func (rt *Runtime) Resume(ctx context.Context, id sentinels.RunID, opt ResumeOptions) error {
	if r := rt.live(id); r != nil {
		if info := r.summary(); info.Status == sentinels.StatusQuarantined {
			if strings.TrimSpace(opt.Comment) == "" {
				return needsComment(id)
			}
			return rt.lift(ctx, info, opt)
		}
		if err := r.resume(ctx, opt); err != nil {
			return err
		}
		if strings.TrimSpace(opt.Comment) != "" {
			if err := rt.lift(ctx, r.summary(), opt); err != nil {
				return err
			}
		}
		if !opt.Tree {
			return nil
		}
		return rt.resumeBelow(ctx, id, opt)
	}
	info, err := rt.Status(id)
	if err != nil {
		return err
	}
	if info.Status.Final() {
		return &abi.Error{Code: abi.Conflict, Message: fmt.Sprintf("run %s is over: %s", id, info.Status), Hint: "start the sentinel again"}
	}
	if err := needsExtension(id, info.Limit, opt.Extension); err != nil {
		return err
	}
	if info.Parent != "" {
		// By itself it would not share its tree's budget and limits.
		up, err := rt.Status(info.Parent)
		if err != nil && abi.CodeOf(err) != abi.NotFound {
			return err
		}
		if err == nil && !up.Status.Final() && !up.Live {
			return &abi.Error{Code: abi.Conflict, Message: fmt.Sprintf("run %s belongs to run %s, which no process executes", id, info.Parent),
				Hint: "resume run " + string(info.Parent)}
		}
	}
	if strings.TrimSpace(opt.Comment) != "" && len(quarantines(info)) > 0 {
		if err := rt.lift(ctx, info, opt); err != nil {
			return err
		}
		if info, err = rt.Status(id); err != nil {
			return err
		}
	}
	return rt.takeOver(ctx, info, rt.live(info.Parent), opt)
}

func needsExtension(id sentinels.RunID, limit string, more LimitExtension) error {
	var missing string
	switch {
	case limit == "maxIterations" && more.Iterations <= 0:
		missing = "--max-iterations +N"
	case limit == "timeoutMs" && more.TimeoutMs <= 0:
		missing = "--timeout +DURATION"
	case limit == "budget.costUsd" && more.CostUSD <= 0:
		missing = "--budget-usd +X"
	case limit == "budget.tokens" && more.Tokens <= 0:
		missing = "--budget-tokens +N"
	case limit == "budget.calls" && more.Calls <= 0:
		missing = "--budget-calls +N"
	}
	if missing == "" {
		return nil
	}
	return &abi.Error{Code: abi.Limit, Message: fmt.Sprintf("run %s is paused at its limit %s and needs a limit extension to continue", id, limit), Hint: "resume it with " + missing}
}

// extendLimits adds to the limits of the run and records that.
func (r *run) extendLimits(opt ResumeOptions) ticket {
	r.snap.Lock()
	defer r.snap.Unlock()
	t := r.write(writeOptions{}, &journal.Record{Kind: journal.Signal, Signal: &journal.SignalBody{Type: "resume", By: opt.By, Extension: &opt.Extension}})
	r.budget.Extend(r.id, opt.Extension)
	return t
}
