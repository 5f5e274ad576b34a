package execution

import (
	"context"
	"errors"
	"sync"

	"github.com/sentinel-runtime/sentinel/runtime/external"
	"github.com/sentinel-runtime/sentinel/runtime/internal/capacity"
	"github.com/sentinel-runtime/sentinel/runtime/internal/definition"
	"github.com/sentinel-runtime/sentinel/runtime/internal/execution/step"
	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/pluginset"
	"github.com/sentinel-runtime/sentinel/runtime/internal/runindex"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/runtime/trace"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// ErrClosed is returned for a run that would begin after [Executor.Stop].
var ErrClosed = errors.New("runtime is closed")

// The buckets of the store that runs are kept in, beside their journals.
const (
	BucketRuns      = "runs"      // run id -> [run.Info]
	BucketResults   = "results"   // run id -> [run.Result] of a run that is over
	BucketStartKeys = "startkeys" // start key -> run id
	BucketSpent     = "spent"     // run id -> what descendants have cost that retention took
)

// Options are what an executor needs. Contexts, Progress and Applied may be nil.
type Options struct {
	Services    *step.Services
	Store       store.Store
	Plugins     *pluginset.Set
	Definitions *definition.Store
	Index       *runindex.Index
	Health      Health
	Triggers    Triggers
	Contexts    external.Contexts
	// OnInterrupt decides about calls in doubt where nothing else does.
	OnInterrupt sentinels.Interrupt
	// Unclean: the last process ended without closing the store.
	Unclean bool
	// Progress is called for all progress of runs.
	Progress func(run.Progress)
	// Applied, for tests, is called behind each record that a live run applies to its
	// state. It must not keep or change the state.
	Applied func(sentinels.RunID, *history.State)
}

// Health is whether the runtime can store what happens.
type Health interface {
	// Writable refuses what would begin something new while the runtime is read-only.
	Writable() error
	// Await waits for a commit on behalf of a caller outside of any run. It does not
	// wait while commits fail.
	Await(ctx context.Context, t *store.Ticket) error
	Blocked() bool
	WaitWritable(ctx context.Context) error
	Stalled() <-chan struct{}
}

// Triggers count the runs of a sentinel that are active.
type Triggers interface {
	RunStarted(sentinel sentinels.ID, id sentinels.RunID)
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
	slots *capacity.Slots // one for each run that executes

	ctx    context.Context // ends with step.ErrShutdown
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup // runs

	mu       sync.Mutex
	runs     map[sentinels.RunID]*liveRun // those that this process executes
	starting map[string]sentinels.RunID   // by start key, until the start is durable
	unstored map[sentinels.RunID]*liveRun // whose start is not durable yet
	closed   bool
	draining bool // no step starts any more
	readOnly bool // the clocks of all runs are held

	// takeoverMu is held to read while a run is taken over, and to write while a
	// record goes into the journal of one that no process executes.
	takeoverMu sync.RWMutex
}

// New returns an executor without runs.
func New(opt Options) *Executor {
	ex := &Executor{
		opt: opt, svc: opt.Services, slots: capacity.NewSlots(opt.Services.Limits.Runs),
		runs: map[sentinels.RunID]*liveRun{}, starting: map[string]sentinels.RunID{}, unstored: map[sentinels.RunID]*liveRun{},
	}
	ex.ctx, ex.cancel = context.WithCancelCause(context.Background())
	opt.Definitions.Follow(ex.wakeForRevision)
	return ex
}

// Stop begins the end of the process's part in all runs: they stay as their journals
// have them. No run begins any more. [Executor.Wait] returns when all have ended.
func (ex *Executor) Stop() {
	ex.mu.Lock()
	ex.closed = true
	ex.mu.Unlock()
	ex.cancel(step.ErrShutdown)
}

// Wait waits after [Executor.Stop] until nothing of any run executes.
func (ex *Executor) Wait() { ex.wg.Wait() }

// Counts returns how many runs this process executes, and how many of them execute a
// guest or an effect now.
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

// Resident returns how many guests in memory wait.
func (ex *Executor) Resident() int { return ex.svc.Residents.Count() }

// Trace reads what a run did from its journal, from record number first on.
func (ex *Executor) Trace(id sentinels.RunID, first uint64) ([]trace.Iteration, error) {
	t, err := history.Trace(ex.opt.Store, id, first, ex.svc.Values.Load)
	return t.Iterations, err
}
