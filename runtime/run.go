package runtime

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/budget"
	"github.com/sentinel-runtime/sentinel/runtime/internal/clock"
	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/pluginset"
	"github.com/sentinel-runtime/sentinel/runtime/internal/runindex"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A run is one execution of a sentinel by this process. Its main goroutine
// orders the iterations; the work behind host calls has goroutines of its own
// that end before the run does.
type run struct {
	rt    *Runtime
	id    sentinels.RunID
	begin *journal.RunStartBody

	ctx    context.Context // ends with errStopped, errShutdown or a limitError
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the end is durable, or the process releases the run
	work   sync.WaitGroup

	clock   *clock.Active
	timeout *timeoutTimer
	budget  *budget.Tree // of the tree of runs
	gate    *clock.Gate  // closed while paused
	parent  *run         // nil for a root, and when another process began the parent

	children int // active runs of which this is the nearest active run above; guarded by rt.mu

	log  journalLog // the run's place in its journal
	snap sync.Mutex // held while the status or a limit changes and that is recorded

	editing sync.Mutex // held while an edit of the run is made

	slot   sync.Mutex
	active int // guests and effects that run now; the run holds a slot while it is not 0

	mu          sync.Mutex
	info        RunInfo
	def         *sentinels.Definition
	hash        string
	revision    int
	edit        int     // number of the run's own edit that the iteration uses, 0 for none
	own         *chosen // what the run follows alone; nil while it follows the stored sentinel
	inJournal   encodedDefinition
	wake        context.CancelCauseFunc // ends a wait between iterations; nil when there is none
	view        *pluginset.View         // of the current iteration
	types       *sentinels.TypeSet      // that the current iteration read its definition with
	state       history.State           // after the records that were enqueued; only write changes it
	steps       int                     // step executions of the iteration that were admitted
	emitting    int64                   // bytes of the events that calls under way have emitted
	retries     []*RetryWait
	atCrash     []string            // paths of the steps that were executing at the crash, until it is counted
	onInterrupt sentinels.Interrupt // said when the run was resumed
	cut         []InterruptedExecution
	pending     map[string]*pendingDecision // by their calls
	result      *waitedResult               // nil until done is closed
	kept        keptIterations              // for retention
}

// newRun makes the in-memory side of a run. It does not start it.
func (rt *Runtime) newRun(id sentinels.RunID, begin *journal.RunStartBody, def *sentinels.Definition, hash string, parent *run, elapsed time.Duration) *run {
	// A child lives on when its parent merely ends, so it hangs on the runtime
	// and not on its parent; a stop reaches it through [run.stopDescendants].
	ctx, cancel := context.WithCancelCause(rt.ctx)
	r := &run{
		rt: rt, id: id, begin: begin, ctx: ctx, cancel: cancel, done: make(chan struct{}),
		clock: clock.NewActive(elapsed), gate: &clock.Gate{}, parent: parent,
		def: def, hash: hash, revision: begin.Revision,
		pending: map[string]*pendingDecision{},
	}
	if parent != nil {
		r.budget = parent.budget
	} else {
		r.budget = budget.New()
	}
	r.timeout = &timeoutTimer{r: r}
	r.openBudget(def)
	return r
}

// dropStart releases what only the run's first record needs, before the run goes
// on: ten thousand that wait would each keep a definition of their own. Others
// may look at the run already, but not at these.
func (r *run) dropStart() {
	r.begin.Definition, r.begin.Variables = journal.Value{}, nil
	if f := r.begin.Fork; f != nil {
		f.Variables, f.Last = nil, journal.Value{}
	}
}

// internTexts makes a restored run, not visible yet, keep one text where it read two
// or more of the same.
func (r *run) internTexts() {
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

// main executes the run and ends it.
func (r *run) main() {
	err := r.iterate()
	if errors.Is(err, errShutdown) || errors.Is(context.Cause(r.ctx), errShutdown) {
		r.detach()
		return
	}
	r.finish(err)
}

// detach leaves the run as its journal has it, for another process to resume.
func (r *run) detach() {
	r.cancel(errShutdown)
	r.work.Wait()
	r.forget(waitedResult{
		Result:   Result{Run: r.id, Sentinel: r.begin.Sentinel, Status: r.status(), Iterations: r.iterationNumber()},
		released: true,
	})
}

// finish records the run's end and reports it once it is durable.
func (r *run) finish(err error) {
	if cause := context.Cause(r.ctx); cause != nil && err != nil {
		err = cause // what ended the run is why its steps were cancelled
	}
	end := &journal.RunEndBody{Status: sentinels.StatusCompleted}
	var limit *limitError
	switch {
	case err == nil:
		r.mu.Lock()
		end.Limit = r.info.Limit
		r.mu.Unlock()
	case errors.Is(err, errStopped):
		end.Status = sentinels.StatusStopped
		end.Error = errf(abi.Cancelled, "run was stopped")
	case errors.As(err, &limit):
		end.Status, end.Limit = sentinels.StatusTimedOut, limit.limit
		end.Error = errf(abi.Limit, "%s", limit.text)
		if limit.limit == "timeoutMs" {
			end.Error.Code = abi.Timeout
		}
	default:
		end.Status = sentinels.StatusFailed
		end.Error = asError(err, abi.Internal)
	}
	if end.Status != sentinels.StatusCompleted {
		r.mu.Lock()
		end.Step = r.state.FailedStep
		r.mu.Unlock()
	}
	if end.Status == sentinels.StatusStopped || end.Status == sentinels.StatusTimedOut {
		r.stopDescendants()
	}
	r.cancel(errStopped) // ends what is left of the work behind calls
	r.work.Wait()
	r.endExecutions()

	end.Error = r.rt.redactError(end.Error)
	result := r.makeResult(end)
	r.snap.Lock()
	defer r.snap.Unlock()
	r.mu.Lock()
	r.info.Status, r.info.Error, r.info.Limit, r.info.Step = end.Status, end.Error, end.Limit, end.Step
	r.info.EndedAt = time.Now().UTC()
	r.mu.Unlock()
	puts, err := r.rt.resultPut(result)
	if err != nil {
		r.rt.log.Error("run's result cannot be kept", "run", r.id, "error", err)
	}
	puts = append(puts, runindex.EndPut(r.id))
	ticket := r.write(writeOptions{info: true, puts: puts}, &journal.Record{Kind: journal.RunEnd, RunEnd: end})
	ticket.OnDone(func(err error) {
		if err != nil {
			r.rt.log.Error("run's end is not durable", "run", r.id, "error", err)
		}
		r.mu.Lock()
		over := r.info // as it was written
		r.mu.Unlock()
		r.rt.index.Ended(over)
		r.report(Progress{Event: OnRunEnd, Status: end.Status, Limit: end.Limit, Error: end.Error, Usage: &result.Usage, Duration: result.Duration})
		r.forget(waitedResult{Result: result})
	})
}

// A waitedResult is what those that wait for a run get.
type waitedResult struct {
	Result
	released bool // the process released the run before its end
}

// forget ends the process's part in the run.
func (r *run) forget(result waitedResult) {
	r.budget.Close(r.id)
	r.mu.Lock()
	r.result = &result
	r.mu.Unlock()
	r.rt.mu.Lock()
	r.rt.removeLocked(r)
	r.rt.mu.Unlock()
	if !result.released {
		r.rt.dispatch.RunEnded(r.begin.Sentinel, r.id)
	}
	close(r.done)
	r.rt.wg.Done()
}

func (r *run) endExecutions() {
	if r.rt.opt.Executions == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := r.rt.opt.Executions.EndRun(ctx, r.id); err != nil {
		r.rt.log.Error("processes of a run did not end", "run", r.id, "error", err)
	}
}

func (r *run) status() sentinels.Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.info.Status
}

func (r *run) iterationNumber() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state.Iteration
}

// definition returns the revision of the current iteration.
func (r *run) definition() *sentinels.Definition {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.def
}

// report gives progress to the observer, with what is the same for all of the run.
func (r *run) report(p Progress) {
	if r.rt.opt.Observer.Progress == nil {
		return
	}
	p.Run, p.Root, p.Sentinel = r.id, r.begin.Root, r.begin.Sentinel
	if p.Iteration == 0 {
		p.Iteration = r.iterationNumber()
	}
	r.rt.report(p)
}

// enter takes an execution slot for the run if it holds none; leave gives it
// back when nothing of the run executes any more.
func (r *run) enter(ctx context.Context) error {
	r.slot.Lock()
	defer r.slot.Unlock()
	if r.active == 0 {
		if err := r.rt.slots.Take(ctx); err != nil {
			return err
		}
	}
	r.active++
	return nil
}

func (r *run) leave() {
	r.slot.Lock()
	defer r.slot.Unlock()
	r.active--
	if r.active == 0 {
		r.rt.slots.Give()
	}
}

func (r *run) makeResult(end *journal.RunEndBody) Result {
	usage, iterations := r.budget.Total(r.id), r.iterationNumber()
	elapsed := r.clock.Elapsed()
	sc := r.runScope()
	variables := sc.variables()
	for name, v := range variables { // inputs are not redacted for guests
		variables[name] = r.rt.redact(v)
	}
	return Result{
		Run: r.id, Sentinel: r.begin.Sentinel, Status: end.Status, Iterations: iterations,
		Duration: elapsed, Millis: elapsed.Milliseconds(), Usage: usage, Output: sc.last(),
		Variables: variables, Limit: end.Limit, Step: end.Step, Error: end.Error,
	}
}
