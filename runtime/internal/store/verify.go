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

// Verify reads the whole database file in the state folder path with bbolt and
// reports damage. It changes nothing. A folder without a file is sound.
//
// bbolt trusts its file: damage can crash the process that opens it, by a
// signal that cannot be caught. So after an unclean shutdown, see [WasClosed],
// call Verify in a child process before [Open]. If the child crashes, the file
// is damaged.
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
		return newHeldError(file, filepath.Join(path, flagFile))
	}
	if isDamage(err) {
		return &DamagedError{Path: file, Count: 1, Places: []string{err.Error()}}
	}
	if err != nil {
		return fmt.Errorf("verify store %q: %w", file, err)
	}
	err = b.View(func(tx *bolt.Tx) error {
		var found error
		for problem := range tx.Check() { // read the channel to its end, because a goroutine writes to it
			if found == nil {
				found = problem
			}
		}
		return found
	})
	if closeErr := b.Close(); closeErr != nil {
		return fmt.Errorf("verify store %q: %w", file, closeErr)
	}
	if err != nil { // View itself returns no other error
		return &DamagedError{Path: file, Count: 1, Places: []string{err.Error()}}
	}
	return nil
}
