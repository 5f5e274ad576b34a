package runtime

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/google/uuid"

	"github.com/sentinel-runtime/sentinel/runtime/internal/capacity"
	"github.com/sentinel-runtime/sentinel/runtime/internal/clock"
	"github.com/sentinel-runtime/sentinel/runtime/internal/cond"
	"github.com/sentinel-runtime/sentinel/runtime/internal/definition"
	"github.com/sentinel-runtime/sentinel/runtime/internal/dispatch"
	"github.com/sentinel-runtime/sentinel/runtime/internal/document"
	"github.com/sentinel-runtime/sentinel/runtime/internal/eventlog"
	"github.com/sentinel-runtime/sentinel/runtime/internal/maintenance/health"
	"github.com/sentinel-runtime/sentinel/runtime/internal/maintenance/retention"
	"github.com/sentinel-runtime/sentinel/runtime/internal/maintenance/snapshots"
	"github.com/sentinel-runtime/sentinel/runtime/internal/maintenance/statefolder"
	"github.com/sentinel-runtime/sentinel/runtime/internal/pluginset"
	"github.com/sentinel-runtime/sentinel/runtime/internal/runindex"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// The buckets of the store. Journals and blobs have places of their own.
const (
	bucketRuns      = "runs"      // run id -> RunInfo
	bucketResults   = "results"   // run id -> Result of a run that is over
	bucketStartKeys = "startkeys" // start key -> run id
	bucketTrusted   = "trusted"   // digests of modules that shipped with a release
	bucketSpent     = "spent"     // run id -> what descendants have cost that retention took
)

// buckets are all of them. What is in none of these holds no blob.
var buckets = append([]string{
	bucketRuns, bucketResults, bucketStartKeys, definition.Bucket, eventlog.Bucket, bucketTrusted, document.Bucket, runindex.Bucket, bucketSpent,
}, dispatch.Buckets()...)

// Runtime executes runs. A process may open more than one.
//
// # Concurrency
//
// All methods are safe for concurrent use. Close waits for everything the
// runtime started; it may be called more than once.
type Runtime struct {
	opt      Options
	limits   Limits
	log      *slog.Logger
	db       store.Store
	wasm     *wasm.Host
	cond     *cond.Evaluator
	plugins  *pluginset.Set
	pruner   *retention.Pruner
	shapes   shapes
	health   *health.Monitor
	snaps    *snapshots.Keeper // nil without a state folder
	docs     *Documents
	events   *eventlog.Log
	dispatch *dispatch.Dispatcher // of triggers
	waiting  *capacity.Residents
	defs     *definition.Store
	index    *runindex.Index // of the runs in the store
	calendar *clock.Calendar
	slots    *capacity.Slots  // one for each run that executes
	effects  capacity.Effects // calls under way that a crash would leave in doubt
	turns    capacity.Turns   // of the steps that are suspected of crashing the host

	ctx    context.Context // ends with errShutdown
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup // runs and the work behind host calls

	mu       sync.Mutex
	runs     map[sentinels.RunID]*run   // those that this process executes
	starting map[string]sentinels.RunID // by start key, until the start is durable
	fresh    map[sentinels.RunID]*run   // whose start is not durable yet
	closed   bool
	draining bool // no step starts any more
	readOnly bool // the clocks of all runs are held
	unclean  bool

	// handover is held to read while a run is taken over, and to write while a
	// record goes into the journal of one that no process executes.
	handover sync.RWMutex
}

// Open makes a runtime. It recovers nothing by itself: see [Runtime.Resume].
func Open(ctx context.Context, opt Options) (*Runtime, error) {
	rt := &Runtime{opt: opt, limits: opt.Limits.withDefaults(), log: opt.Logger, runs: map[sentinels.RunID]*run{}, starting: map[string]sentinels.RunID{}, fresh: map[sentinels.RunID]*run{}}
	if rt.log == nil {
		rt.log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if opt.Dir != "" && opt.CacheDir == "" {
		rt.opt.CacheDir = filepath.Join(opt.Dir, "cache")
	}
	rt.calendar = clock.NewCalendar(opt.now)
	rt.slots = capacity.NewSlots(rt.limits.Runs)
	rt.ctx, rt.cancel = context.WithCancelCause(context.Background())
	if err := rt.openParts(ctx); err != nil {
		return nil, errors.Join(err, rt.Close())
	}
	rt.health.Look()
	rt.health.Start()
	if rt.snaps != nil {
		rt.snaps.Start()
	}
	rt.wg.Add(1)
	go func() {
		defer rt.wg.Done()
		rt.calendar.Watch(rt.ctx, rt.log)
	}()
	rt.wg.Add(1)
	go rt.tidyCache()
	return rt, nil
}

// openStore opens the store and what watches it.
func (rt *Runtime) openStore(ctx context.Context) error {
	switch {
	case rt.opt.store != nil:
		rt.db, rt.unclean = rt.opt.store, true
	case rt.opt.Dir == "":
		rt.db = store.NewMemory()
	default:
		return rt.openFolder(ctx)
	}
	rt.health = rt.newMonitor()
	return nil
}

// openFolder opens the store in the state folder.
func (rt *Runtime) openFolder(ctx context.Context) error {
	if err := os.MkdirAll(rt.opt.Dir, 0o700); err != nil {
		return fmt.Errorf("open state: %w", err)
	}
	db, err := statefolder.Open(ctx, rt.opt.Dir, rt.opt.Child.resolve(), rt.log)
	if err != nil {
		return err
	}
	rt.db, rt.unclean = db, db.Unclean()
	rt.health = rt.newMonitor()
	rt.snaps, err = rt.openSnapshots(db)
	return err
}

func (rt *Runtime) openParts(ctx context.Context) error {
	if err := rt.openStore(ctx); err != nil {
		return err
	}
	rt.cond = cond.New(cond.Options{Child: rt.opt.Child.resolve(), OnFileShortage: rt.heldCondition})
	rt.waiting = capacity.NewResidents(rt.limits.Resident, rt.limits.ResidentBytes)
	rt.openDefinitions()
	err := rt.openRunIndex()
	if err != nil {
		return err
	}
	if err = rt.openEvents(); err != nil {
		return err
	}
	rt.openDocuments()
	rt.openTriggers()
	if rt.wasm, err = wasm.Open(wasm.Options{CacheDir: rt.opt.CacheDir, Child: rt.opt.Child.resolve(), Logger: rt.log, MaxMemoryBytes: plugin.MaxMemory}); err != nil {
		return fmt.Errorf("open plugin host: %w", err)
	}
	if err := rt.openPlugins(ctx); err != nil {
		return err
	}
	rt.pruner = rt.newPruner()
	return nil
}

// Close ends the process's part in every run and closes the store. Runs that
// are not over stay as they are, to be resumed; host calls that were under way
// are in doubt then, so stop or pause what should not be. Close is idempotent.
func (rt *Runtime) Close() error {
	rt.mu.Lock()
	if rt.closed {
		rt.mu.Unlock()
		return nil
	}
	rt.closed = true
	rt.mu.Unlock()
	rt.cancel(errShutdown)
	if rt.health != nil {
		rt.health.Stop()
	}
	if rt.snaps != nil {
		rt.snaps.Stop()
	}
	if rt.dispatch != nil {
		rt.dispatch.Close()
	}
	rt.wg.Wait()
	var errs []error
	if rt.cond != nil {
		rt.cond.Close()
	}
	if rt.wasm != nil {
		errs = append(errs, rt.wasm.Close())
	}
	if rt.snaps != nil {
		rt.snaps.TakeLast(context.Background())
	}
	if rt.db != nil {
		errs = append(errs, rt.db.Close())
	}
	return errors.Join(errs...)
}

// Unclean reports whether the last process that had the state open ended
// without closing it.
func (rt *Runtime) Unclean() bool { return rt.unclean }

func newRunID() sentinels.RunID { return sentinels.RunID(uuid.Must(uuid.NewV7()).String()) }

func newSeed() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}
