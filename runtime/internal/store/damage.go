package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
)

// Open reads the whole file, so bbolt opens sound files only. Damage that comes
// later, from a disk or from another program, is met by bbolt: it maps the file
// and follows what a page says. It panics, or reads outside of the map, which is
// a signal. So everything that reads the map runs in [guard]. If a panic is
// explained by damage in the file, the store can be read on, as far as that
// goes, and not be written any more: a commit would copy from damaged pages, and
// free pages that belong to others.

// guard runs fn and returns its panic as fault. On its goroutine a signal is a
// panic too.
func guard(fn func() error) (fault any, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { fault = recover() }()
	return nil, fn()
}

// explain returns the damage in a file that explains a panic of bbolt. If there
// is none, the panic is a mistake of this program and goes on.
func explain(fault any, file string) error {
	found, err := InspectFile(file)
	if err == nil {
		err = found.Err(file)
	}
	if err == nil {
		panic(fault)
	}
	return err
}

// A broken store has met damage.
type broken struct {
	err   *DamagedError
	since time.Time
}

// try runs fn, which reads the mapped file. If the file is damaged so that bbolt
// cannot read it, try returns the [*DamagedError] of examine.
func (db *DB) try(examine func() error, fn func() error) error {
	fault, err := guard(db.checkHead)
	if fault != nil || err != nil {
		if bad := examine(); bad != nil {
			return bad
		}
		// Commits wrote both meta pages while they were read.
	}
	if fault, err = guard(fn); fault == nil {
		return err
	}
	if bad := examine(); bad != nil {
		return bad
	}
	panic(fault) // damage does not explain it: a mistake of this program
}

// checkHead checks what bbolt cannot survive. If both meta pages are damaged it
// panics with locks that are never released, and if the newest is damaged it
// continues with the commit before, without notice. Then a commit would undo the
// newest.
func (db *DB) checkHead() error {
	newest := db.newest.Load() // before the read: a commit may be under way
	p, err := openPages(db.head, math.MaxInt64)
	if err == nil && p.meta.txid < newest {
		err = errNewestMissing
	}
	return err
}

var errNewestMissing = errors.New("the meta page of the newest commit is damaged")

// examine looks for damage in the file while no commit runs, and returns it as a
// [*DamagedError].
func (db *DB) examine() error {
	if b := db.broken.Load(); b != nil {
		return b.err // also while a commit looks for damage
	}
	db.commitMu.Lock()
	defer db.commitMu.Unlock()
	return db.examineInCommit()
}

// examineInCommit does the same for the caller that has commitMu.
func (db *DB) examineInCommit() error {
	if b := db.broken.Load(); b != nil {
		return b.err
	}
	found, err := inspectStore(context.Background(), db.path, db.file)
	if errors.Is(err, os.ErrClosed) {
		return ErrClosed
	}
	if err != nil {
		return err
	}
	if found.txid < db.newest.Load() {
		found.note(errNewestMissing.Error())
	}
	var bad *DamagedError
	if !errors.As(found.Err(db.file.Name()), &bad) {
		return nil
	}
	db.broken.Store(&broken{bad, time.Now()})
	db.log.Error("the store is damaged; nothing is written to it any more", "error", bad)
	return bad
}

// Health returns nil while commits work, else a [*StalledError].
func (db *DB) Health() error {
	err := db.writer.Health()
	if b := db.broken.Load(); b != nil && err == nil {
		return &StalledError{Since: b.since, Err: b.err}
	}
	return err
}

// A boltLog is the logger of bbolt. bbolt logs why a commit fails before it rolls
// back, and the rollback reads all pages on a goroutine whose panic ends the
// process. So the pages are read here before: if they are damaged, a panic leaves
// the commit.
type boltLog struct {
	*bolt.DefaultLogger
	inCommit atomic.Bool
	examine  func() error
}

func newBoltLog() *boltLog {
	return &boltLog{DefaultLogger: &bolt.DefaultLogger{Logger: log.New(io.Discard, "", 0)}}
}

// Errorf implements [bolt.Logger]. The first error of a commit counts.
func (l *boltLog) Errorf(string, ...any) {
	if !l.inCommit.CompareAndSwap(true, false) {
		return
	}
	if err := l.examine(); err != nil {
		panic(fmt.Errorf("commit: %w", err))
	}
}
