package execution

import (
	"context"

	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Drain is Runtime.Drain of package runtime.
func (ex *Executor) Drain(ctx context.Context) error {
	ex.mu.Lock()
	ex.draining = true
	for _, r := range ex.runs {
		r.gate.Shut()
	}
	ex.mu.Unlock()
	for {
		// An effect that has begun needs a slot to finish, so wait for the effects
		// before taking the slots.
		if err := ex.svc.Effects.Wait(ctx); err != nil {
			return ex.stillBusy()
		}
		leave, err := ex.slots.EnterAll(ctx)
		if err != nil {
			return ex.stillBusy()
		}
		if ex.svc.Effects.None() {
			return nil
		}
		leave()
	}
}

// stillBusy returns the error of a drain that timed out, with the number of runs that
// still execute a step.
func (ex *Executor) stillBusy() error {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	busy := 0
	for _, r := range ex.runs {
		r.slot.Lock()
		if r.active > 0 {
			busy++
		}
		r.slot.Unlock()
	}
	return failure.New(abi.Timeout, "drain: %d runs still execute a step", busy)
}
