package runtime

import (
	"context"
	"errors"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/maintenance/statefolder"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

const (
	snapshotEvery = time.Hour
	snapshotKeep  = 3
	snapshotLook  = time.Minute // between two looks whether one is due; also the first one's delay, so that a start does not pay for it
	snapshotClose = 16 << 20    // bytes up to which one that is due is taken by Close
)

// A Snapshot is a copy of the store as one commit left it, in the folder
// snapshots of the state folder.
type Snapshot struct {
	Path  string    `json:"path"`
	Taken time.Time `json:"taken"`
	Why   string    `json:"why"`   // "hourly", or what was about to be done
	Store string    `json:"store"` // tells the store that it is of from others that were in the folder
	Bytes int64     `json:"bytes"`
}

// Snapshots lists the snapshots of a state folder, the newest first. Whether
// some process has the state open does not matter.
func Snapshots(dir string) ([]Snapshot, error) {
	list, err := store.Snapshots(dir)
	out := make([]Snapshot, 0, len(list))
	for _, s := range list {
		out = append(out, Snapshot(s))
	}
	return out, err
}

// Snapshot takes a snapshot now. why is a word of lowercase letters; the newest
// three of each are kept. What changes the form of the store takes one before.
// A runtime without a state folder has none: unavailable.
func (rt *Runtime) Snapshot(ctx context.Context, why string) (Snapshot, error) {
	if rt.file == nil {
		return Snapshot{}, errf(abi.Unavailable, "take snapshot: the state is in memory only")
	}
	for _, c := range why {
		if c < 'a' || c > 'z' {
			return Snapshot{}, errf(abi.BadFields, "take snapshot %q: the reason is a word of lowercase letters", why)
		}
	}
	spare := int64(0)
	if d, err := store.DiskOf(rt.opt.Dir); err == nil && rt.opt.MinFree >= 0 {
		spare = statefolder.LowWater(d, rt.opt.MinFree) // it must not be what makes the runtime read-only
	}
	s, err := rt.file.Snapshot(ctx, store.SnapshotOptions{Why: why, Keep: snapshotKeep, MinFree: spare})
	var bad *store.DamagedError
	switch {
	case errors.As(err, &bad):
		err = statefolder.Error(rt.opt.Dir, bad)
		// It goes on as long as it can: what it writes may still be saved, and
		// stopping here would lose what is under way for certain.
		rt.health.mu.Lock()
		rt.health.unsound = abi.As(err)
		rt.health.mu.Unlock()
		rt.look()
		return Snapshot{}, err
	case errors.Is(err, store.ErrNoSpace):
		return Snapshot{}, &abi.Error{Code: abi.Unavailable, Message: err.Error(), Hint: statefolder.HintSpace}
	case err != nil:
		return Snapshot{}, err
	}
	rt.noteSnapshot(s.Taken)
	return Snapshot(s), nil
}

// noteSnapshot remembers the newest one for Health.
func (rt *Runtime) noteSnapshot(taken time.Time) {
	rt.health.mu.Lock()
	defer rt.health.mu.Unlock()
	rt.health.snapshot = taken
}

// snapshots decides when the next one is due.
type snapshots struct {
	every   time.Duration
	last    time.Time // of the newest one, or when the store was made
	commits uint64    // of this process when it was taken
	warned  time.Time // that there is no room
}

// openSnapshots finds out when the last one was taken, by whichever process:
// many short ones are to take one an hour together, and not one each.
func (rt *Runtime) openSnapshots() error {
	rt.snaps = snapshots{every: rt.opt.SnapshotEvery, last: rt.file.Created()}
	if rt.snaps.every == 0 {
		rt.snaps.every = snapshotEvery
	}
	list, err := store.Snapshots(rt.opt.Dir)
	if err != nil {
		return err
	}
	for _, s := range list {
		if s.Store == rt.file.ID() {
			rt.snaps.last = s.Taken
			rt.noteSnapshot(s.Taken)
			break
		}
	}
	return nil
}

// due reports whether something has changed for long enough. A clock that was
// set back makes one due early rather than never.
func (s *snapshots) due(now time.Time, commits uint64) bool {
	age := now.Sub(s.last)
	return s.every > 0 && commits != s.commits && (age >= s.every || age < 0)
}

// watchSnapshots takes a snapshot whenever one is due.
func (rt *Runtime) watchSnapshots() {
	defer rt.wg.Done()
	tick := time.NewTicker(min(snapshotLook, rt.snaps.every))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			rt.snapshotIfDue(rt.ctx, 0)
		case <-rt.ctx.Done():
			return
		}
	}
}

// snapshotIfDue takes one if it is due and the file has no more than most
// bytes, 0 for any. It is not safe for concurrent use: Close calls it when the
// goroutine has ended.
func (rt *Runtime) snapshotIfDue(ctx context.Context, most int64) {
	stats := rt.file.Stats()
	now := time.Now()
	if !rt.snaps.due(now, stats.Commits) || most > 0 && stats.FileBytes > most {
		return
	}
	s, err := rt.Snapshot(ctx, "hourly")
	switch {
	case ctx.Err() != nil:
		return
	// Tried again every minute, said once an hour.
	case abi.CodeOf(err) == abi.Unavailable && now.Sub(rt.snaps.warned) < rt.snaps.every:
		return // said before
	case err != nil:
		rt.snaps.warned = now
		rt.log.Warn("no snapshot of the store", "error", err)
		return
	}
	rt.snaps.last, rt.snaps.commits = s.Taken, stats.Commits
	rt.log.Debug("snapshot of the store", "path", s.Path, "bytes", s.Bytes, "took", time.Since(now))
}
