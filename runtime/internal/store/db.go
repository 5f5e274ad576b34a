package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
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
	// Check looks at the store in the state folder once more after an unclean
	// end, when [Inspect] has found nothing: with [Verify], in a process that
	// may die of it. An error that is a [DamagedError] keeps the store closed;
	// any other is logged, because a check that could not be made says nothing.
	// Default: no second look.
	Check func(path string) error
	// CompactAbove is the size in bytes from which a file that is more than
	// half empty is copied when it is opened; the copy takes its place.
	// Default 64 MiB; negative never.
	CompactAbove int64
	// Logger takes what Open did besides opening. Default discards.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.HeldTimeout <= 0 {
		o.HeldTimeout = 500 * time.Millisecond
	}
	o.HeldTimeout = min(o.HeldTimeout, time.Second)
	if o.CloseGrace <= 0 {
		o.CloseGrace = 2 * time.Second
	}
	if o.CompactAbove == 0 {
		o.CompactAbove = 64 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// DB is the [Store] of a state folder: a bbolt file and a folder of blobs.
type DB struct {
	*writer
	*blobs
	bolt    *bolt.DB
	path    string // the state folder
	page    int64  // bytes of a page
	flag    string
	unclean bool
	made    time.Time         // when the file was, zero if an early release made it
	last    map[runKey]uint64 // the writer's alone: newest records of active runs
	pending uint64            // number of the commit being tried, 0 for none
	commits uint64            // number of the newest commit in the file

	afterCommit func() error // test door: an error makes a commit that worked look failed
	closeErr    error
	through     chan struct{} // closed when Close is
}

// Open opens or makes the store in the state folder path; path/store.db is its
// file. While it is open path/store.open holds the process id; if that file
// was there before, the last owner did not close, see [DB.Unclean], and the
// file is read whole by [Inspect] before bbolt sees it.
//
// A store that another process has open is a [*HeldError] after HeldTimeout, a
// damaged one a [*DamagedError].
func Open(path string, o Options) (*DB, error) {
	o = o.withDefaults()
	path = filepath.Clean(path)
	if err := makeDirs(path); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if err := checkBefore(path, o); err != nil {
		return nil, err
	}
	file := filepath.Join(path, dbFile)
	b, err := openBolt(file, o)
	if err == nil && o.CompactAbove > 0 && wasteful(b, file, o.CompactAbove) {
		b, err = compactOpen(b, file, o)
	}
	flag := filepath.Join(path, flagFile)
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, heldBy(file, flag)
	}
	if err != nil {
		return nil, fmt.Errorf("open store %q: %w", file, err)
	}
	db := &DB{bolt: b, path: path, page: int64(b.Info().PageSize), flag: flag, last: map[runKey]uint64{}, through: make(chan struct{})}
	if err := db.prepare(path); err != nil {
		return nil, errors.Join(fmt.Errorf("open store %q: %w", file, err), b.Close())
	}
	db.writer = startWriter(o.CloseGrace, db.commit)
	db.blobs.stats = &db.writer.stats
	return db, nil
}

// prepare does what needs the lock: the buckets, the flag, the blob folder. It
// writes to the file only what is missing: a store opens on a full disk too.
func (db *DB) prepare(path string) error {
	var err error
	if err := db.bolt.View(db.recall); errors.Is(err, errUnmade) {
		if err := db.bolt.Update(db.create); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	if db.blobs, err = openBlobs(filepath.Join(path, blobDir)); err != nil {
		return err
	}
	db.unclean, err = raiseFlag(db.flag)
	return err
}

// errUnmade says that a file has no buckets yet.
var errUnmade = errors.New("new database")

// recall reads what the store keeps for itself.
func (db *DB) recall(tx *bolt.Tx) error {
	own := tx.Bucket([]byte(storeBucket))
	if own == nil || tx.Bucket([]byte(journalBucket)) == nil {
		return errUnmade
	}
	db.commits = readCommit(own)
	if v := own.Get(madeKey); len(v) == 8 {
		db.made = time.Unix(int64(binary.BigEndian.Uint64(v)), 0)
	}
	return nil
}

// create makes the buckets that every store has.
func (db *DB) create(tx *bolt.Tx) error {
	if _, err := tx.CreateBucketIfNotExists([]byte(journalBucket)); err != nil {
		return err
	}
	own, err := tx.CreateBucketIfNotExists([]byte(storeBucket))
	if err != nil {
		return err
	}
	db.commits, db.made = readCommit(own), time.Now()
	return own.Put(madeKey, binary.BigEndian.AppendUint64(nil, uint64(db.made.Unix())))
}

// Unclean reports whether the store's last owner ended without closing it.
func (db *DB) Unclean() bool { return db.unclean }

// Stats implements [Store].
func (db *DB) Stats() Stats {
	s := db.writer.Stats()
	if !db.isClosed() {
		s.FileBytes, s.FreeBytes = fileStats(db.bolt, filepath.Join(db.path, dbFile), db.page)
	}
	return s
}

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
