package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// Verify reads the whole database file in the state folder path and reports
// what is damaged, without changing anything. A folder without one is sound.
//
// bbolt trusts its file: damage can end the process that opens it, by a signal
// that cannot be caught. So after an unclean end, see [WasClosed], call Verify
// in a child process before [Open]; a child that dies is a damaged file too.
func Verify(path string) (err error) {
	file := filepath.Join(path, dbFile)
	defer func() {
		if p := recover(); p != nil {
			err = &DamagedError{Path: file, Count: 1, Places: []string{fmt.Sprint(p)}}
		}
	}()
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	b, err := bolt.Open(file, 0o600, &bolt.Options{Timeout: time.Second, ReadOnly: true, NoStatistics: true})
	if errors.Is(err, berrors.ErrTimeout) {
		return heldBy(file, filepath.Join(path, flagFile))
	}
	if isDamage(err) {
		return &DamagedError{Path: file, Count: 1, Places: []string{err.Error()}}
	}
	if err != nil {
		return fmt.Errorf("verify store %q: %w", file, err)
	}
	err = b.View(func(tx *bolt.Tx) error {
		var found error
		for problem := range tx.Check() { // to its end: it runs on a goroutine
			if found == nil {
				found = problem
			}
		}
		return found
	})
	if closeErr := b.Close(); closeErr != nil {
		return fmt.Errorf("verify store %q: %w", file, closeErr)
	}
	if err != nil { // the view itself cannot fail
		return &DamagedError{Path: file, Count: 1, Places: []string{err.Error()}}
	}
	return nil
}
