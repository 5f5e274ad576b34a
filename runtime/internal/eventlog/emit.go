package eventlog

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// dataLimits bound the data of an event that does not come from a step.
var dataLimits = strictjson.Limits{Bytes: 4 << 20, Depth: 256, Keys: 100_000, StringBytes: 4 << 20}

// Emit appends an event that belongs to no run and returns when it is durable. If
// the log already holds an event with its source and ID, Emit returns that one
// instead. Without an ID every event is new. Data that is not strict JSON
// (duplicate keys, text that is not UTF-8) is the error bad_fields; what
// [Log.Accept] refuses is the error limit. An event that does not say who is behind
// it gets that from the [Emission] of ctx.
func (l *Log) Emit(ctx context.Context, e sentinels.Event) (sentinels.Event, error) {
	e = emissionOf(ctx).signed(e)
	if len(e.Data) > 0 {
		if err := strictjson.Check(e.Data, dataLimits); err != nil {
			return e, &abi.Error{Code: abi.BadFields, Message: fmt.Sprintf("emit %q: data: %v", e.Name, err)}
		}
	}
	if e.ID == "" {
		e.ID = l.opt.NewID()
	}
	if e.Time.IsZero() {
		e.Time = time.Now().UTC()
	}
	if err := l.opt.Writable(); err != nil {
		return e, err
	}
	if err := l.CheckName(e.Name); err != nil {
		return e, err
	}
	if err := l.CheckRate(e); err != nil {
		return e, err
	}
	if err := l.admit(ctx, e); err != nil {
		return e, err
	}
	var ticket *store.Ticket
	existing, err := l.append(e, func(puts ...store.Put) *store.Ticket {
		if len(puts) == 0 {
			return nil
		}
		ticket = l.opt.Store.Enqueue(store.Batch{Puts: puts})
		return ticket
	})
	if err != nil {
		return e, err
	}
	if existing == nil {
		return e, l.opt.Await(ctx, ticket)
	}
	if existing.ticket != nil {
		if err := l.opt.Await(ctx, existing.ticket); err != nil {
			return e, err
		}
	}
	if before, found, err := l.read(existing.offset); err != nil || found {
		return before, err
	}
	return e, nil // the existing one has just left the log
}

// Accept returns an event of a transaction with who is behind it, or why it may not be emitted, where
// those of [Options.Own] may be: its name is refused, or, as the error limit, its chain has become too
// long, the [Emission] of ctx cannot hold it, or it is the first one of that and beyond the rate. An accepted event
// counts for that emission.
func (l *Log) Accept(ctx context.Context, e sentinels.Event) (sentinels.Event, error) {
	if sentinels.IsRunEvent(e.Name) {
		return e, &abi.Error{Code: abi.BadFields, Permanent: true, Message: fmt.Sprintf("emit %q: a transaction emits no events of the form sentinel:ID:WORD, which have a log of their own", e.Name)}
	}
	if !slices.Contains(l.opt.Own, e.Name) {
		if err := l.CheckName(e.Name); err != nil {
			return e, err
		}
	}
	m := emissionOf(ctx)
	e = m.signed(e)
	if err := m.underRate(func() error { return l.CheckRate(e) }, func() { l.opt.Rate.Owe(e.By) }); err != nil {
		return e, err
	}
	return e, l.admit(ctx, e)
}

// admit checks an event whose name may be emitted. The source of the engine is refused: it
// adds its own events by [Log.Append].
func (l *Log) admit(ctx context.Context, e sentinels.Event) error {
	if sentinels.FromEngine(e.Source) {
		return &abi.Error{Code: abi.BadFields, Permanent: true, Message: fmt.Sprintf("emit %q: the source %q is that of events of the engine", e.Name, e.Source), Hint: "leave the source out"}
	}
	if c := ChainOf(&e); c.Hops > l.opt.MaxHops {
		return c.Refuse(e.Name, l.opt.MaxHops)
	}
	return emissionOf(ctx).Add(e)
}

// CheckRate refuses an event, with the error limit, whose agent or model emits more than [Options.Rate] permits.
// An accepted event counts.
func (l *Log) CheckRate(e sentinels.Event) error {
	wait := l.opt.Rate.Take(e.By)
	if wait == 0 {
		return nil
	}
	return &abi.Error{Code: abi.Limit, RetryAfterMs: max(wait.Milliseconds(), 1),
		Message: fmt.Sprintf("emit %q: %s emits more events in a minute than it may (limits.agentEvents)", e.Name, e.By),
		Hint:    "put what belongs together into one event, or have a person raise limits.agentEvents"}
}

// CheckName refuses names of [Options.Own] and names that hold a secret: a changed name would reach
// other readers than the one that was meant.
func (l *Log) CheckName(name string) error {
	if clean := l.opt.Redact.Text(name); clean != name {
		return &abi.Error{Code: abi.BadFields, Permanent: true, Field: "event",
			Message: fmt.Sprintf("emit %q: the name of an event must not hold a secret", clean),
			Hint:    "names are kept and shown to every reader; give the event another name"}
	}
	if slices.Contains(l.opt.Own, name) {
		return &abi.Error{Code: abi.BadFields, Permanent: true, Field: "event",
			Message: fmt.Sprintf("emit %q: only the host emits events of this name", name), Hint: "give it another name"}
	}
	return nil
}
