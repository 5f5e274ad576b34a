// Package openfiles repeats work that could not begin because the process or the
// system had no file descriptor left. Such a shortage ends by itself when other
// work ends, so a run waits for that and does not fail.
package openfiles

import (
	"context"
	"errors"
	"syscall"
	"time"
)

// The backoff between attempts. The first one is short, because a descriptor is
// often free again at once.
const (
	backoffMin = 50 * time.Millisecond
	backoffMax = 5 * time.Second
)

// Short reports whether err means that a file could not be opened because the
// process or the system has no file descriptor left.
func Short(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// Retry calls do until it returns an error that is not a shortage, or nil, and
// returns that. When ctx ends first, Retry returns the cause of ctx. A shortage
// must mean that do has had no effect. onWait is called before each wait.
func Retry(ctx context.Context, onWait func(err error, wait time.Duration), do func() error) error {
	for wait := backoffMin; ; wait = min(2*wait, backoffMax) {
		err := do()
		if !Short(err) {
			return err
		}
		onWait(err, wait)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}
