package runtime

import (
	"context"
	"fmt"

	"github.com/sentinel-runtime/sentinel/runtime/internal/eventlog"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// chain is the runs that an event has passed through.
type chain = eventlog.Chain

// openEvents opens the event log of the store.
func (rt *Runtime) openEvents() (err error) {
	rt.events, err = eventlog.Open(eventlog.Options{
		Store: rt.db, Keep: rt.limits.KeepEvents, MaxBytes: rt.limits.KeepEventBytes, MaxHops: rt.limits.Hops,
		Writable: rt.writable, Await: rt.await, NewID: func() string { return string(newRunID()) },
	})
	return err
}

// Emit appends an event that belongs to no run to the event log and returns when
// it is durable. If the log already holds an event with its source and ID, Emit
// returns that one instead. Without an ID every event is new. Data that is not
// strict JSON (duplicate keys, text that is not UTF-8) is bad_fields.
func (rt *Runtime) Emit(ctx context.Context, e sentinels.Event) (sentinels.Event, error) {
	return rt.events.Emit(ctx, e)
}

// Events returns up to limit committed events that match pattern, the newest
// last. An empty pattern matches all.
func (rt *Runtime) Events(pattern string, limit int) ([]sentinels.Event, error) {
	return rt.events.Newest(pattern, limit)
}

// NextEvent returns the first durable event after a position of the event log that
// matches the pattern, with its own position, waiting for it until ctx ends. lost
// counts events that had left the log before they were read. A reader that continues
// from each position gets every event once, in order.
func (rt *Runtime) NextEvent(ctx context.Context, pattern string, after uint64) (e sentinels.Event, position uint64, lost int, err error) {
	m, err := rt.events.Wait(ctx, pattern, after)
	return m.Event, m.Offset, m.Lost, err
}

// EventPosition returns the position of the newest event, committed or not.
func (rt *Runtime) EventPosition() uint64 { return rt.events.End() }

// Chain returns how many runs an event has passed through that the given run
// emits now, itself included, and the sentinels they are of, in order; 0 for a
// run that this process does not execute.
func (rt *Runtime) Chain(id sentinels.RunID) (hops int, path []string) {
	r := rt.live(id)
	if r == nil {
		return 0, nil
	}
	c := r.chain()
	return c.Hops, c.Path
}

// chain is that of an event which the run emits now: the longest of the chains of the
// run that started it, of the event that its iteration answers and of those that steps
// of the iteration have waited for, and the run itself.
func (r *run) chain() chain {
	r.mu.Lock()
	defer r.mu.Unlock()
	begun := chain{Hops: r.begin.Hops, Path: r.begin.Path}
	return begun.Longer(eventlog.ChainOf(r.state.Event)).Longer(eventlog.Chain(r.state.Chain)).Through(r.begin.Sentinel)
}

// emission returns the counter for the events of one host call of the run.
func (r *run) emission() *eventlog.Emission {
	return eventlog.NewEmission(r.countEvent, func(size int64) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.emitting -= size
	})
}

// countEvent counts an event of so many bytes for the run's iteration, unless
// that is more than an iteration may emit.
func (r *run) countEvent(name string, size int64) error {
	limit := r.rt.limits.EventBytes
	r.mu.Lock()
	defer r.mu.Unlock()
	emitted := r.state.EventBytes + r.emitting
	if emitted+size > limit {
		return &abi.Error{
			Code: abi.Limit,
			Message: fmt.Sprintf("eventBytes: event %q of %d bytes is too much for iteration %d: it has emitted %d bytes of events, the limit is %d",
				name, size, r.state.Iteration, emitted, limit),
			Hint: "put the data where subscribers can read it, such as a file or a document, and emit its name",
		}
	}
	r.emitting += size
	return nil
}
