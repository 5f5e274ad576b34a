package store

import (
	"context"
	"sync"
)

// A Ticket is the receipt of one enqueued batch.
type Ticket struct {
	batch   Batch
	bytes   int64 // payload of the batch
	records int   // appends of the batch
	invalid error // of the shape, found when it was enqueued
	verdict error // the writer's alone until done: why this batch is refused

	out *delivery

	mu    sync.Mutex
	over  bool
	err   error
	done  chan struct{} // made on demand
	calls []func(error)
}

// Wait blocks until the batch is committed or refused and returns its error,
// or ctx's error if that comes first; the batch stays enqueued all the same.
func (t *Ticket) Wait(ctx context.Context) error {
	select {
	case <-t.Done():
		return t.Err()
	default:
	}
	select {
	case <-t.Done():
		return t.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Done is closed when the batch is committed or refused.
func (t *Ticket) Done() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done == nil {
		if t.over {
			return closedChan
		}
		t.done = make(chan struct{})
	}
	return t.done
}

// Err returns why the batch was refused; nil if it was committed or is not
// done yet.
func (t *Ticket) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// OnDone has fn called with the batch's error once it is done. The calls of
// all tickets run one after the other in the order of their batches, on a
// goroutine that is not the writer. A call that is registered on a ticket that
// is done comes behind all that are due already.
func (t *Ticket) OnDone(fn func(error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		t.out.push(fn, t.err)
		return
	}
	t.calls = append(t.calls, fn)
}

// finish settles the ticket and lets go of the batch. Only the writer calls
// it, in order. The calls are pushed under the lock so that none registered
// at the same time can overtake them.
func (t *Ticket) finish(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over, t.err = true, err
	t.batch = Batch{}
	if t.done != nil {
		close(t.done)
	}
	for _, fn := range t.calls {
		t.out.push(fn, err)
	}
	t.calls = nil
}

var closedChan = func() chan struct{} { c := make(chan struct{}); close(c); return c }()
