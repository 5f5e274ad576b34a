package runtime

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// turns lets the steps that are suspected of crashing the host execute one at a
// time, over all runs. Of those that wait, the one with the fewest crashes is
// next: a step that crashes the host does not keep the others from their end,
// and kills from outside count against each in turn.
//
// # Concurrency
//
// Safe for concurrent use.
type turns struct {
	mu      sync.Mutex
	taken   bool
	waiting []*turn // in the order in which they came
}

type turn struct {
	crashes int
	given   chan struct{} // closed when it is this one's turn
}

// gatherTime is how long suspects are waited for before the first has its turn.
const gatherTime = 200 * time.Millisecond

// gather has the suspects of a takeover wait for each other, so that the one with
// the fewest crashes comes first and not the one that is there first.
func (t *turns) gather() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.taken {
		t.taken = true
		time.AfterFunc(gatherTime, t.give)
	}
}

// take waits for a turn. Who has it gives it back.
func (t *turns) take(ctx context.Context, crashes int) error {
	t.mu.Lock()
	if !t.taken {
		t.taken = true
		t.mu.Unlock()
		return nil
	}
	w := &turn{crashes: crashes, given: make(chan struct{})}
	t.waiting = append(t.waiting, w)
	t.mu.Unlock()
	select {
	case <-w.given:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.waiting, w); i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	} else { // it was given at the same moment
		t.next()
	}
	return context.Cause(ctx)
}

func (t *turns) give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next()
}

// next gives the turn to the next one. mu is held.
func (t *turns) next() {
	if len(t.waiting) == 0 {
		t.taken = false
		return
	}
	next := slices.MinFunc(t.waiting, func(a, b *turn) int { return a.crashes - b.crashes })
	t.waiting = slices.DeleteFunc(t.waiting, func(w *turn) bool { return w == next })
	close(next.given)
}

// takeTurn waits until a step that is suspected may execute, which no other one
// does then, and has that in the store before it does: the next crash counts
// against the step whose turn it was. Steps that are not suspected, nearly all,
// do not come here. It does nothing if the step has its turn already.
func (a *attempt) takeTurn(ctx context.Context) error {
	x := a.stepExecution
	if x.suspect == 0 {
		return nil
	}
	x.turnMu.Lock()
	defer x.turnMu.Unlock()
	if x.hasTurn {
		return nil
	}
	a.log("warn", fmt.Sprintf("step %s was executing at %d crashes of the host: it executes when no other such step does", a.address, x.suspect))
	// Its limits are not for waiting on others.
	a.run.clock.Hold()
	defer a.run.clock.Release()
	for {
		if err := a.run.rt.turns.take(ctx, x.suspect); err != nil {
			return err
		}
		if a.run.gate.IsOpen() && !a.run.rt.health.Blocked() {
			break
		}
		// The run was paused meanwhile. Others need not wait for its resume.
		a.run.rt.turns.give()
		if err := a.run.waitWhilePaused(ctx); err != nil {
			return err
		}
	}
	x.hasTurn = true
	if err := a.run.noteTurn(a.path).Wait(ctx); err != nil {
		x.dropTurn()
		return err
	}
	return nil
}

// giveTurn lets the next suspected step execute: this one waits, or has ended.
func (x *stepExecution) giveTurn() {
	if x.suspect == 0 {
		return
	}
	x.turnMu.Lock()
	defer x.turnMu.Unlock()
	if x.hasTurn {
		x.dropTurn()
	}
}

// dropTurn gives the turn back. turnMu is held. The note comes before that of
// the next one, because batches keep their order.
func (x *stepExecution) dropTurn() {
	x.hasTurn = false
	x.run.noteTurn("")
	x.run.rt.turns.give()
}

// noteTurn writes which step of the run has its turn, "" for none.
func (r *run) noteTurn(path string) ticket {
	r.mu.Lock()
	r.info.Turn = path
	r.mu.Unlock()
	return r.write(writeOptions{info: true, lazy: path == ""})
}

// waits reports whether the call is one during which its step does not execute:
// it waits for a time, an event, a person, a child, or for its nested steps.
func (c *call) waits() bool { return c.start == nil || !c.start.Effect }
