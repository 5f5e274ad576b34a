//go:build unix

package grant

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// othersMay reports whether a file is open to anyone but this user.
func othersMay(info fs.FileInfo) bool {
	if info.Mode().Perm()&0o077 != 0 {
		return true
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && s.Uid != 0 && int(s.Uid) != os.Geteuid()
}

// lock waits until this process alone may change files in a folder. The lock is
// on the folder itself, so it leaves no file behind, and ends with the process.
func lock(ctx context.Context, dir string) (unlock func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return func() { _ = d.Close() }, nil // which ends the lock too
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			return nil, errors.Join(err, d.Close())
		}
		select {
		case <-time.After(5 * time.Millisecond): // it is locked only for the time of a write
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), d.Close())
		}
	}
}
