package store

import (
	"errors"
	"fmt"
	stdruntime "runtime"
	"sync"
	"time"
)

const (
	lazyHold    = 50 * time.Millisecond
	commitBytes = 32 << 20 // payload of one commit at most, so a backlog does not become one giant transaction

	retryFirst = 10 * time.Millisecond // after a failed commit; doubles up to retryMost
	retryMost  = 2 * time.Second
)

// A writer is the queue of batches and the one goroutine that commits them,
// the same for both kinds of store.
type writer struct {
	// commit makes the tickets durable in one transaction, setting the verdict
	// of those it refuses. written is false if nothing was left to write. An
	// error means that nothing took effect.
	commit  func(tickets []*Ticket) (written bool, err error)
	grace   time.Duration // how long Close goes on with failing commits
	out     *delivery
	stats   counters
	wake    chan struct{} // capacity 1
	closing chan struct{} // closed by Close
	ended   chan struct{} // closed when the goroutine ends

	mu      sync.Mutex
	queue   []*Ticket
	urgent  int // tickets in queue that are not lazy
	held    int // tickets taken from queue and not finished
	bytes   int64
	first   time.Time // when the first ticket of an all-lazy queue came
	closed  bool
	closeAt time.Time
	stalled *StalledError
}

func startWriter(grace time.Duration, commit func([]*Ticket) (bool, error)) *writer {
	w := &writer{
		commit: commit, grace: grace, out: newDelivery(),
		wake: make(chan struct{}, 1), closing: make(chan struct{}), ended: make(chan struct{}),
	}
	go w.run()
	return w
}

// Enqueue implements [Store]. An invalid batch takes its place in the queue
// too, so that its callbacks keep their order.
func (w *writer) Enqueue(b Batch) *Ticket {
	t := &Ticket{batch: b, out: w.out, records: len(b.Appends)}
	t.bytes, t.invalid = weigh(&t.batch)
	t.verdict = t.invalid

	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		t.finish(fmt.Errorf("enqueue batch: %w", ErrClosed))
		return t
	}
	wake := true
	if !b.Lazy {
		wake = w.urgent == 0
		w.urgent++
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
		if tickets, ok = w.take(tickets[:0]); !ok {
			return
		}
		err := w.carry(tickets)
		w.settle(tickets, err)
		clear(tickets) // let go of what is done
		// Let those who were just told enqueue their next before the drain,
		// else the waiters split into two halves that take turns. This is one
		// turn of the scheduler and no delay: with nobody else ready it
		// returns at once.
		stdruntime.Gosched()
	}
}

// take waits for work and moves it to tickets; false means closed and empty.
func (w *writer) take(tickets []*Ticket) ([]*Ticket, bool) {
	for {
		w.mu.Lock()
		n := len(w.queue)
		hold := time.Duration(0)
		if n > 0 && w.urgent == 0 && !w.closed {
			hold = lazyHold - time.Since(w.first)
		}
		if n > 0 && hold <= 0 {
			tickets = w.move(tickets)
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
			timer := time.NewTimer(hold)
			select {
			case <-w.wake:
			case <-timer.C:
			}
			timer.Stop()
		}
	}
}

// move takes the front of the queue up to commitBytes, at least one ticket.
// mu is held.
func (w *writer) move(tickets []*Ticket) []*Ticket {
	var bytes int64
	n := 0
	for n < len(w.queue) && (n == 0 || bytes+w.queue[n].bytes <= commitBytes) {
		bytes += w.queue[n].bytes
		if !w.queue[n].batch.Lazy {
			w.urgent--
		}
		n++
	}
	tickets = append(tickets, w.queue[:n]...)
	left := copy(w.queue, w.queue[n:])
	clear(w.queue[left:])
	w.queue = w.queue[:left]
	w.held = n
	return tickets
}

// carry commits the tickets, trying again until it works or Close has run out
// of patience; then it returns why.
func (w *writer) carry(tickets []*Ticket) error {
	pause := retryFirst
	for {
		begin := time.Now()
		written, err := w.commit(tickets)
		if err == nil {
			w.count(tickets, written, time.Since(begin))
			w.recovered()
			return nil
		}
		w.stats.change(func(s *Stats) { s.Retries++ })
		if w.stall(err) {
			return errors.Join(ErrClosed, err)
		}
		w.pause(pause)
		pause = min(2*pause, retryMost)
	}
}

// pause waits before the next try. While closing it waits no longer than the
// first pause, because the time that is left is short.
func (w *writer) pause(d time.Duration) {
	select {
	case <-w.closing:
		time.Sleep(min(d, retryFirst))
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

// stall records a failed commit and reports whether to give up.
func (w *writer) stall(err error) (giveUp bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stalled == nil {
		w.stalled = &StalledError{Since: time.Now()}
	}
	w.stalled.Tries++
	w.stalled.Err = err
	return w.closed && !time.Now().Before(w.closeAt)
}

func (w *writer) recovered() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stalled = nil
}

func (w *writer) count(tickets []*Ticket, written bool, took time.Duration) {
	w.stats.change(func(s *Stats) {
		for _, t := range tickets {
			if t.verdict != nil {
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

// settle finishes the tickets in order. If err says that Close gave up, all
// that is queued behind fails too: a later batch must not outlive an earlier.
func (w *writer) settle(tickets []*Ticket, err error) {
	w.mu.Lock()
	w.held = 0
	for _, t := range tickets {
		w.bytes -= t.bytes
	}
	var behind []*Ticket
	if err != nil {
		behind, w.queue, w.urgent, w.bytes = w.queue, nil, 0, 0
	}
	w.mu.Unlock()
	for _, t := range tickets {
		verdict := t.verdict
		if err != nil {
			verdict = err
		}
		t.finish(verdict)
	}
	for _, t := range behind {
		t.finish(err)
	}
}

// Stats implements [Store].
func (w *writer) Stats() Stats {
	s := w.stats.read()
	w.mu.Lock()
	defer w.mu.Unlock()
	s.Queued, s.QueuedBytes = len(w.queue)+w.held, w.bytes
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
	now.Queued = len(w.queue) + w.held
	return &now
}

func (w *writer) isClosed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

// shut lets the goroutine commit what is queued and end, and waits for that
// and for all callbacks. Only the first caller gets true.
func (w *writer) shut() (first bool) {
	w.mu.Lock()
	first = !w.closed
	if first {
		w.closed, w.closeAt = true, time.Now().Add(w.grace)
		close(w.closing)
	}
	w.mu.Unlock()
	w.signal()
	<-w.ended
	w.out.drain()
	return first
}
