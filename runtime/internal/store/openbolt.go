package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// smallFile is the size up to which a file is read whole at every open: that
// takes 15 ms at most.
const smallFile = 16 << 20

// checkBefore refuses a damaged file before bbolt sees it. A large one that was
// closed is only glanced at: what its last owner wrote was whole.
func checkBefore(path string, o Options) error {
	file, flag := filepath.Join(path, dbFile), filepath.Join(path, flagFile)
	closed, err := WasClosed(path)
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	small := info.Size() <= smallFile
	err = glance(f)
	if closed && !small && err == nil {
		return nil
	}
	// The lock is asked for only now: the way above is that of every clean start.
	// Whoever has the store open may be writing what was read just now.
	if lockErr := lockFile(f, false, o.HeldTimeout); lockErr != nil {
		if errors.Is(lockErr, errLocked) {
			return heldBy(file, flag)
		}
		return fmt.Errorf("open store %q: lock: %w", file, lockErr)
	}
	if err = glance(f); err != nil || closed && !small {
		return err
	}
	found, err := inspectFile(f)
	if err != nil {
		return err
	}
	if err := found.Err(file); err != nil {
		return err
	}
	if found.OneHead && found.Bytes > 0 {
		o.Logger.Warn("one of the store's two head pages is unreadable; if the machine did not lose power, its newest commit may be missing", "store", file)
	}
	if closed || o.Check == nil || found.Bytes == 0 {
		return nil
	}
	if err := o.Check(path); errors.Is(err, ErrDamaged) {
		return err
	} else if err != nil {
		o.Logger.Warn("store could not be checked a second time; the first check found nothing", "store", file, "error", err)
	}
	return nil
}

// openBolt opens the file and takes its lock. Damage that bbolt notices by
// itself, by an error or a panic, is a [*DamagedError].
func openBolt(file string, o Options) (b *bolt.DB, err error) {
	// bbolt gives its file to nobody, and after a panic it stays open, with the
	// lock, for as long as the process lives.
	var f *os.File
	defer func() {
		if p := recover(); p != nil {
			if f != nil {
				f.Close() // and with it the lock
			}
			b, err = nil, &DamagedError{Path: file, Count: 1, Places: []string{fmt.Sprint(p)}}
		}
	}()
	for range 10 { // nobody replaces a store so often while one waits
		b, err = bolt.Open(file, 0o600, &bolt.Options{
			Timeout:        o.HeldTimeout,
			NoFreelistSync: true,
			FreelistType:   bolt.FreelistMapType,
			MaxSize:        o.MaxBytes,
			OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
				opened, err := os.OpenFile(name, flag, mode)
				if f == nil || err == nil && flag&os.O_RDWR != 0 {
					f = opened
				}
				return opened, err
			},
		})
		if isDamage(err) {
			return nil, &DamagedError{Path: file, Count: 1, Places: []string{err.Error()}}
		}
		if err != nil {
			return nil, err
		}
		// A process that compacts or repairs the store renames another file to
		// this name. Who waited for the old one's lock has a file that is gone.
		if same, err := isFile(f, file); err != nil || same {
			return b, err
		}
		if err := b.Close(); err != nil {
			return nil, err
		}
	}
	return nil, berrors.ErrTimeout
}

// isDamage reports whether bbolt itself found the file damaged.
func isDamage(err error) bool {
	return errors.Is(err, berrors.ErrInvalid) || errors.Is(err, berrors.ErrVersionMismatch) || errors.Is(err, berrors.ErrChecksum)
}

// isFile reports whether the open file is the one of that name.
func isFile(f *os.File, name string) (bool, error) {
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
