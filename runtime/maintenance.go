package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/cond"
	"github.com/sentinel-runtime/sentinel/runtime/internal/definition"
	"github.com/sentinel-runtime/sentinel/runtime/internal/eventlog"
	"github.com/sentinel-runtime/sentinel/runtime/internal/execution"
	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/maintenance/health"
	"github.com/sentinel-runtime/sentinel/runtime/internal/maintenance/repair"
	"github.com/sentinel-runtime/sentinel/runtime/internal/maintenance/retention"
	"github.com/sentinel-runtime/sentinel/runtime/internal/maintenance/snapshots"
	"github.com/sentinel-runtime/sentinel/runtime/internal/maintenance/statefolder"
	"github.com/sentinel-runtime/sentinel/runtime/internal/runindex"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/runtime/maintenance"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// What maintenance reports, see package [maintenance].
type (
	Snapshot       = maintenance.Snapshot
	Retention      = maintenance.Retention
	Pruned         = maintenance.Pruned
	StateInfo      = maintenance.StateInfo
	Migration      = maintenance.Migration
	Compacted      = maintenance.Compacted
	RepairReport   = maintenance.RepairReport
	RepairedBucket = maintenance.RepairedBucket
	RepairedRuns   = maintenance.RepairedRuns
)

// ErrDamaged is matched by the error of [Open] for a store that is damaged, and
// by those of reads that meet a damaged value. They carry an [*abi.Error] whose
// hint names the way out. Nothing of the store was changed.
var ErrDamaged = store.ErrDamaged

// ErrFormat is matched by the errors of [Open], [CheckStore], [CompactStore] and
// [Repair] for a store or state folder in a format that this program does not read.
// They carry an [*abi.Error] that names the version that wrote it. Nothing was
// changed.
var ErrFormat = store.ErrFormat

// StoreFormat is the format of the stores that this program writes.
const StoreFormat = store.Format

// Migration returns what [Open] changed in the store of an earlier format, nil if
// nothing.
func (rt *Runtime) Migration() *Migration { return rt.migration }

// An upkeep runs the maintenance of the store.
type upkeep struct {
	health    *health.Monitor
	snapshots *snapshots.Keeper // nil without a state folder
	pruner    *retention.Pruner
}

func (u *upkeep) start() {
	u.health.Look()
	u.health.Start()
	if u.snapshots != nil {
		u.snapshots.Start()
	}
}

// stop may be called before start.
func (u *upkeep) stop() {
	if u.health != nil {
		u.health.Stop()
	}
	if u.snapshots != nil {
		u.snapshots.Stop()
	}
}

// takeLastSnapshot takes a snapshot if the store has changed. Nothing writes to the
// store any more.
func (u *upkeep) takeLastSnapshot() {
	if u.snapshots != nil {
		u.snapshots.TakeLast(context.Background())
	}
}

// Snapshots lists the snapshots of a state folder, the newest first. Whether some
// process has the state open does not matter.
func Snapshots(dir string) ([]Snapshot, error) { return snapshots.List(dir) }

// openSnapshots creates the keeper of store snapshots in the state folder.
func (rt *Runtime) openSnapshots(db snapshots.Store) (*snapshots.Keeper, error) {
	return snapshots.Open(snapshots.Options{
		Dir: rt.opt.Dir, Store: db, Log: rt.opt.Logger, Every: rt.opt.SnapshotEvery, Keep: rt.opt.KeepSnapshots, MinFree: rt.opt.MinFree,
		Taken: rt.upkeep.health.SetSnapshot, Damaged: rt.upkeep.health.SetUnsound,
	})
}

// Snapshot takes a snapshot now. why is a word of lowercase letters; the newest of
// each are kept, see [Options.KeepSnapshots]. What changes the form of the store
// takes one before. A runtime without a state folder has none: unavailable.
func (rt *Runtime) Snapshot(ctx context.Context, why string) (Snapshot, error) {
	if rt.upkeep.snapshots == nil {
		return Snapshot{}, failure.New(abi.Unavailable, "take snapshot: the state is in memory only")
	}
	return rt.upkeep.snapshots.Take(ctx, why)
}

// Backup takes a store snapshot, calls fn with it, and removes it. Until fn has returned
// no run and no blob is removed, so all values that the snapshot refers to exist. Runs
// continue. Errors are those of [Runtime.Snapshot] and of fn.
func (rt *Runtime) Backup(ctx context.Context, fn func(Snapshot) error) error {
	release := rt.upkeep.pruner.Hold()
	defer release()
	if err := rt.upkeep.health.Writable(); err != nil {
		return fmt.Errorf("take snapshot: %w", err)
	}
	// Records that no caller waits for are written some milliseconds later, such as the start of a run.
	if err := rt.await(ctx, rt.db.Enqueue(store.Batch{})); err != nil {
		if full := rt.upkeep.health.Writable(); full != nil {
			err = fmt.Errorf("take snapshot: %w", full) // other than a record, no backup is held until there is room
		}
		return err
	}
	s, err := rt.Snapshot(ctx, snapshots.OfBackup)
	if err != nil {
		return err
	}
	return errors.Join(fn(s), os.Remove(s.Path))
}

// newPruner creates the pruner of finished runs.
func (rt *Runtime) newPruner() *retention.Pruner {
	return retention.New(retention.Options{
		Store:     rt.db,
		Layout:    retention.Layout{Runs: execution.BucketRuns, Results: execution.BucketResults, Spent: execution.BucketSpent, StartKeys: execution.BucketStartKeys, All: buckets},
		Executing: func(id sentinels.RunID) bool { return rt.exec.Live(id) },
		Digests:   rt.plugins.Digests,
		Await:     rt.await,
		TreeUsage: func(id sentinels.RunID) (sentinels.Usage, error) {
			info, _, err := rt.index.Stored(id)
			if err != nil {
				return sentinels.Usage{}, err
			}
			return rt.exec.TreeUsage(info), nil
		},
		SpentBelow: rt.exec.SpentBelow,
		Unindex: func(r retention.Run) []store.Put {
			return runindex.ForgetPuts(RunInfo{ID: r.ID, Sentinel: r.Sentinel, Parent: r.Parent, Status: r.Status})
		},
		Forget:        rt.index.Forget,
		SweepInterval: rt.opt.sweepInterval,
	})
}

// Prune removes what is kept of runs that have ended, beyond the bounds of keep:
// their journals, results, summaries and start keys, in commits of a few runs
// each. Then it removes blobs that nothing names, also those that a crash left.
//
// A run is removed with those below it, and only when all of these have ended.
// Below an active run only what ended before its newest iteration did is removed:
// its own replay may ask for the rest. What the runs cost stays counted.
//
// Prune waits for one that is under way. It may be called while runs start and
// end.
func (rt *Runtime) Prune(ctx context.Context, keep Retention) (Pruned, error) {
	return rt.upkeep.pruner.Prune(ctx, keep)
}

// InspectState describes a state folder without opening or changing anything,
// whether or not a process has it open. It takes half a second if one has.
func InspectState(dir string) (StateInfo, error) { return statefolder.Inspect(dir) }

// CheckChild starts a child of this program once and ends it: slow conditions
// need one. The code unavailable means that no child can be started.
func CheckChild(ctx context.Context, child Child) error {
	return cond.CheckChild(ctx, child.resolve())
}

// CheckStore reads the whole store in a state folder and reports damage as
// [ErrDamaged], without changing anything. It reads the file itself, without the
// database library, so that no content of the file can end the process. A store
// that a process has open is [ErrHeld], a folder without a store is sound.
//
// It takes one to two seconds a GB from the page cache, else the time to read the
// disk.
func CheckStore(dir string) error { return statefolder.Check(dir) }

// CheckSpace returns an error if the disk of a folder has so little free space that a runtime with
// [Options.MinFree] would be read-only. It returns nil where the free space is unknown.
func CheckSpace(dir string, minFree int64) error { return statefolder.CheckSpace(dir, minFree) }

// CompactStore copies the store of a state folder that no process has open to a
// file without free pages, which replaces it. Open does so by itself for a file
// of more than 64 MiB that is more than half empty.
func CompactStore(ctx context.Context, dir string) (Compacted, error) {
	return statefolder.Compact(ctx, dir)
}

// RepairOptions configure [Repair].
type RepairOptions struct {
	// Dir is the state folder. Required.
	Dir string
	// From is a snapshot to return to, even if the store is not damaged. Default:
	// the store is salvaged, and the newest sound snapshot replaces what is lost.
	From string
	// DryRun does everything but replace the store. Default false.
	DryRun bool
}

// Repair rebuilds the store of a state folder that no process has open, else the
// error is [ErrHeld] with the holder's id. The rules:
//
//   - What can be read of the damaged store counts. What is lost comes from the
//     newest sound snapshot, as it was when the snapshot was taken.
//   - A run's journal is entirely of one of the two, the one that reaches further,
//     from its first record on without a hole.
//   - A run that has not ended and may have lost records is paused: it would
//     repeat what these records say it has done. A person decides to resume it.
//   - A snapshot of another store that was in the folder is used only if
//     [RepairOptions.From] names it, or if the store's identity is unknown.
//   - The result is read whole before it replaces the damaged file, which is kept
//     beside it.
func Repair(ctx context.Context, opt RepairOptions) (RepairReport, error) {
	return repair.Run(ctx, repair.Options{
		Dir: opt.Dir, From: opt.From, DryRun: opt.DryRun,
		// The default, because the setting of the host is unknown here: with a smaller
		// number, revisions that were removed on purpose would be reported.
		KeepRevisions: Limits{}.WithDefaults().KeepRevisions,
		Check:         CheckStore,
		Layout: repair.Layout{
			Runs: execution.BucketRuns, Results: execution.BucketResults, RunIndex: runindex.Bucket, Definitions: definition.Bucket, Events: eventlog.Bucket,
			RevisionKey: definition.Key, Marker: repairMarker,
		},
	})
}

// repairMarker returns the event that marks a repair in the event log.
func repairMarker(offset uint64) (store.Put, error) {
	value, err := json.Marshal(sentinels.Event{ID: string(execution.NewRunID()), Name: "store:repaired", Time: time.Now().UTC()})
	return store.Put{Bucket: eventlog.Bucket, Key: eventlog.Key(offset), Value: value}, err
}

// CheckCache creates a folder for compiled plugins and reports whether it can be
// one: it is this user's, no other user can write to it, and this process can.
func CheckCache(dir string) error { return wasm.CheckCache(dir) }

// cacheUnused is how long compiled code is kept that no process loads. It cannot be
// configured: processes share the cache, so the shortest time would hold for all, and
// code that is missing is compiled again in seconds.
const cacheUnused = 30 * 24 * time.Hour

// tidyCache deletes compiled code of plugins that are not used any more. Its error
// is only logged: code that stays takes space and does no other harm.
func (rt *Runtime) tidyCache() {
	if err := rt.guests.Prune(cacheUnused); err != nil {
		rt.opt.Logger.Warn("compiled plugins that are used no more stay", "error", err)
	}
}
