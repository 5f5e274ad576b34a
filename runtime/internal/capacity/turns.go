package capacity

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Turns let the steps that are suspected of crashing the host execute one at a
// time, over all runs. Of those that wait, the one with the fewest crashes is
// next: a step that crashes the host does not keep the others from their end,
// and kills from outside count against each in turn.
//
// # Concurrency
//
// Safe for concurrent use.
type Turns struct {
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

// Gather lets the suspects of a takeover wait for each other, so that the one with
// the fewest crashes comes first and not the one that is there first.
func (t *Turns) Gather() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.taken {
		t.taken = true
		time.AfterFunc(gatherTime, t.Give)
	}
}

// Take waits for a turn of a step with a number of crashes. The caller gives it back.
func (t *Turns) Take(ctx context.Context, crashes int) error {
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
	} else { // it was given at the same time
		t.next()
	}
	return context.Cause(ctx)
}

// Give ends a turn.
func (t *Turns) Give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next()
}

// next gives the turn to the next one. mu is held.
func (t *Turns) next() {
	if len(t.waiting) == 0 {
		t.taken = false
		return
	}
	next := slices.MinFunc(t.waiting, func(a, b *turn) int { return a.crashes - b.crashes })
	t.waiting = slices.DeleteFunc(t.waiting, func(w *turn) bool { return w == next })
	close(next.given)
}
