package snapshots

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/maintenance/statefolder"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/maintenance"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

const (
	defaultEvery = time.Hour
	defaultKeep  = 3
	lookInterval = time.Minute // between two looks whether one is due; also the delay of the first, which must not slow the start
	maxLastBytes = 16 << 20    // size of the store up to which TakeLast takes one
	hourly       = "hourly"    // reason of those that are due
)

// Options configure a [Keeper]. All but Every, Keep and MinFree are required.
type Options struct {
	Dir   string // the state folder
	Store Store
	Log   *slog.Logger
	// Every is the age of the newest snapshot from which one is due. Default one
	// hour; negative never.
	Every time.Duration
	// Keep is how many snapshots of each reason are kept. Default 3.
	Keep int
	// MinFree is how many bytes of the disk stay free, see [statefolder.LowWater]:
	// a snapshot must not make the engine read-only.
	MinFree int64
	// Taken is called with the time of the newest snapshot, first by Open.
	Taken func(time.Time)
	// Damaged is called if a snapshot shows that the store is damaged.
	Damaged func(*abi.Error)
}

// Store is what a keeper needs of the store; [store.DB] implements it.
type Store interface {
	Snapshot(ctx context.Context, o store.SnapshotOptions) (store.Snapshot, error)
	Stats() store.Stats
	ID() string
	Created() time.Time
}

// A Keeper takes the snapshots of one store.
//
// # Concurrency
//
// Take is safe for concurrent use. Start, Stop and TakeLast are called one after
// the other.
type Keeper struct {
	opt  Options
	stop context.CancelFunc // nil before Start
	wg   sync.WaitGroup

	// Owned by the goroutine of Start while it executes.
	last    time.Time // of the newest snapshot that was due, or when the store was created
	commits uint64    // of this process when it was taken
	warned  time.Time // when the log last said that none can be taken
}

// List returns the snapshots of a state folder, newest first. A process may have
// the state open.
func List(dir string) ([]maintenance.Snapshot, error) {
	list, err := store.Snapshots(dir)
	out := make([]maintenance.Snapshot, 0, len(list))
	for _, s := range list {
		out = append(out, maintenance.Snapshot(s))
	}
	return out, err
}

// OfBackup is why the snapshot of a backup is taken, which its process removes at the end of the backup.
const OfBackup = "backup"

// Open returns a keeper that knows when the newest snapshot was taken, by whichever
// process: many short processes take one an hour together, and not one each. Snapshots of
// backups that ended with their process are removed.
func Open(opt Options) (*Keeper, error) {
	if opt.Every == 0 {
		opt.Every = defaultEvery
	}
	if opt.Keep <= 0 {
		opt.Keep = defaultKeep
	}
	k := &Keeper{opt: opt, last: opt.Store.Created()}
	list, err := store.Snapshots(opt.Dir)
	if err != nil {
		return nil, err
	}
	for _, s := range list {
		if s.Store == opt.Store.ID() && s.Why == OfBackup {
			if err := os.Remove(s.Path); err != nil {
				opt.Log.Warn("the snapshot of a backup that was interrupted cannot be removed", "file", s.Path, "error", err)
			}
			continue
		}
		if s.Store == opt.Store.ID() {
			k.last = s.Taken
			opt.Taken(s.Taken)
			break
		}
	}
	return k, nil
}

// Start takes snapshots when they are due, until Stop. It must be called once.
func (k *Keeper) Start() {
	if k.opt.Every < 0 {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	k.stop = cancel
	k.wg.Go(func() { k.watch(ctx) })
}

// Stop ends a snapshot under way that was due, and returns after the goroutine has
// ended. It may be called more than once, and before Start.
func (k *Keeper) Stop() {
	if k.stop != nil {
		k.stop()
	}
	k.wg.Wait()
}

func (k *Keeper) watch(ctx context.Context) {
	tick := time.NewTicker(min(lookInterval, k.opt.Every))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			k.takeIfDue(ctx, 0)
		case <-ctx.Done():
			return
		}
	}
}

// TakeLast takes a snapshot if one is due and the store is small, so that a process
// that lives shorter than the interval leaves one too. It is called after Stop.
func (k *Keeper) TakeLast(ctx context.Context) { k.takeIfDue(ctx, maxLastBytes) }

// Take takes a snapshot. why is a word of lowercase letters; the newest of each are
// kept. If there is too little space, the error has the code unavailable;
// if the store is damaged, it matches [store.ErrDamaged].
func (k *Keeper) Take(ctx context.Context, why string) (maintenance.Snapshot, error) {
	for _, c := range why {
		if c < 'a' || c > 'z' {
			return maintenance.Snapshot{}, &abi.Error{Code: abi.BadFields, Message: fmt.Sprintf("take snapshot %q: the reason is a word of lowercase letters", why)}
		}
	}
	spare := int64(0)
	if d, err := store.DiskOf(k.opt.Dir); err == nil {
		spare = statefolder.LowWater(d, k.opt.MinFree)
	}
	s, err := k.opt.Store.Snapshot(ctx, store.SnapshotOptions{Why: why, Keep: k.opt.Keep, MinFree: spare})
	var bad *store.DamagedError
	switch {
	case errors.As(err, &bad):
		err = statefolder.Error(k.opt.Dir, bad)
		// The engine continues: what it writes may still be salvaged, and an end
		// here would lose what is under way.
		k.opt.Damaged(abi.As(err))
		return maintenance.Snapshot{}, err
	case errors.Is(err, store.ErrNoSpace):
		return maintenance.Snapshot{}, &abi.Error{Code: abi.Unavailable, Message: err.Error(), Hint: statefolder.HintSpace}
	case err != nil:
		return maintenance.Snapshot{}, err
	}
	k.opt.Taken(s.Taken)
	return maintenance.Snapshot(s), nil
}

// due reports whether the store has changed and the newest snapshot is old enough.
// A clock that was set back makes one due early rather than never.
func (k *Keeper) due(now time.Time, commits uint64) bool {
	age := now.Sub(k.last)
	return k.opt.Every > 0 && commits != k.commits && (age >= k.opt.Every || age < 0)
}

// takeIfDue takes a snapshot if one is due and the store has no more than most
// bytes, 0 for any.
func (k *Keeper) takeIfDue(ctx context.Context, most int64) {
	stats := k.opt.Store.Stats()
	now := time.Now()
	if !k.due(now, stats.Commits) || most > 0 && stats.FileBytes > most {
		return
	}
	s, err := k.Take(ctx, hourly)
	switch {
	case ctx.Err() != nil:
		return
	// Repeated every minute, logged once an interval.
	case abi.CodeOf(err) == abi.Unavailable && now.Sub(k.warned) < k.opt.Every:
		return
	case err != nil:
		k.warned = now
		k.opt.Log.Warn("no snapshot of the store", "error", err)
		return
	}
	k.last, k.commits = s.Taken, stats.Commits
	k.opt.Log.Debug("snapshot of the store", "path", s.Path, "bytes", s.Bytes, "took", time.Since(now))
}
