package execution

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/fairqueue"
	"github.com/sentinel-runtime/sentinel/runtime/internal/clock"
	"github.com/sentinel-runtime/sentinel/runtime/internal/execution/step"
	"github.com/sentinel-runtime/sentinel/runtime/internal/maintenance/health"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A schedule decides when the steps of a run execute, and when the run ends.
type schedule struct {
	ctx    context.Context // cancelled with step.ErrStopped, step.ErrShutdown or a step.LimitError
	cancel context.CancelCauseFunc
	// last is the context of onFailure and finally. It ends with the process, and at a stop of a run that is ending.
	last       context.Context
	cancelLast context.CancelCauseFunc
	ending     atomic.Bool   // onFailure and finally of the definition are executed
	ended      chan struct{} // closed when the end is recorded, or the process has detached from the run
	done       chan struct{} // closed when, besides, the end is durable
	// work counts the goroutines of host calls.
	work sync.WaitGroup

	clock   *clock.Active
	timeout *timeoutTimer
	gate    *clock.Gate // pause gate, closed while the run is paused

	// slot guards active, and is held while a person's run waits for its execution slot.
	slot   sync.Mutex
	active int // guests and effects that execute now
}

// newSchedule returns the schedule of a run that was active for elapsed. The context of
// a child is derived from the executor's, not its parent's, because a child continues
// when its parent ends. A stop reaches children through [liveRun.stopDescendants].
func (ex *Executor) newSchedule(elapsed time.Duration) schedule {
	ctx, cancel := context.WithCancelCause(ex.ctx)
	last, cancelLast := context.WithCancelCause(ex.ctx)
	return schedule{ctx: ctx, cancel: cancel, last: last, cancelLast: cancelLast, ended: make(chan struct{}), done: make(chan struct{}), clock: clock.NewActive(elapsed), gate: &clock.Gate{}}
}

// Clock implements [step.Schedule].
func (r *liveRun) Clock() *clock.Active { return r.clock }

// Work implements [step.Schedule].
func (r *liveRun) Work() *sync.WaitGroup { return &r.work }

// Cancel implements [step.Schedule].
func (r *liveRun) Cancel(cause error) { r.cancel(cause) }

// EndContext implements [step.Schedule].
func (r *liveRun) EndContext() context.Context {
	if r.ctx.Err() != nil || r.ending.Load() {
		r.snap.Lock()
		defer r.snap.Unlock()
		if status := r.status(); status == sentinels.StatusPaused || status == sentinels.StatusQueued {
			r.cutOff()
			r.updateStatus(nil, false)
			r.clock.Resume()
			r.gate.Open()
		}
	}
	return r.last
}

// end ends the run for a cause. A run that is ending already ends its onFailure and finally too. again reports that.
func (r *liveRun) end(cause error) (again bool) {
	if again = r.ctx.Err() != nil || r.ending.Load(); again {
		r.cancelLast(cause)
	}
	r.cancel(cause)
	return again
}

// Paused implements [step.Schedule].
func (r *liveRun) Paused() bool { return !r.gate.IsOpen() || r.ex.opt.Health.Blocked() }

// Enter implements [step.Schedule]. A person's run has one slot while something of it executes. In a run of an
// agent or a model, which have half of the slots together, each guest and effect takes one, so that a thousand
// branches of such a run execute a share at a time, and a person's run does not wait for the processor behind all of them.
func (r *liveRun) Enter(ctx context.Context) error {
	owner := r.slotOwner()
	if owner.Held {
		if _, err := r.ex.slots.Enter(ctx, owner); err != nil {
			return err
		}
	}
	r.slot.Lock()
	defer r.slot.Unlock()
	if r.active == 0 && !owner.Held {
		if _, err := r.ex.slots.Enter(ctx, owner); err != nil {
			return err
		}
	}
	r.active++
	return nil
}

// Leave implements [step.Schedule].
func (r *liveRun) Leave() {
	owner := r.slotOwner()
	r.slot.Lock()
	defer r.slot.Unlock()
	r.active--
	if r.active == 0 || owner.Held {
		r.ex.slots.Leave(owner)
	}
}

// slotOwner returns for whom the run takes execution slots.
func (r *liveRun) slotOwner() fairqueue.Owner { return fairqueue.Of(r.share) }

// WaitWhilePaused implements [step.Schedule].
func (r *liveRun) WaitWhilePaused(ctx context.Context) error {
	for {
		if err := r.gate.Wait(ctx); err != nil {
			return err
		}
		if !r.ex.opt.Health.Blocked() {
			return nil
		}
		// The run may be paused during this wait, so both are checked again.
		if err := r.ex.opt.Health.WaitWritable(ctx); err != nil {
			return err
		}
	}
}

// HoldClocks stops or continues the clocks of all runs. They stand still while the
// runtime is read-only, because time limits do not count the wait for a disk.
func (ex *Executor) HoldClocks(hold bool) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	if ex.readOnly == hold {
		return
	}
	ex.readOnly = hold
	for _, r := range ex.runs {
		if hold {
			r.clock.Hold()
		} else {
			r.clock.Release()
		}
	}
}

// MemoryUsers returns the active runs as users of memory.
func (ex *Executor) MemoryUsers() []health.MemoryUser {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	runs := make([]health.MemoryUser, 0, len(ex.runs))
	for _, r := range ex.runs {
		runs = append(runs, r)
	}
	return runs
}

// MemoryUse implements [health.MemoryUser].
func (r *liveRun) MemoryUse() (used, limit int64) {
	if used, _ = r.ex.svc.Executions.Memory(r.id); used > 0 {
		used += r.runScope().Size()
	}
	return used, r.MemoryLimit()
}

// ExceedMemory implements [health.MemoryUser].
func (r *liveRun) ExceedMemory(text string) {
	_, largest := r.ex.svc.Executions.Memory(r.id)
	r.cancel(&step.LimitError{Limit: run.ReasonMemory, Text: text, Hint: r.MemoryHint("limits.memory"), Step: sentinels.PathAddress(largest)})
}

// MemoryLimit implements [step.Schedule].
func (r *liveRun) MemoryLimit() int64 {
	limits := r.ex.svc.Limits
	switch mb := r.Definition().Safety.MaxMemoryMB; {
	case mb > 0:
		return mb << 20
	case r.bounded():
		return min(limits.Memory, limits.AgentMemory)
	}
	return limits.Memory
}

// VariableLimit implements [step.Schedule].
func (r *liveRun) VariableLimit() int64 {
	limit := r.MemoryLimit()
	if r.Definition().Safety.MaxMemoryMB > 0 {
		return limit
	}
	return min(limit, r.ex.svc.Limits.VariableMemory)
}

// MemoryHint implements [step.Schedule].
func (r *liveRun) MemoryHint(setting string) string {
	def := r.Definition()
	field := fmt.Sprintf("safety.maxMemoryMb of %q", def.ID)
	switch {
	case def.Safety.MaxMemoryMB > 0:
		return "raise " + field
	case r.bounded():
		setting = "limits.agentMemory"
	}
	return fmt.Sprintf("set %s, or raise the setting %s", field, setting)
}

// RecordTurn implements [step.Schedule].
func (r *liveRun) RecordTurn(path string) *store.Ticket {
	r.mu.Lock()
	r.info.Turn = path
	r.mu.Unlock()
	return r.Write(step.Commit{Summary: true, Lazy: path == ""})
}
