package store

import (
	"context"
	"sync"
)

// A Ticket is the pending result of one enqueued batch.
type Ticket struct {
	batch   Batch
	bytes   int64 // payload of the batch
	records int   // number of appends
	invalid error // set by Enqueue: the batch is malformed
	refusal error // owned by the writer until done: why the batch is refused

	queue *callbackQueue

	mu        sync.Mutex
	finished  bool
	err       error
	done      chan struct{} // created on demand
	callbacks []func(error)
}

// Wait blocks until the batch is committed or refused and returns its error. If
// ctx ends first, Wait returns the cause of ctx; the batch stays enqueued.
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
		if t.finished {
			return closedChan
		}
		t.done = make(chan struct{})
	}
	return t.done
}

// Err returns why the batch was refused, nil if it was committed or is not done
// yet.
func (t *Ticket) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// OnDone registers fn to be called with the batch's error once the batch is
// done. The callbacks of all tickets run one after the other in the order of
// their batches, on a goroutine other than the writer's. If the batch is done
// already, fn runs behind all callbacks that are queued.
func (t *Ticket) OnDone(fn func(error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.finished {
		t.queue.push(fn, t.err)
		return
	}
	t.callbacks = append(t.callbacks, fn)
}

// finish completes the ticket and releases the batch. Only the writer calls it,
// in order. It queues the callbacks under the lock, so that a callback
// registered at the same time cannot overtake them.
func (t *Ticket) finish(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.finished, t.err = true, err
	t.batch = Batch{}
	if t.done != nil {
		close(t.done)
	}
	for _, fn := range t.callbacks {
		t.queue.push(fn, err)
	}
	t.callbacks = nil
}

var closedChan = func() chan struct{} { c := make(chan struct{}); close(c); return c }()
