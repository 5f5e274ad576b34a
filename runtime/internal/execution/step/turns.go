package step

import (
	"context"
	"fmt"
)

// takeTurn waits until a step that is suspected may execute, which no other one
// does then, and has that in the store before it does: the next crash counts
// against the step whose turn it was. Steps that are not suspected, nearly all,
// do not come here. It does nothing if the step has its turn already.
func (a *attempt) takeTurn(ctx context.Context) error {
	x := a.stepExecution
	if x.suspectCrashes == 0 {
		return nil
	}
	x.turnMu.Lock()
	defer x.turnMu.Unlock()
	if x.hasTurn {
		return nil
	}
	a.log("warn", fmt.Sprintf("step %s was executing at %d crashes of the host: it executes when no other such step does", a.address, x.suspectCrashes))
	// Its limits are not for waiting on others.
	a.run.Clock().Hold()
	defer a.run.Clock().Release()
	for {
		if err := a.svc.Turns.Take(ctx, x.suspectCrashes); err != nil {
			return err
		}
		if !a.run.Paused() {
			break
		}
		// The run was paused meanwhile. Others need not wait for its resume.
		a.svc.Turns.Give()
		if err := a.run.WaitWhilePaused(ctx); err != nil {
			return err
		}
	}
	x.hasTurn = true
	if err := a.run.RecordTurn(a.path).Wait(ctx); err != nil {
		x.releaseTurnLocked()
		return err
	}
	return nil
}

// releaseTurn lets the next suspected step execute: this one waits, or has ended.
func (x *stepExecution) releaseTurn() {
	if x.suspectCrashes == 0 {
		return
	}
	x.turnMu.Lock()
	defer x.turnMu.Unlock()
	if x.hasTurn {
		x.releaseTurnLocked()
	}
}

// releaseTurnLocked gives the turn back. turnMu is held. The note comes before that of
// the next one, because batches keep their order.
func (x *stepExecution) releaseTurnLocked() {
	x.hasTurn = false
	x.run.RecordTurn("")
	x.svc.Turns.Give()
}

// waits reports whether the call is one during which its step does not execute:
// it waits for a time, an event, a person, a child, or for its nested steps.
func (c *call) leavesStepIdle() bool { return c.start == nil || !c.start.Effect }
