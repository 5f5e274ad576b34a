package runtime

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/sentinel-runtime/sentinel/runtime/internal/cond"
	"github.com/sentinel-runtime/sentinel/runtime/internal/definition"
	"github.com/sentinel-runtime/sentinel/runtime/internal/dispatch"
	"github.com/sentinel-runtime/sentinel/runtime/internal/eventlog"
	"github.com/sentinel-runtime/sentinel/runtime/internal/execution"
	"github.com/sentinel-runtime/sentinel/runtime/internal/execution/step"
	"github.com/sentinel-runtime/sentinel/runtime/internal/pluginset"
	"github.com/sentinel-runtime/sentinel/runtime/internal/runindex"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
)

// Runtime executes runs. A process may open more than one.
//
// # Concurrency
//
// All methods are safe for concurrent use. Close waits for everything the
// runtime started; it may be called more than once.
type Runtime struct {
	opt         Options
	db          store.Store
	guests      *wasm.Host
	conditions  *cond.Evaluator
	plugins     *pluginset.Set
	definitions *definition.Store
	documents   *Documents
	events      *eventlog.Log
	runEvents   *eventlog.Log      // events of runs
	expected    *eventlog.Expected // what readers of runEvents may wait for
	expecting   sync.Mutex         // held while a stored definition is read for expected
	index       *runindex.Index    // of the runs in the store
	exec        *execution.Executor
	dispatch    *dispatch.Dispatcher // of triggers
	upkeep      upkeep
	migration   *Migration // by Open, nil if there was none

	ctx    context.Context // of what the runtime itself does in the background
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup // likewise
	closed atomic.Bool
}

// Open makes a runtime. It recovers nothing by itself: see [Runtime.Resume].
func Open(ctx context.Context, opt Options) (*Runtime, error) {
	rt := &Runtime{opt: opt.withDefaults()}
	rt.ctx, rt.cancel = context.WithCancelCause(context.Background())
	if err := rt.openParts(ctx); err != nil {
		return nil, errors.Join(err, rt.Close())
	}
	rt.upkeep.start()
	rt.wg.Go(rt.tidyCache)
	return rt, nil
}

func (opt Options) withDefaults() Options {
	opt.Limits = opt.Limits.WithDefaults()
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if opt.Dir != "" && opt.CacheDir == "" {
		opt.CacheDir = filepath.Join(opt.Dir, "cache")
	}
	return opt
}

// Close ends the process's part in every run and closes the store. Runs that
// are not over stay as they are, to be resumed; host calls that were under way
// are in doubt then, so stop or pause what should not be. Close is idempotent.
func (rt *Runtime) Close() error {
	if rt.closed.Swap(true) {
		return nil
	}
	rt.cancel(step.ErrShutdown)
	if rt.exec != nil {
		rt.exec.Stop()
	}
	rt.upkeep.stop()
	if rt.dispatch != nil {
		rt.dispatch.Close()
	}
	if rt.exec != nil {
		rt.exec.Wait()
	}
	rt.wg.Wait()
	var errs []error
	if rt.conditions != nil {
		rt.conditions.Close()
	}
	if rt.guests != nil {
		errs = append(errs, rt.guests.Close())
	}
	rt.upkeep.takeLastSnapshot()
	if rt.db != nil {
		errs = append(errs, rt.db.Close())
	}
	return errors.Join(errs...)
}

// alive refuses changes of a runtime that is closed: its host of guests is gone.
func (rt *Runtime) alive() error {
	if rt.closed.Load() {
		return ErrClosed
	}
	return nil
}

// StoreID returns the identity of the store, 16 hexadecimal digits. A state folder that is
// deleted and made again has another one. It is "" for a runtime without a folder.
func (rt *Runtime) StoreID() string {
	if db, inFolder := rt.db.(interface{ ID() string }); inFolder {
		return db.ID()
	}
	return ""
}

// Unclean reports whether the last process that had the state open ended
// without closing it.
func (rt *Runtime) Unclean() bool {
	db, inFolder := rt.db.(interface{ Unclean() bool })
	return rt.opt.store != nil || inFolder && db.Unclean()
}
