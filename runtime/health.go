package runtime

import (
	"context"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/maintenance/health"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/maintenance"
)

// Health reports whether the runtime can store what happens.
type Health = maintenance.Health

// newMonitor creates the monitor of store, disk and memory.
func (rt *Runtime) newMonitor() *health.Monitor {
	opt := health.Options{
		Dir: rt.opt.Dir, MinFree: rt.opt.MinFree, Store: rt.db, Log: rt.opt.Logger,
		Changed: rt.opt.Observer.Health, Hold: func(on bool) { rt.exec.HoldClocks(on) }, Well: func() { rt.plugins.KeepRest() },
	}
	if rt.opt.Executions != nil {
		opt.Runs = func() []health.MemoryUser { return rt.exec.MemoryUsers() }
	}
	return health.New(opt)
}

// Health reports how the store and its disk are now.
//
// A runtime is read-only while commits fail or the disk has less free space than
// [Options.MinFree]. Then nothing new starts: no run, no step, no edit, no event
// from outside; each of these fails with the code unavailable at once. The results
// of steps under way are held and written as soon as there is space, for which the
// ballast in the state folder is deleted. Reads continue. It ends by itself.
func (rt *Runtime) Health() Health { return rt.upkeep.health.Health() }

// IsDiskFull reports whether err means that there is no space to write: the disk or a
// quota is full, or a file may not grow.
func IsDiskFull(err error) bool { return store.IsFull(err) }

// writable returns an error while the runtime is read-only.
func (rt *Runtime) writable() error { return rt.upkeep.health.Writable() }

// await waits for a commit on behalf of a caller outside of any run. It does not
// wait while commits fail, see [health.Monitor.Await].
func (rt *Runtime) await(ctx context.Context, t *store.Ticket) error {
	return rt.upkeep.health.Await(ctx, t)
}

// settled waits until a commit is done or commits fail.
func (rt *Runtime) settled(ctx context.Context, t *store.Ticket) error {
	return rt.upkeep.health.AwaitOrStalled(ctx, t)
}

// putBlob stores a large value. On a full disk it waits for space until the runtime
// ends. A stop of the run does not end the wait: the run's end finds no space
// either, and the caller of the stop gets the error that it is held.
func (rt *Runtime) putBlob(data []byte) (string, error) {
	return rt.upkeep.health.PutBlob(rt.ctx, data)
}

// heldCondition logs that a condition waits for a file descriptor.
func (rt *Runtime) heldCondition(err error, wait time.Duration) {
	rt.opt.Logger.Warn("condition waits for an open file", "again", wait, "error", err)
}
