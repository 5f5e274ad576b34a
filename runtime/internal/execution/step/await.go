package step

import (
	"context"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// await waits for a call's answer. While it waits the guest stays in memory as
// long as it fits; errPark unloads it.
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
		return wasm.Reply{}, err // the guest ends, which takes no slot
	}
	a.reacquireSlot(ctx)
	return c.reply(), nil
}

// stay waits for a call's answer with the guest in memory.
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

// held keeps a step back that has waited, as long as the run is paused. A step
// that was at work continues to its end, parked or not.
func (a *attempt) pauseAfterWait(ctx context.Context, c *call) error {
	if c.function != abi.FuncWait {
		return nil
	}
	return a.run.WaitWhilePaused(ctx)
}

// guestBytes is what a waiting guest is taken to hold; a Go guest with an arena
// holds about this much.
const guestBytes = 1500 << 10

// rejoin takes the execution slot again that await gave back. Where that fails
// ctx is over, and the guest ends without one.
func (a *attempt) reacquireSlot(ctx context.Context) {
	a.hasSlot = a.takeTurn(ctx) == nil && a.run.Enter(ctx) == nil
}

// settle makes sure that the guest, when it runs next, finds its last call
// answered: it waits for calls under way and resumes those that a crash cut off.
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

// openCall returns the call that has no answer yet; nil if there is none.
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

func waitDone(ctx context.Context, c *call) error {
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// sleep blocks until the time that a call waits for, if it waits for one, or until
// ctx ends.
func (a *attempt) sleep(ctx context.Context, c *call) {
	calendar := a.svc.Calendar
	switch {
	case c.until.IsZero():
	case c.timeOfDay:
		_ = calendar.WaitUntil(ctx, c.until) // the caller looks at ctx
	default:
		_ = calendar.WaitFor(ctx, c.until) // likewise
	}
}
