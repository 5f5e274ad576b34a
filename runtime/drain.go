package runtime

import (
	"context"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Drain prepares the runtime for Close: no step starts from now on, and those
// under way get until ctx ends to come to theirs. It returns nil when nothing
// executes any more, so that Close leaves nothing in doubt; else an error that
// says how many runs still did something. Runs that wait are not waited for.
//
// A run that is started meanwhile is accepted durably and executed by the
// next process that resumes it. There is no way back from draining but Close.
func (rt *Runtime) Drain(ctx context.Context) error {
	rt.mu.Lock()
	rt.draining = true
	for _, r := range rt.runs {
		r.gate.Shut()
	}
	rt.mu.Unlock()
	for {
		// An effect that has begun needs a slot to come to its end, so the
		// effects are waited for first.
		if err := rt.effects.Wait(ctx); err != nil {
			return rt.stillBusy()
		}
		if err := rt.slots.TakeAll(ctx); err != nil {
			return rt.stillBusy()
		}
		if rt.effects.None() {
			return nil
		}
		rt.slots.GiveAll()
	}
}

func (rt *Runtime) stillBusy() error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	busy := 0
	for _, r := range rt.runs {
		r.slot.Lock()
		if r.active > 0 {
			busy++
		}
		r.slot.Unlock()
	}
	return errf(abi.Timeout, "drain: %d runs still execute a step", busy)
}
