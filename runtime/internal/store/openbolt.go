package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/sentinel-runtime/sentinel/internal/regularfile"
)

// checkBeforeOpen refuses a damaged file, and one of a newer format, before bbolt sees it. bbolt reads all
// pages of a file that it opens, on a goroutine whose panic ends the process.
func checkBeforeOpen(ctx context.Context, path string, o Options) error {
	if err := checkFolderFormat(path); err != nil {
		return err
	}
	file, flag := filepath.Join(path, dbFile), filepath.Join(path, flagFile)
	f, err := regularfile.OpenFile(file, os.O_RDONLY, 0)
	if errors.Is(err, os.ErrNotExist) {
		return checkNoLeftovers(path, "the file is missing")
	}
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	if info.Size() == 0 {
		return checkNoLeftovers(path, "the file is empty")
	}
	if info.Size() < newFileSize() && len(leftovers(path)) == 0 {
		if err := truncateIncomplete(file, flag, o.LockTimeout); err != nil {
			return err
		}
	}
	if err := lockFile(f, false, o.LockTimeout); errors.Is(err, errLocked) {
		return newHeldError(file, flag)
	} else if err != nil {
		return fmt.Errorf("open store %q: lock: %w", file, err)
	}
	found, err := inspectFile(ctx, f)
	if err != nil {
		return err
	}
	if err := found.Err(file); err != nil {
		return err
	}
	if found.OneMeta && found.Bytes > 0 {
		o.Logger.Warn("one of the store's two meta pages is unreadable or old; unless the machine lost power, the newest commit may be missing", "store", file)
	}
	return nil
}

// newFileSize is the size of a file that bbolt has created.
func newFileSize() int64 { return 4 * int64(os.Getpagesize()) }

// truncateIncomplete truncates a file that bbolt did not finish creating, for
// example on a full disk, so that it is created again. It never had content.
func truncateIncomplete(file, flag string, wait time.Duration) error {
	f, err := regularfile.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	defer f.Close()
	if err := lockFile(f, true, wait); errors.Is(err, errLocked) {
		return newHeldError(file, flag)
	} else if err != nil {
		return fmt.Errorf("open store %q: lock: %w", file, err)
	}
	// Check again under the lock: the process that had it may have finished the
	// file.
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	// The two meta pages of a new file have the transaction numbers 0 and 1. Do
	// not truncate anything else.
	p, _ := openPages(f, info.Size())
	if p == nil || p.meta.txid > 1 || info.Size() >= newFileSize() {
		return nil
	}
	if err := f.Truncate(0); err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	return nil
}

// An openFile is a database file that bbolt has open.
type openFile struct {
	*bolt.DB
	file *os.File // the file of bbolt, which has the lock; closed by DB
	log  *boltLog
}

// openBolt opens the file and takes its lock. Damage that bbolt itself detects,
// by an error or a panic, is a [*DamagedError].
func openBolt(file string, o Options) (openFile, error) {
	for range 10 { // a store is not replaced that often during one wait
		b, err := openBoltOnce(file, o)
		if isDamage(err) {
			err = &DamagedError{Path: file, Count: 1, Places: []string{err.Error()}}
		}
		if err != nil {
			return openFile{}, err
		}
		// A process that compacts or repairs the store renames another file to
		// this name. Then the lock was taken on a file that is no longer the
		// store.
		if same, err := isSameFile(b.file, file); err != nil || same {
			return b, err
		}
		if err := b.Close(); err != nil {
			return openFile{}, err
		}
	}
	return openFile{}, berrors.ErrTimeout
}

func openBoltOnce(file string, o Options) (openFile, error) {
	b := openFile{log: newBoltLog()}
	fault, err := guard(func() (err error) {
		b.DB, err = bolt.Open(file, 0o600, &bolt.Options{
			Timeout:        o.LockTimeout,
			NoFreelistSync: true,
			FreelistType:   bolt.FreelistMapType,
			MaxSize:        o.MaxBytes,
			Logger:         b.log,
			OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
				opened, err := regularfile.OpenFile(name, flag, mode)
				if b.file == nil || err == nil && flag&os.O_RDWR != 0 {
					b.file = opened
				}
				return opened, err
			},
		})
		return err
	})
	if fault == nil {
		return b, err
	}
	// bbolt does not close its file when it panics.
	if b.file != nil {
		b.file.Close() // releases the lock
	}
	return openFile{}, &DamagedError{Path: file, Count: 1, Places: []string{fmt.Sprint(fault)}}
}

// isDamage reports whether err means that bbolt found the file damaged.
func isDamage(err error) bool {
	return errors.Is(err, berrors.ErrInvalid) || errors.Is(err, berrors.ErrVersionMismatch) || errors.Is(err, berrors.ErrChecksum)
}

// isSameFile reports whether f is the file with this name.
func isSameFile(f *os.File, name string) (bool, error) {
	opened, err := f.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Stat(name)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(opened, named), err
}
