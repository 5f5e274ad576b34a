package store

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/regularfile"
)

// lockWait is how long a reader of the whole file waits for its writer to close
// it.
const lockWait = 500 * time.Millisecond

var errLocked = errors.New("file is locked")

// openShared opens a database file for reading with a shared lock. flag is the
// owner's flag file, from which a [*HeldError] is made.
func openShared(file, flag string) (*os.File, error) {
	f, err := regularfile.OpenFile(file, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f, false, lockWait); err != nil {
		f.Close()
		if errors.Is(err, errLocked) {
			return nil, newHeldError(file, flag)
		}
		return nil, err
	}
	return f, nil
}

// lockFile takes the same lock as bbolt, exclusively or shared with other
// readers. Closing f releases it.
func lockFile(f *os.File, exclusive bool, wait time.Duration) error {
	begin := time.Now()
	for {
		err := tryLock(f, exclusive)
		if !errors.Is(err, errLocked) || time.Since(begin) >= wait {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Holder returns which process has the store in the state folder path open, nil
// if none has.
func Holder(path string) (*HeldError, error) {
	f, err := openShared(filepath.Join(path, dbFile), filepath.Join(path, flagFile))
	var held *HeldError
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case errors.As(err, &held):
		return held, nil
	case err != nil:
		return nil, err
	}
	return nil, f.Close()
}
