package execution

import (
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
	"github.com/sentinel-runtime/sentinel/runtime/internal/values"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A state is what changes while a run executes. The part that survives the process is
// folded from its records; [liveRun.Write] alone changes that.
type state struct {
	folded history.State // after the records that were enqueued
	info   run.Info      // the summary, written in the commit of the record that changes it

	// Of the definition.
	def                *sentinels.Definition // that the current iteration uses
	hash               string
	revision           int
	edit               int                // number of the run's own edit that the iteration uses, 0 for none
	ownEdit            *definitionVersion // what the run follows alone; nil while it follows the stored sentinel
	recordedDefinition encodedDefinition
	view               *pluginset.View    // of the current iteration
	types              *sentinels.TypeSet // that the current iteration read its definition with

	// Of this process: a process that takes the run over counts or asks again.
	steps                int   // step executions of the iteration that were admitted
	emitting             int64 // bytes of the events that calls under way have emitted
	retries              []*run.RetryWait
	wake                 context.CancelCauseFunc     // ends a wait between iterations; nil when there is none
	pending              map[string]*pendingDecision // by their calls
	stepsAtCrash         []string                    // paths of the steps that were executing at the crash, until it is counted
	onInterrupt          sentinels.Interrupt         // said when the run was resumed
	interruptedProcesses []external.InterruptedExecution
	keptIterations       retention.Iterations
	result               waitedResult
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
		return &step.LimitError{Limit: "maxSteps", Text: fmt.Sprintf("maxSteps reached: iteration %d executed %d steps, the next one is at %s", r.Iteration(), limit, address)}
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

// RAGContext implements [step.State].
func (r *liveRun) RAGContext() json.RawMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return values.Content(r.folded.RAGContext)
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

// setStatus records a status that is not final and reports it. The caller holds
// r.snap, so that statuses are written in the order in which they came about.
func (r *liveRun) setStatus(body journal.StatusBody, added *run.PendingDecision) *store.Ticket {
	r.mu.Lock()
	r.info.Status, r.info.Reason, r.info.Limit, r.info.PausedWith = body.Status, body.Reason, body.Limit, body.With
	r.mu.Unlock()
	t := r.Write(step.Commit{Summary: true, Lazy: body.Resumed}, &journal.Record{Kind: journal.Status, Status: &body})
	t.OnDone(func(error) {
		r.Report(run.Progress{Event: run.OnStatus, Status: body.Status, Limit: body.Limit, Message: body.Reason, Decision: added})
	})
	return t
}
