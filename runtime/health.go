package runtime

import (
	"context"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/maintenance/health"
	"github.com/sentinel-runtime/sentinel/runtime/internal/openfiles"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/maintenance"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Health reports whether the runtime can store what happens.
type Health = maintenance.Health

// newMonitor makes what watches store, disk and memory.
func (rt *Runtime) newMonitor() *health.Monitor {
	opt := health.Options{
		Dir: rt.opt.Dir, MinFree: rt.opt.MinFree, Store: rt.db, Log: rt.log,
		Changed: rt.opt.Observer.Health, Hold: rt.holdClocks, Well: func() { rt.plugins.KeepRest() },
	}
	if rt.opt.Executions != nil {
		opt.Runs = rt.memoryUsers
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
func (rt *Runtime) Health() Health { return rt.health.Health() }

// IsDiskFull reports whether err says that there is no space to write: the disk
// or a quota is full, or a file may not grow.
func IsDiskFull(err error) bool { return store.IsFull(err) }

// writable refuses what would begin something new while the runtime is read-only.
func (rt *Runtime) writable() error { return rt.health.Writable() }

// await waits for a commit on behalf of a caller outside of any run. It does not
// wait while commits fail, see [health.Monitor.Await].
func (rt *Runtime) await(ctx context.Context, t ticket) error { return rt.health.Await(ctx, t) }

// settled waits until a commit is done or commits fail.
func (rt *Runtime) settled(ctx context.Context, t ticket) error {
	return rt.health.AwaitOrStalled(ctx, t)
}

// putBlob stores a large value. On a full disk it waits for space until the runtime
// ends. A stop of the run does not end the wait: the run's end finds no space
// either, and the caller of the stop gets the error that it is held.
func (rt *Runtime) putBlob(data []byte) (string, error) { return rt.health.PutBlob(rt.ctx, data) }

// waitWhilePaused holds a step back while its run is paused or the runtime is read-only.
func (r *run) waitWhilePaused(ctx context.Context) error {
	for {
		if err := r.gate.Wait(ctx); err != nil {
			return err
		}
		if !r.rt.health.Blocked() {
			return nil
		}
		// The run may be paused while it waits, so both are tried again until both
		// were found open one after the other.
		if err := r.rt.health.WaitWritable(ctx); err != nil {
			return err
		}
	}
}

// holdClocks stops the clocks of all runs while the runtime is read-only: what
// they wait for may be held too, and their limits do not count waits for a disk.
func (rt *Runtime) holdClocks(hold bool) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.readOnly == hold {
		return
	}
	rt.readOnly = hold
	for _, r := range rt.runs {
		if hold {
			r.clock.Hold()
		} else {
			r.clock.Release()
		}
	}
}

// memoryUsers returns the runs that this process executes.
func (rt *Runtime) memoryUsers() []health.MemoryUser {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	runs := make([]health.MemoryUser, 0, len(rt.runs))
	for _, r := range rt.runs {
		runs = append(runs, r)
	}
	return runs
}

// MemoryUse implements [health.MemoryUser].
func (r *run) MemoryUse() (used, limit int64) {
	if used = r.rt.opt.Executions.Memory(r.id); used > 0 {
		used += r.runScope().size()
	}
	return used, r.memoryLimit()
}

// ExceedMemory implements [health.MemoryUser].
func (r *run) ExceedMemory(limit, reason string) { r.cancel(&limitError{limit, reason}) }

// waitForFiles makes the outside part of a call. While no file can be opened, the
// run waits and makes the call again; it does not fail because other work has the
// descriptors. The wait counts towards the step's time limit. The host's log shows
// every attempt, the run's log the first.
func (a *attempt) waitForFiles(ctx context.Context, what string, do func() error) error {
	waited := false
	return openfiles.Retry(ctx, func(err error, wait time.Duration) {
		cause := asError(err, abi.Unavailable).Message
		a.run.rt.log.Warn("run waits for an open file", "run", a.run.id, "step", a.address, "call", what, "again", wait, "error", cause)
		if !waited {
			a.log("warn", fmt.Sprintf("%s waits for an open file: %s", what, cause))
		}
		waited = true
	}, do)
}

// heldCondition logs that a condition waits for an open file.
func (rt *Runtime) heldCondition(err error, wait time.Duration) {
	rt.log.Warn("condition waits for an open file", "again", wait, "error", err)
}
