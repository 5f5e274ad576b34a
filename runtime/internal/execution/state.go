package execution

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sentinel-runtime/sentinel/runtime/external"
	"github.com/sentinel-runtime/sentinel/runtime/internal/execution/step"
	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/maintenance/retention"
	"github.com/sentinel-runtime/sentinel/runtime/internal/pluginset"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// state contains the fields of a run that change while it executes. The fields that
// survive the process are folded from its records; only [liveRun.Write] changes those.
type state struct {
	folded history.State // state after the records that were enqueued
	info   run.Info      // summary, written in the commit of each record that changes it

	// Definitions and plugins.
	def                *sentinels.Definition // definition of the current iteration
	hash               string                // hash of def
	revision           int                   // stored revision of def; 0 if it is not stored
	edit               int                   // number of the run's own edit that def is; 0 if it is not one
	within             []string              // bound of def; nil for none
	maker              string                // agent that made def, if it has a bound
	ownEdit            *definitionVersion    // newest edit of this run; nil while it follows the stored sentinel
	recordedDefinition encodedDefinition     // last definition that was written to a record
	view               *pluginset.View       // plugins of the current iteration; nil between iterations
	types              *sentinels.TypeSet    // step types that def was decoded with
	names              *sentinels.Variables  // of namesOf; nil until they are needed
	namesOf            *sentinels.Definition

	// Not recorded: a process that takes the run over determines these fields again.
	announced            sentinels.Status                // status of the newest event of the run, also of one that was not written
	recovered            bool                            // taken over at the start of the host, together with all others
	steps                int                             // step executions that the current iteration has begun
	executed             bool                            // the current iteration has executed a step
	idle                 int                             // iterations in a row that have executed none
	emitting             int64                           // bytes of events emitted by host calls that have not ended
	retries              []*run.RetryWait                // steps that wait for their next attempt
	queued               []*run.QueueWait                // what waits at a limit of what may execute at once
	wake                 context.CancelCauseFunc         // cancels a wait between iterations; nil outside such a wait
	pending              map[string]*pendingDecision     // decisions that the run waits for, by name
	stepsAtCrash         []string                        // paths of steps that were executing at a crash that is not counted yet
	onInterrupt          sentinels.Interrupt             // onInterrupt option of the resume; may be empty
	interruptedProcesses []external.InterruptedExecution // background processes that a crash interrupted and that are not handled yet
	processStarts        map[string]*startedCall         // what startingCalls found for interruptedProcesses; nil before
	keptIterations       retention.Iterations            // iterations whose records are in the journal
	result               *waitedResult                   // nil until schedule.ended is closed
}

// CountStep implements [step.State].
func (r *liveRun) CountStep(address string) error {
	limit := r.ex.svc.Limits.Steps
	if own := r.Definition().Safety.MaxSteps; own > 0 {
		limit = own
	}
	r.mu.Lock()
	r.steps++
	n := r.steps
	r.mu.Unlock()
	if n > limit {
		return &step.LimitError{Limit: "maxSteps", Hint: "end the loop earlier, or raise safety.maxSteps", Text: fmt.Sprintf("maxSteps reached: iteration %d executed %d steps, the next one is at %s", r.Iteration(), limit, address)}
	}
	return nil
}

// RecordedStep implements [step.State].
func (r *liveRun) RecordedStep(path string, enclosing []int) *history.Execution {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x := r.folded.Executions.Get(path, enclosing); x != nil {
		return x.Clone()
	}
	return nil
}

// FailedStep implements [step.State].
func (r *liveRun) FailedStep() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.folded.FailedStep
}

// ShowRetry implements [step.State].
func (r *liveRun) ShowRetry(w *run.RetryWait) (over func()) {
	r.mu.Lock()
	r.retries = append(r.retries, w)
	r.mu.Unlock()
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.retries = slices.DeleteFunc(r.retries, func(other *run.RetryWait) bool { return other == w })
	}
}

// ShowQueue implements [step.State].
func (r *liveRun) ShowQueue(w *run.QueueWait) (over func()) {
	r.mu.Lock()
	r.queued = append(r.queued, w)
	r.mu.Unlock()
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.queued = slices.DeleteFunc(r.queued, func(other *run.QueueWait) bool { return other == w })
	}
}

// RAGContext implements [step.State].
func (r *liveRun) RAGContext() json.RawMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.folded.RAGContext.Content()
}

func (r *liveRun) status() sentinels.Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.info.Status
}

// Iteration implements [step.State].
func (r *liveRun) Iteration() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.folded.Iteration
}

// Definition implements [step.State].
func (r *liveRun) Definition() *sentinels.Definition {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.def
}

// Names implements [step.State].
func (r *liveRun) Names() *sentinels.Variables {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.names == nil || r.namesOf != r.def {
		r.names, r.namesOf = sentinels.VariablesOf(r.def, r.types), r.def
	}
	return r.names
}

// setStatus records a status that is not final, with the pending decisions of the run,
// and reports it, with added if a new pending decision caused it. The caller holds
// r.snap, so that statuses are recorded in the order of their changes.
func (r *liveRun) setStatus(body journal.StatusBody, pending []run.PendingDecision, added *run.PendingDecision) *store.Ticket {
	change := func(info *run.Info) {
		info.Status, info.Reason, info.Limit, info.PausedWith = body.Status, body.Reason, body.Limit, body.With
		info.Decisions = pending
	}
	t := r.writeSummary(step.Commit{Summary: true, Lazy: body.Resumed}, change, &journal.Record{Kind: journal.Status, Status: &body})
	t.OnDone(func(error) {
		r.Report(run.Progress{Event: run.OnStatus, Status: body.Status, Reason: body.Limit, Message: cmp.Or(body.Reason, r.queuedReason(body.Status)), Decision: added})
	})
	return t
}
