//go:build unix

package atomicfile

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// Lock waits until this process alone may change files in a folder, among those that lock it.
// The lock is on the folder itself, so it leaves no file behind, and ends with the process.
// Two callers of one process exclude each other, too.
func Lock(ctx context.Context, dir string) (unlock func(), err error) {
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
