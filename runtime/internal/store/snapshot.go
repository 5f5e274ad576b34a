package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
)

const (
	snapshotDir  = "snapshots"
	snapshotTime = "20060102T150405.000Z" // in names, UTC: they sort by time
)

// A Snapshot is a copy of the database file as one commit left it. Blobs are
// not copied: they are files of their own that never change.
type Snapshot struct {
	Path  string
	Taken time.Time
	Why   string // "hourly", or what was about to be done
	Bytes int64
}

// SnapshotOptions say how a snapshot is taken.
type SnapshotOptions struct {
	// Why is part of its name: a word of lowercase letters. Default "hourly".
	Why string
	// Keep is how many of the same Why stay, the new one included. Default 3.
	Keep int
	// Spare is how many bytes must be free on the disk when it is written.
	// Default 0.
	Spare int64
}

// Snapshot copies the committed state to the folder snapshots of the state
// folder, reads the copy whole, and removes those that are too old. Commits go
// on meanwhile, unless the file has to be mapped anew, which happens a few
// times in its life; pages that they free are not used again before the end.
//
// Without room it begins nothing and returns [ErrNoRoom]. A copy that turns out
// damaged is not kept, nor is an older one given up for it: that is a
// [*DamagedError] of the store itself.
func (db *DB) Snapshot(ctx context.Context, o SnapshotOptions) (s Snapshot, err error) {
	if o.Why == "" {
		o.Why = "hourly"
	}
	if o.Keep <= 0 {
		o.Keep = 3
	}
	dir := filepath.Join(db.path, snapshotDir)
	if _, err := makeDir(dir); err != nil {
		return s, fmt.Errorf("take snapshot: %w", err)
	}
	removeUnfinished(dir)
	s = Snapshot{Taken: time.Now().UTC().Truncate(time.Millisecond), Why: o.Why}
	s.Path = filepath.Join(dir, s.Taken.Format(snapshotTime)+"-"+o.Why+".db")
	// A read transaction keeps its pages from being used again, so they can be
	// copied one by one while commits go on.
	err = db.view(func(tx *bolt.Tx) error {
		s.Bytes = tx.Size()
		if disk, err := DiskOf(dir); err == nil && disk.Free < s.Bytes+o.Spare {
			return fmt.Errorf("%w: it takes %d bytes, %d are free and %d must stay so", ErrNoRoom, s.Bytes, disk.Free, o.Spare)
		}
		return writeFrom(ctx, s.Path+".tmp", tx)
	})
	if err != nil {
		return s, errors.Join(fmt.Errorf("take snapshot: %w", err), removeIfThere(s.Path+".tmp"))
	}
	// Before an older one goes: a damaged store makes damaged copies.
	found, err := InspectFile(s.Path + ".tmp")
	if err == nil {
		err = found.Err(filepath.Join(db.path, dbFile))
	}
	if err != nil {
		return s, errors.Join(fmt.Errorf("take snapshot: %w", err), removeIfThere(s.Path+".tmp"))
	}
	if err := os.Rename(s.Path+".tmp", s.Path); err != nil {
		return s, fmt.Errorf("take snapshot: %w", err)
	}
	if err := syncDir(dir); err != nil {
		return s, fmt.Errorf("take snapshot: %w", err)
	}
	return s, dropSnapshots(db.path, o.Why, o.Keep)
}

// writeFrom copies a transaction's state to a private file, synced.
func writeFrom(ctx context.Context, path string, tx *bolt.Tx) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = tx.WriteTo(writerUntil{ctx, f})
	if ctx.Err() != nil {
		err = context.Cause(ctx) // bbolt tells it in words only
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// writerUntil fails once its context has ended.
type writerUntil struct {
	ctx context.Context
	to  io.Writer
}

func (w writerUntil) Write(b []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	return w.to.Write(b)
}

// Snapshots lists the snapshots of a state folder, the newest first.
func Snapshots(path string) ([]Snapshot, error) {
	dir := filepath.Join(path, snapshotDir)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	var list []Snapshot
	for _, e := range entries {
		base, ok := strings.CutSuffix(e.Name(), ".db")
		stamp, why, cut := strings.Cut(base, "-")
		taken, err := time.Parse(snapshotTime, stamp)
		if !ok || !cut || err != nil {
			continue // not one of ours
		}
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue // gone meanwhile, or a link to who knows where
		}
		list = append(list, Snapshot{Path: filepath.Join(dir, e.Name()), Taken: taken, Why: why, Bytes: info.Size()})
	}
	slices.SortFunc(list, func(a, b Snapshot) int { return b.Taken.Compare(a.Taken) })
	return list, nil
}

// dropSnapshots removes all but the newest of a kind.
func dropSnapshots(path, why string, keep int) error {
	list, err := Snapshots(path)
	if err != nil {
		return err
	}
	for _, s := range list {
		if s.Why != why {
			continue
		}
		if keep--; keep < 0 {
			if err := removeIfThere(s.Path); err != nil {
				return fmt.Errorf("drop snapshot: %w", err)
			}
		}
	}
	return nil
}

// removeUnfinished removes what a crash left of a snapshot that was being taken.
func removeUnfinished(dir string) {
	left, err := filepath.Glob(filepath.Join(dir, "*.tmp"))
	if err != nil {
		return // only for a bad pattern
	}
	for _, path := range left {
		os.Remove(path) //nolint:errcheck // what stays is removed the next time
	}
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Made returns when the database file was made; zero if an early release made
// it, which did not note it.
func (db *DB) Made() time.Time { return db.made }
