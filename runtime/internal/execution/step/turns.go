package step

import (
	"context"
	"fmt"
)

// takeTurn waits until a suspected step may execute. No other suspected step executes
// during its turn, and the turn is durable before the step executes, so that the next
// crash counts against the right step. It returns at once for a step that is not
// suspected or that has its turn.
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
	a.log("warn", fmt.Sprintf("step %s was executing at %d crashes of the host and waits for its turn: suspected steps execute one at a time", a.address, x.suspectCrashes))
	// Waiting for the turn does not count towards the time limits.
	a.run.Clock().Hold()
	defer a.run.Clock().Release()
	for {
		if err := a.svc.Turns.Take(ctx, x.suspectCrashes); err != nil {
			return err
		}
		if !a.run.Paused() {
			break
		}
		// The run was paused meanwhile: other steps take their turns first.
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

// releaseTurn ends the step's turn, if it has it, because the step waits or has ended.
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

// releaseTurnLocked ends the step's turn. The caller holds turnMu. The record of it
// precedes that of the next turn, because batches keep their order.
func (x *stepExecution) releaseTurnLocked() {
	x.hasTurn = false
	x.run.RecordTurn("")
	x.svc.Turns.Give()
}

// leavesStepIdle reports whether the step executes nothing during the call: it waits
// for a time, an event, a person, a child run, or its nested steps.
func (c *call) leavesStepIdle() bool { return c.start == nil || !c.start.Effect }
