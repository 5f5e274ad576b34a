package runtime

import (
	"context"
	"slices"

	"github.com/sentinel-runtime/sentinel/runtime/internal/eventlog"
	"github.com/sentinel-runtime/sentinel/runtime/internal/execution"
	"github.com/sentinel-runtime/sentinel/runtime/internal/rate"
	"github.com/sentinel-runtime/sentinel/runtime/internal/redact"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// What the log of events of runs keeps. It is small and apart, so that runs do not push
// out the events of users, which readers may need for longer.
const (
	keepRunEvents     = 2000
	keepRunEventBytes = 8 << 20
)

// openEvents opens the event logs of the store.
func (rt *Runtime) openEvents() (err error) {
	opt := eventlog.Options{
		Store: rt.db, Bucket: eventlog.Bucket, Keep: rt.opt.Limits.KeepEvents, MaxBytes: rt.opt.Limits.KeepEventBytes, MaxHops: rt.opt.Limits.Hops,
		Rate: rate.New(rt.opt.Limits.AgentEvents, rt.opt.Limits.AgentEvents, func(by string) {
			rt.opt.Logger.Warn("more events are emitted than may be: they are refused",
				"by", by, "limit", rt.opt.Limits.AgentEvents, "setting", "limits.agentEvents")
		}),
		Own: rt.opt.OwnEvents, Redact: redact.Redactor(rt.opt.Redact), Writable: rt.writable, Await: rt.await, NewID: func() string { return string(execution.NewRunID()) },
	}
	if rt.events, err = eventlog.Open(opt); err != nil {
		return err
	}
	opt.Bucket, opt.Keep, opt.MaxBytes = eventlog.BucketRuns, keepRunEvents, keepRunEventBytes
	rt.runEvents, err = eventlog.Open(opt)
	rt.expected = eventlog.NewExpected(rt.expectAll)
	return err
}

// CheckEventName returns why callers may not emit events with a name: it is one of
// [Options.OwnEvents], or holds a secret.
func (rt *Runtime) CheckEventName(name string) error { return rt.events.CheckName(name) }

// logOf returns the log of the events that match a pattern, or have a name. That of events of runs
// also has the events of users with names of that form, so that a reader of such a pattern has one
// cursor, and decides for each event by its source.
func (rt *Runtime) logOf(pattern string) *eventlog.Log {
	if sentinels.IsRunEvent(pattern) {
		return rt.runEvents
	}
	return rt.events
}

// eventLog is logOf for a reader of which the engine knows only that it asks. The events
// that match are written from then on, so that it misses none between two questions.
func (rt *Runtime) eventLog(pattern string) *eventlog.Log {
	if sentinels.IsRunEvent(pattern) {
		rt.expected.Add(pattern)
	}
	return rt.logOf(pattern)
}

// expectAll adds the events of runs that stored definitions wait for.
func (rt *Runtime) expectAll(x *eventlog.Expected) {
	all, err := rt.definitions.List()
	if err != nil {
		rt.opt.Logger.Warn("some definitions cannot be read, so all events of runs are written: one of them may wait for any", "error", err)
		x.Add(sentinels.RunEventPrefix + "*:*")
	}
	for _, s := range all {
		rt.expectStored(s.ID)
	}
}

// expectStored reads from the newest revision of a definition which events of runs its
// triggers and steps may wait for.
func (rt *Runtime) expectStored(id sentinels.ID) {
	rt.expecting.Lock() // the last of several callers reads the newest revision
	defer rt.expecting.Unlock()
	source := "sentinel " + string(id)
	s, err := rt.definitions.Head(id)
	switch {
	case err != nil:
		rt.opt.Logger.Warn("definition cannot be read, so all events of runs are written: it may wait for any", "sentinel", id, "error", err)
		rt.expected.Set(source, sentinels.RunEventPrefix+"*:*")
	case s.Deleted:
		rt.expected.Set(source)
	default:
		rt.expected.Set(source, eventlog.RunPatterns(s.Definition)...)
	}
}

// Emit appends an event that belongs to no run to the log of its name and returns when
// it is durable. If the log already holds an event with its source and ID, Emit
// returns that one instead. Without an ID every event is new. Data that is not
// strict JSON (duplicate keys, text that is not UTF-8) is bad_fields.
func (rt *Runtime) Emit(ctx context.Context, e sentinels.Event) (sentinels.Event, error) {
	return rt.logOf(e.Name).Emit(ctx, e)
}

// WithEventAuthor returns a context whose events have by as the agent or model behind them, see
// [sentinels.Event], where they do not say so: those of [Runtime.Emit] and of transactions of documents.
// The context of a command that a run calls has that of the run.
func WithEventAuthor(ctx context.Context, by string) context.Context {
	return eventlog.WithEmission(ctx, eventlog.NewEmission(by, nil, nil))
}

// Events returns up to limit committed events that match pattern, the newest
// last. An empty pattern matches all.
func (rt *Runtime) Events(pattern string, limit int) ([]sentinels.Event, error) {
	list, _, err := rt.NewestEvents(pattern, limit, 0)
	return list, err
}

// NewestEvents is [Runtime.Events] with a bound of the bytes that the events have together in the store; the newest
// one is returned whatever its size. more reports whether this bound left out older ones that match.
func (rt *Runtime) NewestEvents(pattern string, limit int, bytes int64) (list []sentinels.Event, more bool, err error) {
	if pattern != "" && pattern != "**" {
		return rt.eventLog(pattern).Newest(pattern, limit, bytes)
	}
	// All events are also those of users whose names have the form of events of runs.
	bytes = (bytes + 1) / 2
	list, more, err = rt.events.Newest(pattern, limit, bytes)
	if err != nil {
		return nil, false, err
	}
	others, moreOthers, err := rt.runEvents.NewestOfUsers(limit, bytes)
	if err != nil || len(others) == 0 {
		return list, more, err
	}
	list = append(list, others...)
	slices.SortStableFunc(list, func(a, b sentinels.Event) int { return a.Time.Compare(b.Time) })
	return list[max(0, len(list)-limit):], more || moreOthers, nil
}

// NextEvent returns the first durable event after a position of the event log that
// matches the pattern, with its own position, waiting for it until ctx ends. lost
// counts events that had left the log before they were read. A reader that continues
// from each position gets every event once, in order.
func (rt *Runtime) NextEvent(ctx context.Context, pattern string, after uint64) (e sentinels.Event, position uint64, lost int, err error) {
	m, err := rt.eventLog(pattern).Wait(ctx, pattern, after)
	return m.Event, m.Offset, m.Lost, err
}

// EventPosition returns the position of the newest event, committed or not, of the log
// that has the events of a pattern: those of runs have a log of their own.
func (rt *Runtime) EventPosition(pattern string) uint64 { return rt.eventLog(pattern).End() }

// ExpectRunEvents says that a reader of [Runtime.NextRunEvent] wants the events of runs
// that match a pattern. Those that no trigger, step or reader expects are not written.
func (rt *Runtime) ExpectRunEvents(pattern string) { rt.expected.Add(pattern) }

// NextRunEvent is [Runtime.NextEvent] for all events of runs that are written.
func (rt *Runtime) NextRunEvent(ctx context.Context, after uint64) (e sentinels.Event, position uint64, lost int, err error) {
	m, err := rt.runEvents.Wait(ctx, sentinels.RunEventPrefix+"*:*", after)
	return m.Event, m.Offset, m.Lost, err
}

// RunEventPosition returns the position of the newest event of a run, committed or not.
func (rt *Runtime) RunEventPosition() uint64 { return rt.runEvents.End() }
