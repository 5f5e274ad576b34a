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
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/sentinel-runtime/sentinel/internal/regularfile"
)

const (
	snapshotDir  = "snapshots"
	snapshotTime = "20060102T150405.000Z" // UTC time in file names, which sort by time
)

// A Snapshot is a store snapshot: a copy of the database file after one commit.
// Blobs are not copied, because they are separate files that never change.
type Snapshot struct {
	Path  string
	Taken time.Time
	Why   string // "hourly", or the operation that it precedes
	Store string // ID of the store
	Bytes int64
}

// SnapshotOptions configure [DB.Snapshot].
type SnapshotOptions struct {
	// Why is a part of the file name: a word of lowercase letters. Default
	// "hourly".
	Why string
	// Keep is how many snapshots with the same Why of the same store are kept,
	// including the new one. Those of other stores are never removed. Default
	// 3.
	Keep int
	// MinFree is how many bytes must remain free on the disk. Default 0.
	MinFree int64
}

// Snapshot copies the committed state to the folder snapshots in the state
// folder, inspects the copy, and removes old snapshots. Commits continue
// meanwhile, except when bbolt has to map the file again, which happens a few
// times in its life. Pages that these commits free are not reused until the
// copy is finished.
//
// If there is too little free space, Snapshot starts nothing and returns
// [ErrNoSpace]. If the copy is damaged then so is the store: Snapshot returns a
// [*DamagedError] for the store, deletes the copy and keeps the old snapshots.
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
	s = Snapshot{Taken: time.Now().UTC().Truncate(time.Millisecond), Why: o.Why, Store: db.id}
	for { // another one may have been taken within the same millisecond
		s.Path = filepath.Join(dir, s.Taken.Format(snapshotTime)+"-"+o.Why+"-"+db.id+".db")
		if _, err := os.Lstat(s.Path); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return s, fmt.Errorf("take snapshot: %w", err)
		}
		s.Taken = s.Taken.Add(time.Millisecond)
	}
	// A read transaction keeps its pages from being reused, so they can be
	// copied while commits continue.
	err = db.view(func(tx *bolt.Tx) error {
		s.Bytes = tx.Size()
		if disk, err := DiskOf(dir); err == nil && disk.Free < s.Bytes+o.MinFree {
			return fmt.Errorf("%w: the snapshot needs %d bytes, %d are free and %d must remain free", ErrNoSpace, s.Bytes, disk.Free, o.MinFree)
		}
		return copyTx(ctx, s.Path+".tmp", tx)
	})
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.EIO) {
		if bad := db.examine(); bad != nil {
			err = bad // the file is shorter than it was, or the disk cannot read it
		}
	}
	if err != nil {
		return s, errors.Join(fmt.Errorf("take snapshot: %w", err), removeIfExists(s.Path+".tmp"))
	}
	// Inspect before an older one is removed: a damaged store has damaged
	// copies.
	found, err := InspectFile(s.Path + ".tmp")
	if err == nil {
		err = found.Err(filepath.Join(db.path, dbFile))
	}
	if err != nil {
		return s, errors.Join(fmt.Errorf("take snapshot: %w", err), removeIfExists(s.Path+".tmp"))
	}
	if err := os.Rename(s.Path+".tmp", s.Path); err != nil {
		return s, fmt.Errorf("take snapshot: %w", err)
	}
	if err := syncDir(dir); err != nil {
		return s, fmt.Errorf("take snapshot: %w", err)
	}
	return s, db.removeOldSnapshots(o.Why, o.Keep)
}

// copyTx copies the state of a transaction to a private file and syncs it.
func copyTx(ctx context.Context, path string, tx *bolt.Tx) error {
	f, err := regularfile.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = tx.WriteTo(contextWriter{ctx, f})
	if ctx.Err() != nil {
		err = context.Cause(ctx) // bbolt does not wrap the error
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// contextWriter fails once its context has ended.
type contextWriter struct {
	ctx context.Context
	to  io.Writer
}

func (w contextWriter) Write(b []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	return w.to.Write(b)
}

// Snapshots lists the store snapshots of a state folder, newest first.
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
		parts := strings.Split(base, "-")
		if !ok || len(parts) != 3 {
			continue // not a store snapshot
		}
		taken, err := time.Parse(snapshotTime, parts[0])
		if err != nil {
			continue
		}
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue // removed meanwhile, or a symbolic link
		}
		list = append(list, Snapshot{Path: filepath.Join(dir, e.Name()), Taken: taken, Why: parts[1], Store: parts[2], Bytes: info.Size()})
	}
	slices.SortFunc(list, func(a, b Snapshot) int { return b.Taken.Compare(a.Taken) })
	return list, nil
}

// removeOldSnapshots removes all but the newest snapshots of one kind of this
// store. Those of another store may be all that is left of it.
func (db *DB) removeOldSnapshots(why string, keep int) error {
	list, err := Snapshots(db.path)
	if err != nil {
		return err
	}
	for _, s := range list {
		if s.Why != why || s.Store != db.id {
			continue
		}
		if keep--; keep < 0 {
			if err := removeIfExists(s.Path); err != nil {
				return fmt.Errorf("drop snapshot: %w", err)
			}
		}
	}
	return nil
}

// removeUnfinished removes snapshots that a crash left unfinished.
func removeUnfinished(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // without a folder there is nothing to remove
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".tmp" {
			os.Remove(filepath.Join(dir, e.Name())) //nolint:errcheck // retried by the next snapshot
		}
	}
}

func removeIfExists(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
