package execution

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/sentinel-runtime/sentinel/internal/fairqueue"
	"github.com/sentinel-runtime/sentinel/runtime/external"
	"github.com/sentinel-runtime/sentinel/runtime/internal/definition"
	"github.com/sentinel-runtime/sentinel/runtime/internal/eventlog"
	"github.com/sentinel-runtime/sentinel/runtime/internal/execution/step"
	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/pluginset"
	"github.com/sentinel-runtime/sentinel/runtime/internal/runindex"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/runtime/trace"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// ErrClosed is returned for a run that is started or resumed after [Executor.Stop].
var ErrClosed = errors.New("runtime is closed")

// The buckets of the store that contain runs. Journals are stored separately.
const (
	BucketRuns      = "runs"      // run id -> [run.Info]
	BucketResults   = "results"   // run id -> [run.Result] of a finished run
	BucketStartKeys = "startkeys" // start key -> run id
	BucketSpent     = "spent"     // run id -> usage of descendants that retention has removed
)

// Options configure an [Executor]. Contexts, Progress and Applied may be nil.
type Options struct {
	Services    *step.Services
	Store       store.Store
	Plugins     *pluginset.Set
	Definitions *definition.Store
	Index       *runindex.Index
	Health      Health
	Triggers    Triggers
	Contexts    external.Contexts
	// Absent returns an error if something that a definition needs is known, but not here.
	// It may refer to the sentinels that named reports.
	Absent func(d *sentinels.Definition, owner sentinels.ID, named func(sentinels.ID) bool) error
	// WorkspaceExists is [runtime.Options.WorkspaceExists].
	WorkspaceExists func(string) bool
	// OnInterrupt decides about calls in doubt where nothing else does.
	OnInterrupt sentinels.Interrupt
	// Unclean reports that the last process ended without closing the store.
	Unclean bool
	// Progress is called for all progress of runs.
	Progress func(run.Progress)
	// Applied, for tests, is called after each record that a live run applies to its
	// state. It must not keep or change the state.
	Applied func(sentinels.RunID, *history.State)
}

// Health reports whether the runtime can write to its store.
type Health interface {
	// Writable returns an error while the runtime is read-only and nothing new may
	// begin.
	Writable() error
	// Await waits for a commit on behalf of a caller outside any run. It returns an
	// error instead of waiting while commits fail.
	Await(ctx context.Context, t *store.Ticket) error
	// Blocked reports whether the runtime is read-only.
	Blocked() bool
	// WaitWritable waits until the runtime is no longer read-only.
	WaitWritable(ctx context.Context) error
	// Stalled returns a channel that is closed when commits begin to fail.
	Stalled() <-chan struct{}
	// HeldError returns the error of something that has happened and is not durable
	// because commits fail.
	HeldError(what string) *abi.Error
}

// Triggers count the active runs of a sentinel.
type Triggers interface {
	RunStarted(sentinel sentinels.ID, id sentinels.RunID, chain eventlog.Chain)
	// RunStartsAlone is RunStarted unless other runs of the sentinel are active, which it returns.
	RunStartsAlone(sentinel sentinels.ID, id sentinels.RunID, chain eventlog.Chain) []sentinels.RunID
	// RunAsks says that a run which a trigger started may be one of [Executor.Undecided] now.
	RunAsks(sentinel sentinels.ID, id sentinels.RunID)
	RunEnded(sentinel sentinels.ID, id sentinels.RunID)
}

// An Executor executes the runs of a runtime.
//
// # Concurrency
//
// All methods are safe for concurrent use.
type Executor struct {
	opt   Options
	svc   *step.Services
	slots *fairqueue.Queue // execution slots, see [liveRun.Enter]

	ctx    context.Context // parent of the runs' contexts; its cause is step.ErrShutdown
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup // the active runs

	// mu guards the fields up to readOnly.
	mu       sync.Mutex
	runs     map[sentinels.RunID]*liveRun // active runs, executed by this process
	starting map[string]sentinels.RunID   // runs by start key, until their start is durable
	unstored map[sentinels.RunID]*liveRun // active runs whose start is not durable yet
	turns    map[sentinels.ID][]*liveRun  // runs that wait until those of their sentinel before them have ended
	shares   map[string]*share            // active runs by the agent that they count for; models have the name "model"
	closed   bool                         // Stop was called: no run begins any more
	draining bool                         // Drain was called: no step starts any more
	readOnly bool                         // the runtime is read-only: the clocks of all runs are held

	admission *fairqueue.Queue // its one place is that of a start which counts the runs of its owner

	waits waitGraph // steps that wait for runs

	// takeoverMu is held for reading while a run is taken over, and for writing while a
	// record is appended to the journal of a run that no process executes.
	takeoverMu sync.RWMutex
}

// New returns an executor without runs.
func New(opt Options) *Executor {
	ex := &Executor{
		opt: opt, svc: opt.Services, slots: fairqueue.New(opt.Services.Limits.Runs),
		admission: fairqueue.New(1), runs: map[sentinels.RunID]*liveRun{}, starting: map[string]sentinels.RunID{}, unstored: map[sentinels.RunID]*liveRun{},
		turns: map[sentinels.ID][]*liveRun{}, shares: map[string]*share{},
	}
	ex.ctx, ex.cancel = context.WithCancelCause(context.Background())
	opt.Definitions.Follow(ex.wakeForRevision)
	return ex
}

// Stop stops executing: no run begins any more, and active runs are interrupted without
// an end record, so that another process can resume them. It does not wait; see
// [Executor.Wait].
func (ex *Executor) Stop() {
	ex.mu.Lock()
	ex.closed = true
	ex.mu.Unlock()
	ex.cancel(step.ErrShutdown)
}

// Wait returns when no goroutine of a run is left, after [Executor.Stop].
func (ex *Executor) Wait() { ex.wg.Wait() }

// Counts returns the number of active runs, and how many of them execute a guest or an
// effect now.
func (ex *Executor) Counts() (runs, executing int) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	return len(ex.runs), ex.slots.Taken()
}

// live returns the run if this process executes it.
func (ex *Executor) live(id sentinels.RunID) *liveRun {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	return ex.runs[id]
}

// Live reports whether this process executes a run.
func (ex *Executor) Live(id sentinels.RunID) bool { return ex.live(id) != nil }

// Resident returns the number of waiting guests that are kept in memory.
func (ex *Executor) Resident() int { return ex.svc.Residents.Count() }

// Trace reads what a run did from its journal, from record number first on.
func (ex *Executor) Trace(id sentinels.RunID, first uint64) ([]trace.Iteration, error) {
	t, err := history.Trace(ex.opt.Store, id, first, ex.svc.Values.Load, ex.svc.Redact.Text)
	return t.Iterations, err
}

// TracePage reads a part of what a run did from its journal.
func (ex *Executor) TracePage(id sentinels.RunID, q history.PageRequest) (history.Page, error) {
	return history.TracePage(ex.opt.Store, id, q, ex.svc.Values.Load, ex.svc.Redact.Text)
}

// TraceEnds calls ended with each step of a run that ended, and with a function that loads its
// output. It returns the newest iteration with the steps that have not ended.
func (ex *Executor) TraceEnds(id sentinels.RunID, ended func(*trace.Iteration, *trace.Step, func() (json.RawMessage, error)) error) (*trace.Iteration, error) {
	return history.TraceEnds(ex.opt.Store, id, ex.svc.Redact.Text, func(it *trace.Iteration, s *trace.Step, output journal.Value) error {
		return ended(it, s, func() (json.RawMessage, error) { return ex.svc.Values.Load(output) })
	})
}
