package step

import (
	"context"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// await waits for the answer of a call. The guest stays in memory while that is within
// the limits; otherwise the error is errPark, which unloads it.
func (a *attempt) await(ctx context.Context, c *call) (wasm.Reply, error) {
	select {
	case <-c.done:
		return c.reply(), nil
	default:
	}
	a.run.Leave()
	a.hasSlot = false
	if c.leavesStepIdle() {
		a.releaseTurn()
	}
	if err := a.waitResident(ctx, c); err != nil {
		return wasm.Reply{}, err // the guest is unloaded, which needs no slot
	}
	a.reacquireSlot(ctx)
	return c.reply(), nil
}

// waitResident waits for the answer of a call with the guest in memory. It returns
// errPark if the guest must be unloaded.
func (a *attempt) waitResident(ctx context.Context, c *call) error {
	longest := a.svc.Limits.ResidentFor
	if !c.until.IsZero() && c.until.Sub(a.svc.Calendar.Now()) > longest {
		return errPark
	}
	s := a.svc.Residents.Enter(guestBytes)
	defer a.svc.Residents.Leave(s)
	timer := time.NewTimer(longest)
	defer timer.Stop()
	select {
	case <-c.done:
		return a.pauseAfterWait(ctx, c)
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.Evicted:
	case <-timer.C:
	}
	return errPark
}

// pauseAfterWait blocks after a wait while the run is paused. After other calls it does
// not: a step that has begun its work continues.
func (a *attempt) pauseAfterWait(ctx context.Context, c *call) error {
	if c.function != abi.FuncWait {
		return nil
	}
	return a.run.WaitWhilePaused(ctx)
}

// guestBytes is the memory that a waiting guest is assumed to use, measured with a Go
// guest.
const guestBytes = 1500 << 10

// reacquireSlot takes the execution slot that await released. It fails only if ctx has
// ended; the guest is then unloaded without a slot.
func (a *attempt) reacquireSlot(ctx context.Context) {
	a.hasSlot = a.takeTurn(ctx) == nil && a.run.Enter(ctx) == nil
}

// awaitOpenCall waits until the open call is answered, so that the guest finds the
// answer when it runs next. A call that a crash interrupted is resumed first.
func (a *attempt) awaitOpenCall(ctx context.Context) error {
	open := a.openCall()
	if open == nil {
		return nil
	}
	if !open.working {
		if err := a.resumeCall(ctx, open); err != nil {
			return err
		}
	}
	if open.leavesStepIdle() {
		a.releaseTurn()
	}
	if err := waitDone(ctx, open); err != nil {
		return err
	}
	return a.pauseAfterWait(ctx, open)
}

// openCall returns the call that has no answer yet, nil if there is none.
func (a *attempt) openCall() (open *call) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.calls {
		select {
		case <-c.done:
		default:
			open = c
		}
	}
	return open
}

// waitDone waits until a call is answered or ctx ends.
func waitDone(ctx context.Context, c *call) error {
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// sleep blocks until the time that a call waits for, if it waits for one, or until ctx
// ends.
func (a *attempt) sleep(ctx context.Context, c *call) {
	calendar := a.svc.Calendar
	switch {
	case c.until.IsZero():
	case c.timeOfDay:
		_ = calendar.WaitUntil(ctx, c.until) // the caller checks ctx
	default:
		_ = calendar.WaitFor(ctx, c.until) // the caller checks ctx
	}
}
