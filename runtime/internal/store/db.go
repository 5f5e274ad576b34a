package store

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
	"sync/atomic"
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

// Options configure [Open]. The zero value is suitable for production.
type Options struct {
	// LockTimeout is how long Open waits for another process to release the
	// store. Default 500 ms, at most 1 s.
	LockTimeout time.Duration
	// MaxBytes caps the size of the database file in bytes. A commit that would
	// exceed it stalls as on a full disk until the store is opened with a
	// larger cap. Trims do not help: they queue behind the stalled commit, and
	// the file never shrinks. Default 0, no cap.
	MaxBytes int
	// CloseGrace is how long Close keeps retrying failing commits. Default 2 s.
	CloseGrace time.Duration
	// CompactAbove is the size in bytes from which Open compacts a file that is
	// more than half empty. Default 64 MiB; negative disables it.
	CompactAbove int64
	// Version names this program in a store that it creates or migrates. Default
	// "devel".
	Version string
	// Logger logs what Open does besides opening. Default discards.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.LockTimeout <= 0 {
		o.LockTimeout = 500 * time.Millisecond
	}
	o.LockTimeout = min(o.LockTimeout, time.Second)
	if o.CloseGrace <= 0 {
		o.CloseGrace = 2 * time.Second
	}
	if o.CompactAbove == 0 {
		o.CompactAbove = 64 << 20
	}
	if o.Version == "" {
		o.Version = "devel"
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
	bolt        openFile
	file        *os.File    // the database file
	head        io.ReaderAt // its meta pages
	unmapHead   func() error
	path        string // the state folder
	page        int64  // size of a page in bytes
	flag        string
	flagPending bool // owned by the writer: the disk was too full to write the flag file
	unclean     bool
	id          string            // random identity of the store
	created     time.Time         // when the store was created
	format      int               // of the store
	migration   *Migration        // by Open, nil if there was none
	lastSeqs    map[runKey]uint64 // owned by the writer: newest sequence numbers
	pending     uint64            // number of the commit under way, 0 for none
	commits     uint64            // number of the newest commit in the file
	valueBuf    []byte            // owned by the writer: values of the commit under way

	damaged  atomic.Pointer[ValueError] // the first damaged value that was read
	broken   atomic.Pointer[broken]     // set when bbolt met damage
	newest   atomic.Uint64              // transaction number of the newest commit
	commitMu sync.Mutex                 // held by a commit, and while the file is examined
	log      *slog.Logger

	afterCommit func() error // set by tests: an error makes a successful commit look failed
	closeErr    error
	closeDone   chan struct{} // closed when Close has finished
}

// Open opens the store in the state folder path, or creates it. Its file is
// path/store.db. While the store is open, path/store.open has the process id of
// the owner. If that file exists already, the last owner did not close the
// store, see [DB.Unclean]. Open reads the whole database file as [Inspect] does
// before bbolt sees it.
//
// If another process has the store open, Open returns a [*HeldError] after
// LockTimeout. If the file is damaged it returns a [*DamagedError]. A missing
// or empty file is damage too if other files of an earlier store exist. A store or
// state folder of a newer format is a [*FormatError]. One of an older format is
// migrated after a store snapshot, see [DB.Migration]; if that fails the error is a
// [*MigrationError].
//
// If ctx ends while Open reads or compacts the file, the error is its cause, and the file is unchanged.
//
// Open works on a full disk, except for creating or migrating a store. Commits then fail
// until there is free space, see [DB.Health].
func Open(ctx context.Context, path string, o Options) (*DB, error) {
	o = o.withDefaults()
	path = filepath.Clean(path)
	if err := makeDirs(path); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if err := checkBeforeOpen(ctx, path, o); err != nil {
		return nil, err
	}
	file := filepath.Join(path, dbFile)
	b, err := openBolt(file, o)
	if err == nil && o.CompactAbove > 0 && shouldCompact(b.DB, file, o.CompactAbove) {
		b, err = compactAndReopen(ctx, b, file, o)
	}
	flag := filepath.Join(path, flagFile)
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, newHeldError(file, flag)
	}
	if err != nil {
		return nil, fmt.Errorf("open store %q: %w", file, err)
	}
	db := &DB{bolt: b, file: b.file, log: o.Logger, path: path, page: int64(b.Info().PageSize), flag: flag, lastSeqs: map[runKey]uint64{}, closeDone: make(chan struct{})}
	b.log.examine = db.examineInCommit
	if db.head, db.unmapHead, err = mapHead(b.file, 2*int(db.page)); err != nil {
		return nil, errors.Join(fmt.Errorf("open store %q: %w", file, err), b.Close())
	}
	if err := db.initialize(path, o); err != nil {
		return nil, errors.Join(fmt.Errorf("open store %q: %w", file, err), db.closeFile())
	}
	db.writer = startWriter(o.CloseGrace, db.commit)
	db.blobs.stats = &db.writer.stats
	return db, nil
}

// initialize does what needs the lock: tables, migration, blob folder, flag file. It
// writes to the database file only what is missing, so that a store opens on a
// full disk.
func (db *DB) initialize(path string, o Options) error {
	err := db.try(db.examine, func() error { return db.bolt.View(db.loadMetadata) })
	if errors.Is(err, errNoTables) {
		if err := checkNoLeftovers(path, "the file has no tables"); err != nil {
			return err
		}
		err = db.try(db.examine, func() error { return db.bolt.Update(func(tx *bolt.Tx) error { return db.createTables(tx, o.Version) }) })
	}
	if errors.As(err, new(*ValueError)) {
		return &DamagedError{Path: filepath.Join(path, dbFile), Count: 1, Places: []string{err.Error()}}
	}
	if err != nil {
		return err
	}
	if err := db.migrate(o); err != nil {
		return err
	}
	if err := db.finishFormat(o); err != nil {
		return err
	}
	// Create the blob folder and the flag file after the tables are durable:
	// see checkNoLeftovers.
	if db.blobs, err = openBlobs(filepath.Join(path, blobDir)); err != nil {
		return err
	}
	db.unclean = flagExists(db.flag)
	db.flagPending, err = writeFlag(db.flag, db.unclean)
	return err
}

// errNoTables means that a file has no tables yet.
var errNoTables = errors.New("new database")

// loadMetadata reads the store's metadata.
func (db *DB) loadMetadata(tx *bolt.Tx) error {
	db.newest.Store(uint64(tx.ID()))
	metadata := tx.Bucket([]byte(storeBucket))
	if metadata == nil || tx.Bucket([]byte(journalBucket)) == nil {
		return errNoTables
	}
	created, err := db.readMetadata(metadata, createdKey)
	if err != nil {
		return err
	}
	db.created = time.Unix(int64(created), 0)
	id, err := db.readMetadata(metadata, idKey)
	if err != nil {
		return err
	}
	db.id = idText(id)
	if db.commits, err = db.readMetadata(metadata, commitKey); err != nil {
		return err
	}
	return db.loadFormat(metadata)
}

// createTables creates the tables that every store has, and writes its
// metadata.
func (db *DB) createTables(tx *bolt.Tx, version string) error {
	if _, err := tx.CreateBucketIfNotExists([]byte(journalBucket)); err != nil {
		return err
	}
	metadata, err := tx.CreateBucketIfNotExists([]byte(storeBucket))
	if err != nil {
		return err
	}
	id := newID()
	db.id, db.created = idText(id), time.Now()
	if err := db.putMetadata(metadata, idKey, id); err != nil {
		return err
	}
	db.format = Format
	if err := db.putFormat(metadata, Format, version); err != nil {
		return err
	}
	return db.putMetadata(metadata, createdKey, uint64(db.created.Unix()))
}

// newID returns a random identity for a new store.
func newID() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never returns an error
	return binary.BigEndian.Uint64(b[:])
}

// idText formats an identity as in the file names of store snapshots.
func idText(id uint64) string { return fmt.Sprintf("%016x", id) }

// ID returns the identity of the store, 16 hexadecimal digits. It survives
// repairs, compaction and copies of the file.
func (db *DB) ID() string { return db.id }

// Created returns when the store was created, in whole seconds.
func (db *DB) Created() time.Time { return db.created }

// Unclean reports whether the store's last owner ended without closing it.
func (db *DB) Unclean() bool { return db.unclean }

// Stats implements [Store].
func (db *DB) Stats() Stats {
	s := db.writer.Stats()
	if !db.isClosed() {
		s.FileBytes, s.FreeBytes = fileStats(db.bolt.DB, filepath.Join(db.path, dbFile), db.page)
	}
	return s
}

// Close implements [Store].
func (db *DB) Close() error {
	if !db.stop() {
		<-db.closeDone
		return db.closeErr
	}
	defer close(db.closeDone)
	db.blobs.close()
	// Remove the flag file while this process has the lock: later it could be
	// the flag of the next owner. All commits are synced, so the shutdown is
	// clean from here on. If batches were given up the flag stays.
	if db.Health() == nil {
		db.closeErr = removeFlag(db.flag)
	} else {
		db.closeErr = fmt.Errorf("close store: %w", db.Health())
	}
	if err := db.closeFile(); err != nil {
		db.closeErr = errors.Join(db.closeErr, fmt.Errorf("close store: %w", err))
	}
	return db.closeErr
}

// closeFile closes the database file. A read that has not begun its transaction
// may meet the removed map: it finds the file closed.
func (db *DB) closeFile() error { return errors.Join(db.bolt.Close(), db.unmapHead()) }

var _ Store = (*DB)(nil)
