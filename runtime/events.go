package runtime

import (
	"context"

	"github.com/sentinel-runtime/sentinel/runtime/internal/eventlog"
	"github.com/sentinel-runtime/sentinel/runtime/internal/execution"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// openEvents opens the event log of the store.
func (rt *Runtime) openEvents() (err error) {
	rt.events, err = eventlog.Open(eventlog.Options{
		Store: rt.db, Keep: rt.opt.Limits.KeepEvents, MaxBytes: rt.opt.Limits.KeepEventBytes, MaxHops: rt.opt.Limits.Hops,
		Writable: rt.writable, Await: rt.await, NewID: func() string { return string(execution.NewRunID()) },
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
