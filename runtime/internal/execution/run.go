package execution

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/external"
	"github.com/sentinel-runtime/sentinel/runtime/internal/budget"
	"github.com/sentinel-runtime/sentinel/runtime/internal/execution/step"
	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/runindex"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A liveRun is a run that this process executes. Its main goroutine executes the
// iterations one after the other. Host calls do their work on goroutines of their own,
// which end before the run does. Steps use it as a [step.Run].
type liveRun struct {
	ex *Executor
	identity
	schedule
	log    journalLog   // order of the run's records in its journal
	budget *budget.Tree // shared by all runs of the tree

	children   childQueue    // guarded by ex.mu, as counted is
	counted    bool          // it has a place among the active children of the run above it
	waitsFor   int           // its active children, those that wait to begin, and its own place; guarded by ex.mu, see [share]
	place      chan struct{} // closed when the run may execute, see [Executor.takePlace]
	queue      run.QueueWait // while it waits for its place
	leaveQueue func()        // ends that its summary has queue; nil for a run that did not wait
	queuedFor  time.Duration // how long it waited, until its first iteration records that; of the main goroutine

	snap    sync.Mutex // held while the status or a limit changes and the change is recorded
	editing sync.Mutex // held while an edit of the run is applied

	mu sync.Mutex // guards state
	state
}

var _ step.Run = (*liveRun)(nil)

// identity contains the fields of a run that never change.
type identity struct {
	id     sentinels.RunID
	begin  *journal.RunStartBody // first record, without the values that [liveRun.dropStart] releases
	parent *liveRun              // nil for a root, and if another process started the parent
	share  string                // for whom it counts among the active runs, see [shareOf]
}

// newRun returns a liveRun that is neither listed nor started. elapsed is the active
// time of a restored run.
func (ex *Executor) newRun(id sentinels.RunID, begin *journal.RunStartBody, def *sentinels.Definition, hash string, parent *liveRun, elapsed time.Duration) *liveRun {
	r := &liveRun{
		ex: ex, identity: identity{id: id, begin: begin, parent: parent}, schedule: ex.newSchedule(elapsed), place: make(chan struct{}),
		state: state{def: def, hash: hash, revision: begin.Revision, pending: map[string]*pendingDecision{}},
	}
	if parent != nil {
		r.budget = parent.budget
	} else {
		r.budget = budget.New()
	}
	r.share = shareOf(r)
	r.timeout = &timeoutTimer{r: r}
	r.openBudget(def)
	return r
}

// ID implements [step.Identity].
func (r *liveRun) ID() sentinels.RunID { return r.id }

// Start implements [step.Identity].
func (r *liveRun) Start() *journal.RunStartBody { return r.begin }

// Within implements [step.State].
func (r *liveRun) Within() []string {
	r.mu.Lock()
	own := r.within
	r.mu.Unlock()
	return r.ex.both(r.begin.Within, own)
}

// bounded reports whether a bound limits what the run may call. It costs less than [liveRun.Within],
// which may ask for all commands.
func (r *liveRun) bounded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begin.Within != nil || r.within != nil
}

// As implements [step.State].
func (r *liveRun) As() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return cmp.Or(r.maker, r.begin.As)
}

// both returns the commands that two bounds allow.
func (ex *Executor) both(a, b []string) []string { return external.Both(ex.svc.Commands, a, b) }

// dropStart releases the values that only the run's first record needs, before the run
// continues: ten thousand waiting runs would otherwise each keep a definition in
// memory. Other goroutines may use the run already, but they do not read these values.
func (r *liveRun) dropStart() {
	r.begin.Definition, r.begin.Variables, r.begin.Inherited = journal.Value{}, nil, nil
	if f := r.begin.Fork; f != nil {
		f.Variables, f.Order, f.Last = nil, nil, journal.Value{} // Changes is shown while the run waits
	}
}

// internTexts makes equal strings of a restored run share their memory. The run is not
// visible to other goroutines yet.
func (r *liveRun) internTexts() {
	if r.begin.Hash == r.hash {
		r.begin.Hash = r.hash
	}
	if r.info.Hash == r.hash {
		r.info.Hash = r.hash
	}
	if r.info.Workspace == r.begin.Workspace {
		r.info.Workspace = r.begin.Workspace
	}
}

// main executes the run and ends it. It is the run's main goroutine.
func (r *liveRun) main() {
	end, err := r.recordedEnd()
	switch {
	case end != nil:
		r.giveUpPlace()
	case err == nil:
		err = r.awaitPlace()
	}
	if err != nil && r.ctx.Err() != nil {
		err = nil // the steps that a crash left are ended, with their finally
	}
	if err == nil && end == nil {
		err = r.iterate()
	}
	if errors.Is(err, step.ErrShutdown) || errors.Is(context.Cause(r.ctx), step.ErrShutdown) {
		r.detach()
		return
	}
	if end == nil {
		end = r.endOf(err)
	}
	if err := r.runEnd(end); err != nil {
		r.detach()
		return
	}
	r.finish(end)
}

// recordedEnd returns the end of the run if a crash interrupted its onFailure or finally, else nil.
func (r *liveRun) recordedEnd() (*journal.RunEndBody, error) {
	outcome, ok, err := step.NewEnd(r.ex.svc, r, r.runScope()).Recorded()
	if err != nil || !ok {
		return nil, err
	}
	return &journal.RunEndBody{Status: outcome.Status, Limit: outcome.Reason, Error: outcome.Error, Step: outcome.Step}, nil
}

// runEnd executes onFailure and finally of the definition and adds their error to the end of the run. It returns an
// error if the process ends before them.
func (r *liveRun) runEnd(end *journal.RunEndBody) error {
	def := r.Definition()
	if len(def.Lists()) == 1 {
		return nil
	}
	r.ending.Store(true)
	r.work.Wait() // of calls that the end of the run has cancelled
	if r.Plugins() == nil {
		view := r.ex.opt.Plugins.View()
		again := r.decodeForView(def, view)
		r.mu.Lock()
		r.def = again
		r.mu.Unlock()
		r.setPlugins(view)
	}
	defer r.setPlugins(nil)
	limit := sentinels.DefaultFinally
	if ms := def.Safety.FinallyTimeoutMs; ms > 0 {
		limit = time.Duration(ms) * time.Millisecond
	}
	outcome := journal.Outcome{Status: end.Status, Reason: end.Limit, Error: end.Error, Step: end.Step}
	var err error
	end.Finally, err = step.NewEnd(r.ex.svc, r, r.runScope()).Run(outcome, limit)
	if end.Finally != nil {
		r.stopDescendants() // that it has started and does not wait for
	}
	return err
}

// detach ends the run's goroutines without an end record, so that another process can
// resume it.
func (r *liveRun) detach() {
	r.cancel(step.ErrShutdown)
	r.cancelLast(step.ErrShutdown)
	r.work.Wait()
	r.publish(waitedResult{
		Result:   run.Result{Run: r.id, Sentinel: r.begin.Sentinel, Status: r.status(), Iterations: r.Iteration()},
		detached: true,
	})
	r.deregister()
}

// endOf returns the end of a run whose iterations ended with err, and stops what the run has started if it must not
// continue.
func (r *liveRun) endOf(err error) *journal.RunEndBody {
	if cause := context.Cause(r.ctx); cause != nil && err != nil {
		err = cause // the cause of the cancellation, rather than the error of a cancelled step
	}
	end := &journal.RunEndBody{Status: sentinels.StatusCompleted}
	var limit *step.LimitError
	var undecided *step.UndecidedError
	var ended *step.EndError
	switch {
	case errors.As(err, &ended):
		end.Status, end.Error = ended.Status, ended.Err
	case err == nil:
		r.mu.Lock()
		end.Limit = r.info.Limit
		r.mu.Unlock()
	case errors.Is(err, step.ErrStopped):
		end.Status = sentinels.StatusStopped
		end.Error = failure.New(abi.Cancelled, "run was stopped")
	case errors.As(err, &limit) && !slices.Contains(run.TimedOut(), limit.Limit):
		// maxSteps is a bound on mistakes in a definition rather than on its work, and more
		// time or money does not help a run that takes too much memory.
		end.Status = sentinels.StatusFailed
		if slices.Contains(run.Failed(), limit.Limit) {
			end.Limit = limit.Limit
		}
		end.Error = &abi.Error{Code: abi.Limit, Permanent: true, Message: limit.Text, Hint: limit.Hint}
	case errors.As(err, &limit):
		end.Status, end.Limit = sentinels.StatusTimedOut, limit.Limit
		end.Error = &abi.Error{Code: abi.Limit, Message: limit.Text, Hint: limit.Hint}
		if limit.Limit == run.ReasonTimeout {
			end.Error.Code = abi.Timeout
		}
	case errors.As(err, &undecided):
		end.Status, end.Error = sentinels.StatusFailed, undecided.Err
	default:
		end.Status = sentinels.StatusFailed
		end.Error = failure.From(err, abi.Internal)
		if slices.Contains(run.Failed(), end.Error.Field) && (end.Error.Code == abi.Limit || end.Error.Code == abi.Memory) {
			end.Limit = end.Error.Field
		}
	}
	switch {
	case undecided != nil:
		end.Step = undecided.Step
	case ended != nil && ended.Err != nil:
		end.Step = ended.Step
	case limit != nil && limit.Step != "":
		end.Step = limit.Step
	case end.Status != sentinels.StatusCompleted:
		r.mu.Lock()
		end.Step = r.folded.FailedStep
		r.mu.Unlock()
	}
	if end.Status == sentinels.StatusStopped || end.Status == sentinels.StatusTimedOut || undecided != nil || ended != nil {
		r.stopDescendants()
	}
	return end
}

// finish records the run's end and reports it once it is durable.
func (r *liveRun) finish(end *journal.RunEndBody) {
	r.cancel(step.ErrStopped) // ends the work of host calls that is still under way
	r.cancelLast(step.ErrStopped)
	r.work.Wait()
	r.endProcesses()

	end.Error = r.ex.svc.Redact.Error(end.Error)
	if end.Finally != nil {
		r.ex.svc.Log.Warn("onFailure or finally of the run failed", "run", r.id, "sentinel", r.begin.Sentinel, "error", end.Finally)
	}
	result := r.makeResult(end)
	r.snap.Lock()
	defer r.snap.Unlock()
	r.cutOff()
	r.mu.Lock()
	end.By, end.PausedBy, end.Asked = r.info.EndedBy, r.info.EndedPause, r.info.EndedQuestion
	r.mu.Unlock()
	endedAt := time.Now().UTC()
	change := func(info *run.Info) {
		info.Status, info.Error, info.Step, info.EndedAt = end.Status, end.Error, end.Step, endedAt
		info.Limit, info.Reason, info.Decisions, info.Finally = end.Limit, end.Limit, nil, end.Finally
	}
	puts, err := r.ex.resultPuts(result)
	if err != nil {
		r.ex.svc.Log.Error("result of the run cannot be stored", "run", r.id, "error", err)
	}
	puts = append(puts, runindex.EndPut(r.id))
	after := r.recoveredFrom(end.Status)
	ticket := r.writeSummary(step.Commit{Summary: true, Puts: puts}, change, &journal.Record{Kind: journal.RunEnd, RunEnd: end})
	if after != "" {
		ticket = r.announceRecovery(after)
	}
	r.publish(waitedResult{Result: result})
	ticket.OnDone(func(err error) {
		if err != nil {
			r.ex.svc.Log.Error("end of the run is not durable", "run", r.id, "error", err)
		}
		r.mu.Lock()
		over := r.info // the summary as it was written
		r.mu.Unlock()
		r.ex.opt.Index.Ended(over)
		r.Report(run.Progress{Event: run.OnRunEnd, Status: end.Status, Reason: end.Limit, Error: end.Error, Usage: &result.Usage, Duration: result.Duration})
		r.deregister()
	})
}

// publish gives the result of the run to its parent. What the parent records then comes
// behind the end of the run in the store, so it need not wait until that is durable.
func (r *liveRun) publish(result waitedResult) {
	r.mu.Lock()
	r.result = &result
	r.mu.Unlock()
	close(r.ended)
}

// deregister removes the run, whose result is published, from the active runs and wakes
// all others that wait for its result.
func (r *liveRun) deregister() {
	r.budget.Close(r.id)
	r.expect(nil)
	r.ex.mu.Lock()
	r.ex.removeLocked(r)
	r.ex.mu.Unlock()
	r.mu.Lock()
	detached, overlap := r.result.detached, OverlapID(r.info)
	r.mu.Unlock()
	if !detached {
		r.ex.opt.Triggers.RunEnded(overlap, r.id)
	}
	close(r.done)
	r.ex.wg.Done()
}
