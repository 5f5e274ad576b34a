package runtime

import (
	"context"
	"sync"

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
		if err := rt.effects.wait(ctx); err != nil {
			return rt.stillBusy()
		}
		taken, err := rt.takeSlots(ctx)
		if err == nil && rt.effects.none() {
			return nil
		}
		for range taken {
			<-rt.slots
		}
		if err != nil {
			return rt.stillBusy()
		}
	}
}

// takeSlots takes every execution slot. Who has them all knows that no guest
// runs, and that none can: a run holds one exactly while something of it does.
func (rt *Runtime) takeSlots(ctx context.Context) (taken int, err error) {
	for range cap(rt.slots) {
		select {
		case rt.slots <- struct{}{}:
			taken++
		case <-ctx.Done():
			return taken, context.Cause(ctx)
		}
	}
	return taken, nil
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

// effects counts the calls under way that act outside the store, from before
// their start is in the journal until their end is on its way there.
type effects struct {
	mu    sync.Mutex
	n     int
	ended chan struct{} // closed when n is 0; nil without a waiter
}

func (e *effects) begin() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.n++
}

func (e *effects) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.n--
	if e.n == 0 && e.ended != nil {
		close(e.ended)
		e.ended = nil
	}
}

func (e *effects) none() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.n == 0
}

// wait returns when there was a moment without any.
func (e *effects) wait(ctx context.Context) error {
	e.mu.Lock()
	if e.n == 0 {
		e.mu.Unlock()
		return nil
	}
	if e.ended == nil {
		e.ended = make(chan struct{})
	}
	ended := e.ended
	e.mu.Unlock()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
