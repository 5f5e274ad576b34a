package runtime

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// eventLog is the outbox: every event that was emitted, in one order. Whoever
// waits for events reads it from a position of their own, so nothing is missed
// between two waits or over a crash, and each subscriber sees each event.
//
// # Concurrency
//
// Safe for concurrent use. An event is seen by subscribers once it is durable.
type eventLog struct {
	db store.Store

	mu        sync.Mutex
	enqueued  uint64 // position of the newest event given to the store
	committed uint64 // position of the newest one that is durable
	wake      map[*subscriber]struct{}
}

type subscriber struct {
	pattern string
	signal  chan struct{} // capacity 1
}

// keepEvents is how many events the outbox holds; older ones go.
const keepEvents = 10_000

func openEventLog(db store.Store) (*eventLog, error) {
	l := &eventLog{db: db, wake: map[*subscriber]struct{}{}}
	err := db.Scan(bucketEvents, nil, nil, true, func(key, _ []byte) bool {
		l.enqueued = binary.BigEndian.Uint64(key)
		return false
	})
	if err != nil {
		return nil, fmt.Errorf("open event log: %w", err)
	}
	l.committed = l.enqueued
	return l, nil
}

func eventKey(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// position returns where the log stands now. Every event that was enqueued
// before counts as passed.
func (l *eventLog) position() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.enqueued
}

// publish enqueues an event by way of enqueue, which must put the given write
// into a batch and return its ticket. Positions are given in the order of the
// batches, hence the lock around it.
func (l *eventLog) publish(e sentinels.Event, enqueue func(puts ...store.Put) *store.Ticket) (uint64, error) {
	value, err := json.Marshal(e)
	if err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enqueued++
	n := l.enqueued
	puts := []store.Put{{Bucket: bucketEvents, Key: eventKey(n), Value: value}}
	if n > keepEvents {
		puts = append(puts, store.Put{Bucket: bucketEvents, Key: eventKey(n - keepEvents), Delete: true})
	}
	enqueue(puts...).OnDone(func(err error) {
		if err != nil {
			return // the store says so to everybody; the event was never there
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.committed = max(l.committed, n)
		for s := range l.wake {
			if sentinels.MatchEvent(s.pattern, e.Name) {
				select {
				case s.signal <- struct{}{}:
				default:
				}
			}
		}
	})
	return n, nil
}

// next returns the first event behind position after that fits the pattern,
// waiting for it.
func (l *eventLog) next(ctx context.Context, pattern string, after uint64) (sentinels.Event, uint64, error) {
	s := &subscriber{pattern: pattern, signal: make(chan struct{}, 1)}
	l.mu.Lock()
	l.wake[s] = struct{}{}
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.wake, s)
		l.mu.Unlock()
	}()
	for {
		e, n, seen, err := l.find(pattern, after)
		if err != nil || n != 0 {
			return e, n, err
		}
		after = seen
		select {
		case <-s.signal:
		case <-ctx.Done():
			return sentinels.Event{}, 0, context.Cause(ctx)
		}
	}
}

// find looks through the committed events behind after. seen is how far it got.
func (l *eventLog) find(pattern string, after uint64) (e sentinels.Event, n, seen uint64, err error) {
	seen = after
	var bad error
	err = l.db.Scan(bucketEvents, nil, eventKey(after), false, func(key, value []byte) bool {
		at := binary.BigEndian.Uint64(key)
		seen = at
		var candidate sentinels.Event
		if bad = json.Unmarshal(value, &candidate); bad != nil {
			return false
		}
		if sentinels.MatchEvent(pattern, candidate.Name) {
			e, n = candidate, at
			return false
		}
		return true
	})
	if err == nil {
		err = bad
	}
	return e, n, seen, err
}

// Events returns up to limit committed events that fit pattern, the newest
// last.
func (rt *Runtime) Events(pattern string, limit int) ([]sentinels.Event, error) {
	var out []sentinels.Event
	var bad error
	err := rt.db.Scan(bucketEvents, nil, nil, true, func(_, value []byte) bool {
		var e sentinels.Event
		if bad = json.Unmarshal(value, &e); bad != nil {
			return false
		}
		if pattern == "" || sentinels.MatchEvent(pattern, e.Name) {
			out = append(out, e)
		}
		return len(out) < limit
	})
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	if err == nil {
		err = bad
	}
	return out, err
}

// Hops returns how many runs the chain of events has passed through that the
// run belongs to; 0 for a run that this process does not carry out.
func (rt *Runtime) Hops(id sentinels.RunID) int {
	if r := rt.live(id); r != nil {
		return r.hops()
	}
	return 0
}

// hops is how many runs an event of this one's chain has passed through: those
// before the events that the pass answers or has waited for, and the run itself.
func (r *run) hops() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.heard
	if r.event != nil {
		n = max(n, r.event.Hops)
	}
	return n + 1
}

func hopsError(event string, hops, limit int) *abi.Error {
	return errf(abi.Limit, "event %q would pass through %d runs, the limit is %d: a chain of events runs in a circle", event, hops, limit)
}

// Emit puts an event of nobody's run into the log and returns when it is
// durable. An event whose ID was emitted before is not emitted again by the
// caller's contract; the log itself keeps every one.
func (rt *Runtime) Emit(ctx context.Context, e sentinels.Event) (sentinels.Event, error) {
	if e.ID == "" {
		e.ID = string(newRunID())
	}
	if e.Time.IsZero() {
		e.Time = time.Now().UTC()
	}
	if e.Hops > rt.limits.Hops {
		return e, hopsError(e.Name, e.Hops, rt.limits.Hops)
	}
	var ticket *store.Ticket
	_, err := rt.events.publish(e, func(puts ...store.Put) *store.Ticket {
		ticket = rt.db.Enqueue(store.Batch{Puts: puts})
		return ticket
	})
	if err != nil {
		return e, err
	}
	return e, ticket.Wait(ctx)
}
