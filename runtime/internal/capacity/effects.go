package capacity

import (
	"context"
	"sync"
)

// Effects counts the calls under way that act outside the store, from before
// their start is in the journal until their end is on its way there.
type Effects struct {
	mu    sync.Mutex
	n     int
	ended chan struct{} // closed when n is 0; nil without a waiter
}

// Begin counts one more.
func (e *Effects) Begin() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.n++
}

// End counts one less.
func (e *Effects) End() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.n--
	if e.n == 0 && e.ended != nil {
		close(e.ended)
		e.ended = nil
	}
}

// None reports whether there are none now.
func (e *Effects) None() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.n == 0
}

// Wait returns when there was a moment without any, or with the cause of ctx.
func (e *Effects) Wait(ctx context.Context) error {
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
