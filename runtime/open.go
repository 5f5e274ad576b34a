package runtime

import (
	"context"
	"fmt"
	"os"

	"github.com/sentinel-runtime/sentinel/runtime/internal/capacity"
	"github.com/sentinel-runtime/sentinel/runtime/internal/clock"
	"github.com/sentinel-runtime/sentinel/runtime/internal/cond"
	"github.com/sentinel-runtime/sentinel/runtime/internal/definition"
	"github.com/sentinel-runtime/sentinel/runtime/internal/dispatch"
	"github.com/sentinel-runtime/sentinel/runtime/internal/document"
	"github.com/sentinel-runtime/sentinel/runtime/internal/eventlog"
	"github.com/sentinel-runtime/sentinel/runtime/internal/execution"
	"github.com/sentinel-runtime/sentinel/runtime/internal/execution/step"
	"github.com/sentinel-runtime/sentinel/runtime/internal/maintenance/statefolder"
	"github.com/sentinel-runtime/sentinel/runtime/internal/redact"
	"github.com/sentinel-runtime/sentinel/runtime/internal/runindex"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/internal/values"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// bucketTrusted has the digests of modules that shipped with a release.
const bucketTrusted = "trusted"

// buckets are all buckets of the store. Journals and blobs have places of their own.
// What is in none of these holds no blob.
var buckets = append([]string{
	execution.BucketRuns, execution.BucketResults, execution.BucketStartKeys, execution.BucketSpent, definition.Bucket, eventlog.Bucket, eventlog.BucketRuns,
	bucketTrusted, document.Bucket, document.BucketIndex, runindex.Bucket,
}, dispatch.Buckets()...)

// openParts opens the parts of the engine, each after those that it uses.
func (rt *Runtime) openParts(ctx context.Context) error {
	if err := rt.openStore(ctx); err != nil {
		return err
	}
	calendar := clock.NewCalendar(rt.opt.now)
	rt.wg.Go(func() { calendar.Watch(rt.ctx, rt.opt.Logger) })
	child := rt.opt.Child.resolve()
	rt.conditions = cond.New(cond.Options{Child: child, OnFileShortage: rt.heldCondition})
	rt.openDefinitions()
	if err := rt.openRunIndex(ctx); err != nil {
		return err
	}
	if err := rt.openEvents(); err != nil {
		return err
	}
	rt.documents = document.New(document.Options{Store: rt.db, Events: rt.events, Writable: rt.writable, Await: rt.await})
	if err := rt.documents.Register(ctx, rt.opt.Indexes...); err != nil {
		return err
	}
	rt.openTriggers(calendar.Now)
	guests, err := wasm.Open(wasm.Options{CacheDir: rt.opt.CacheDir, Child: child, Logger: rt.opt.Logger, MaxMemoryBytes: plugin.MaxMemory})
	if err != nil {
		return fmt.Errorf("open plugin host: %w", err)
	}
	rt.guests = guests
	rt.plugins = rt.newPlugins()
	rt.openExecutor(calendar)
	rt.upkeep.pruner = rt.newPruner()
	return rt.loadPlugins(ctx)
}

// openStore opens the store and what watches it.
func (rt *Runtime) openStore(ctx context.Context) error {
	switch {
	case rt.opt.store != nil:
		rt.db = rt.opt.store
	case rt.opt.Dir == "":
		rt.db = store.NewMemory()
	default:
		return rt.openFolder(ctx)
	}
	rt.upkeep.health = rt.newMonitor()
	return nil
}

// openFolder opens the store in the state folder.
func (rt *Runtime) openFolder(ctx context.Context) error {
	if err := os.MkdirAll(rt.opt.Dir, 0o700); err != nil {
		return fmt.Errorf("open state: %w", err)
	}
	db, err := statefolder.Open(ctx, rt.opt.Dir, rt.opt.Version, rt.opt.Logger)
	if err != nil {
		return err
	}
	rt.db = db
	if m := db.Migration(); m != nil {
		rt.migration = (*Migration)(m)
	}
	rt.upkeep.health = rt.newMonitor()
	rt.upkeep.snapshots, err = rt.openSnapshots(db)
	return err
}

// openRunIndex makes the index of the runs in the store.
func (rt *Runtime) openRunIndex(ctx context.Context) error {
	rt.index = runindex.New(runindex.Options{
		Store: rt.db, Summaries: execution.BucketRuns, Project: runindex.Project(rt.opt.Project),
		Active:   func(id sentinels.RunID) (RunInfo, bool) { return rt.exec.Summary(id) },
		Starting: func() []RunInfo { return rt.exec.Starting() },
	})
	return rt.index.Open(ctx)
}

// openExecutor makes what executes runs.
func (rt *Runtime) openExecutor(calendar *clock.Calendar) {
	opt := &rt.opt
	redactor := redact.Redactor(opt.Redact)
	rt.exec = execution.New(execution.Options{
		Absent: rt.absent,
		Services: &step.Services{
			Limits:   &opt.Limits,
			Commands: opt.Commands, Models: opt.Models, Executions: opt.Executions, HTTP: opt.HTTP, Folders: opt.Folders,
			Values: &values.Store{Redact: redactor, PutBlob: rt.putBlob, Blob: rt.db.Blob}, Redact: redactor,
			Conditions: rt.conditions, Events: rt.events, RunEvents: rt.runEvents, Expected: rt.expected, Documents: rt.documents, Definitions: rt.definitions,
			Calendar: calendar, Blocked: rt.upkeep.health.Blocked, Log: opt.Logger, Classify: rt.ClassifyError,
			Residents: capacity.NewResidents(opt.Limits.Resident, opt.Limits.ResidentBytes),
		},
		Store: rt.db, Plugins: rt.plugins, Definitions: rt.definitions, Index: rt.index, Health: rt.upkeep.health, Triggers: rt.dispatch,
		Contexts: opt.Contexts, WorkspaceExists: opt.WorkspaceExists, OnInterrupt: opt.OnInterrupt, Unclean: rt.Unclean(), Progress: opt.Observer.Progress, Applied: opt.applied,
	})
}
