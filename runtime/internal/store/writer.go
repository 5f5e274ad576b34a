package store

import (
	"errors"
	"fmt"
	stdruntime "runtime"
	"sync"
	"time"
)

const (
	lazyDelay   = 50 * time.Millisecond
	commitBytes = 32 << 20 // largest payload of one commit, so that a backlog does not become one giant transaction

	backoffMin = 10 * time.Millisecond // after a failed commit; doubles up to backoffMax
	backoffMax = 2 * time.Second
)

// A writer is the queue of batches and the goroutine that commits them. Both
// implementations of [Store] use it.
type writer struct {
	// commit makes the tickets durable in one transaction and sets the refusal
	// of those that it refuses. written is false if there was nothing to write.
	// An error means that nothing took effect.
	commit    func(tickets []*Ticket) (written bool, err error)
	grace     time.Duration // how long Close retries failing commits
	callbacks *callbackQueue
	stats     counters
	wake      chan struct{} // capacity 1
	closing   chan struct{} // closed by Close
	ended     chan struct{} // closed when the goroutine ends

	mu       sync.Mutex
	queue    []*Ticket
	nonLazy  int // tickets in queue that are not lazy
	inCommit int // tickets taken from queue and not finished
	bytes    int64
	first    time.Time // when the first ticket of an all-lazy queue was added
	closed   bool
	closeAt  time.Time
	stalled  *StalledError
}

func startWriter(grace time.Duration, commit func([]*Ticket) (bool, error)) *writer {
	w := &writer{
		commit: commit, grace: grace, callbacks: newCallbackQueue(),
		wake: make(chan struct{}, 1), closing: make(chan struct{}), ended: make(chan struct{}),
	}
	go w.run()
	return w
}

// Enqueue implements [Store]. An invalid batch is queued too, so that its
// callbacks keep their order.
func (w *writer) Enqueue(b Batch) *Ticket {
	t := &Ticket{batch: b, queue: w.callbacks, records: len(b.Appends)}
	t.bytes, t.invalid = checkBatch(&t.batch)
	t.refusal = t.invalid

	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		t.finish(fmt.Errorf("enqueue batch: %w", ErrClosed))
		return t
	}
	wake := true
	if !b.Lazy {
		wake = w.nonLazy == 0
		w.nonLazy++
	} else if len(w.queue) == 0 {
		w.first = time.Now()
	} else {
		wake = false
	}
	w.queue = append(w.queue, t)
	w.bytes += t.bytes
	w.mu.Unlock()
	if wake {
		w.signal()
	}
	return t
}

func (w *writer) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// run is the writer's goroutine.
func (w *writer) run() {
	defer close(w.ended)
	var tickets []*Ticket
	for {
		var ok bool
		if tickets, ok = w.next(tickets[:0]); !ok {
			return
		}
		err := w.commitWithRetry(tickets)
		w.finish(tickets, err)
		clear(tickets) // release the tickets
		// Let callers that were just notified enqueue their next batch before
		// the queue is read. Otherwise the callers split into two halves that
		// alternate. This yields to the scheduler once and is not a delay: if
		// no goroutine is ready it returns at once.
		stdruntime.Gosched()
	}
}

// next waits for work and appends it to tickets. It returns false when the
// writer is closed and the queue empty.
func (w *writer) next(tickets []*Ticket) ([]*Ticket, bool) {
	for {
		w.mu.Lock()
		n := len(w.queue)
		delay := time.Duration(0)
		if n > 0 && w.nonLazy == 0 && !w.closed {
			delay = lazyDelay - time.Since(w.first)
		}
		if n > 0 && delay <= 0 {
			tickets = w.dequeue(tickets)
			w.mu.Unlock()
			return tickets, true
		}
		closed := w.closed
		w.mu.Unlock()
		switch {
		case closed:
			return tickets, false
		case n == 0:
			<-w.wake
		default:
			timer := time.NewTimer(delay)
			select {
			case <-w.wake:
			case <-timer.C:
			}
			timer.Stop()
		}
	}
}

// dequeue takes tickets from the front of the queue up to commitBytes, at least
// one. The caller holds mu.
func (w *writer) dequeue(tickets []*Ticket) []*Ticket {
	var bytes int64
	n := 0
	for n < len(w.queue) && (n == 0 || bytes+w.queue[n].bytes <= commitBytes) {
		bytes += w.queue[n].bytes
		if !w.queue[n].batch.Lazy {
			w.nonLazy--
		}
		n++
	}
	tickets = append(tickets, w.queue[:n]...)
	left := copy(w.queue, w.queue[n:])
	clear(w.queue[left:])
	w.queue = w.queue[:left]
	w.inCommit = n
	return tickets
}

// commitWithRetry commits the tickets and retries until it succeeds. Once Close
// has exceeded its grace period it returns the error.
func (w *writer) commitWithRetry(tickets []*Ticket) error {
	backoff := backoffMin
	for {
		begin := time.Now()
		written, err := w.commit(tickets)
		if err == nil {
			w.count(tickets, written, time.Since(begin))
			w.clearFailure()
			return nil
		}
		w.stats.change(func(s *Stats) { s.Retries++ })
		if w.recordFailure(err) {
			return errors.Join(ErrClosed, err)
		}
		w.waitBackoff(backoff)
		backoff = min(2*backoff, backoffMax)
	}
}

// waitBackoff waits before the next attempt. During Close it waits backoffMin
// at most, because the remaining time is short.
func (w *writer) waitBackoff(d time.Duration) {
	select {
	case <-w.closing:
		time.Sleep(min(d, backoffMin))
		return
	default:
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.closing:
	}
}

// recordFailure records a failed commit and reports whether to give up.
func (w *writer) recordFailure(err error) (giveUp bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stalled == nil {
		w.stalled = &StalledError{Since: time.Now()}
	}
	w.stalled.Failures++
	w.stalled.Err = err
	// A damaged store stays damaged, so further attempts are useless.
	return w.closed && (errors.Is(err, ErrDamaged) || !time.Now().Before(w.closeAt))
}

func (w *writer) clearFailure() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stalled = nil
}

func (w *writer) count(tickets []*Ticket, written bool, took time.Duration) {
	w.stats.change(func(s *Stats) {
		for _, t := range tickets {
			if t.refusal != nil {
				s.Refused++
				continue
			}
			s.Batches++
			s.Records += uint64(t.records)
			s.Puts += uint64(len(t.batch.Puts))
			s.Trims += uint64(len(t.batch.Trims))
			s.Bytes += uint64(t.bytes)
		}
		if written {
			s.Commits++
			s.LastCommit = took
		}
	})
}

// finish completes the tickets in order. If err is set, Close has given up;
// then all queued tickets fail too, because a later batch must not survive an
// earlier one.
func (w *writer) finish(tickets []*Ticket, err error) {
	w.mu.Lock()
	w.inCommit = 0
	for _, t := range tickets {
		w.bytes -= t.bytes
	}
	var rest []*Ticket
	if err != nil {
		rest, w.queue, w.nonLazy, w.bytes = w.queue, nil, 0, 0
	}
	w.mu.Unlock()
	for _, t := range tickets {
		result := t.refusal
		if err != nil {
			result = err
		}
		t.finish(result)
	}
	for _, t := range rest {
		t.finish(err)
	}
}

// Stats implements [Store].
func (w *writer) Stats() Stats {
	s := w.stats.read()
	w.mu.Lock()
	defer w.mu.Unlock()
	s.Queued, s.QueuedBytes = len(w.queue)+w.inCommit, w.bytes
	return s
}

// Health returns nil while commits work, else a [*StalledError].
func (w *writer) Health() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stalled == nil {
		return nil
	}
	now := *w.stalled
	now.Queued = len(w.queue) + w.inCommit
	return &now
}

func (w *writer) isClosed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

// stop waits until the goroutine has committed the queue and ended, and until
// all callbacks have returned. It returns true to the first caller only.
func (w *writer) stop() (first bool) {
	w.mu.Lock()
	first = !w.closed
	if first {
		w.closed, w.closeAt = true, time.Now().Add(w.grace)
		close(w.closing)
	}
	w.mu.Unlock()
	w.signal()
	<-w.ended
	w.callbacks.drain()
	return first
}
