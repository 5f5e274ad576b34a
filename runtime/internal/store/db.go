package store

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// Names in the state folder.
const (
	dbFile   = "store.db"
	flagFile = "store.open"
	blobDir  = "blobs"
)

// Options are the knobs of [Open]; the zero value is right for production.
type Options struct {
	// HeldTimeout is how long Open waits for another process to let go.
	// Default 500 ms, at most 1 s.
	HeldTimeout time.Duration
	// MaxBytes caps the size of the database file; a commit that would pass it
	// stalls as on a full disk, until the store is opened with a larger cap:
	// trims wait behind it, and the file never shrinks. Default 0, no cap.
	MaxBytes int
	// CloseGrace is how long Close goes on trying when commits fail.
	// Default 2 s.
	CloseGrace time.Duration
}

// DB is the [Store] of a state folder: a bbolt file and a folder of blobs.
type DB struct {
	*writer
	*blobs
	bolt    *bolt.DB
	flag    string
	unclean bool
	last    map[runKey]uint64 // the writer's alone: newest records of active runs
	pending uint64            // number of the commit being tried, 0 for none
	commits uint64            // number of the newest commit in the file

	afterCommit func() error // test door: an error makes a commit that worked look failed
	closeErr    error
	through     chan struct{} // closed when Close is
}

// Open opens or makes the store in the state folder path; path/store.db is its
// file. While it is open path/store.open holds the process id; if that file
// was there before, the last owner did not close, see [DB.Unclean].
//
// A store that another process has open is a [*HeldError] after HeldTimeout.
func Open(path string, o Options) (*DB, error) {
	if o.HeldTimeout <= 0 {
		o.HeldTimeout = 500 * time.Millisecond
	}
	if o.CloseGrace <= 0 {
		o.CloseGrace = 2 * time.Second
	}
	if err := makeDirs(filepath.Clean(path)); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	file := filepath.Join(path, dbFile)
	b, err := bolt.Open(file, 0o600, &bolt.Options{
		Timeout:        min(o.HeldTimeout, time.Second),
		NoFreelistSync: true,
		FreelistType:   bolt.FreelistMapType,
		MaxSize:        o.MaxBytes,
		NoStatistics:   true,
	})
	flag := filepath.Join(path, flagFile)
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, heldBy(file, flag)
	}
	if err != nil {
		return nil, fmt.Errorf("open store %q: %w", file, err)
	}
	db := &DB{bolt: b, flag: flag, last: map[runKey]uint64{}, through: make(chan struct{})}
	if err := db.prepare(path); err != nil {
		return nil, errors.Join(fmt.Errorf("open store %q: %w", file, err), b.Close())
	}
	db.writer = startWriter(o.CloseGrace, db.commit)
	db.blobs.stats = &db.writer.stats
	return db, nil
}

// prepare does what needs the lock: the buckets, the flag, the blob folder.
func (db *DB) prepare(path string) (err error) {
	err = db.bolt.Update(func(tx *bolt.Tx) error {
		if _, err := tx.CreateBucketIfNotExists([]byte(journalBucket)); err != nil {
			return err
		}
		b, err := tx.CreateBucketIfNotExists([]byte(storeBucket))
		if err != nil {
			return err
		}
		db.commits = readCommit(b)
		return nil
	})
	if err != nil {
		return err
	}
	if db.blobs, err = openBlobs(filepath.Join(path, blobDir)); err != nil {
		return err
	}
	db.unclean, err = raiseFlag(db.flag)
	return err
}

// Unclean reports whether the store's last owner ended without closing it.
func (db *DB) Unclean() bool { return db.unclean }

// Close implements [Store].
func (db *DB) Close() error {
	if !db.shut() {
		<-db.through
		return db.closeErr
	}
	defer close(db.through)
	db.blobs.close()
	// The flag falls while the lock is still held, else it could be that of
	// the next owner. All commits are synced, so what is left to do is clean.
	// Batches that were given up keep it up.
	if db.Health() == nil {
		db.closeErr = lowerFlag(db.flag)
	} else {
		db.closeErr = fmt.Errorf("close store: %w", db.Health())
	}
	if err := db.bolt.Close(); err != nil {
		db.closeErr = errors.Join(db.closeErr, fmt.Errorf("close store: %w", err))
	}
	return db.closeErr
}

var _ Store = (*DB)(nil)
