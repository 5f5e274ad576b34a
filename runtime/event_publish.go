package runtime

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Emit puts an event into the log in the moment in which the transaction's
// writes become durable. e needs an ID, the same for every repetition of the
// call: an event that the log has already is not emitted again. A chain of
// events that has become too long is the error limit.
func (tx *RecordsTx) Emit(ctx context.Context, e sentinels.Event) error {
	if e.ID == "" || e.Name == "" {
		return errf(abi.Internal, "emit in a transaction: an event needs an id and a name")
	}
	if limit := tx.records.hops; e.Hops > limit {
		return chain{e.Hops, e.Path}.refuse(e.Name, limit)
	}
	if err := emissionOf(ctx).add(e); err != nil {
		return err
	}
	if e.Time.IsZero() {
		e.Time = time.Now().UTC()
	}
	tx.events = append(tx.events, e)
	return nil
}

// publishAll is publish for any number of events, in one batch. enqueue is
// called exactly once, with no writes if there is nothing new to say.
func (l *eventLog) publishAll(events []sentinels.Event, enqueue func(puts ...store.Put) *store.Ticket) error {
	if len(events) == 0 {
		enqueue()
		return nil
	}
	values := make([][]byte, len(events))
	for i, e := range events {
		var err error
		if values[i], err = json.Marshal(e); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var puts []store.Put
	var fresh []eventComing
	taken := map[eventIdentity]bool{}
	for i, e := range events {
		entry := newEntry(e.Name, e.Source, e.ID)
		if _, ok := l.places[entry.identity]; ok || taken[entry.identity] {
			continue
		}
		taken[entry.identity] = true
		n, more := l.nextPlace(values[i])
		puts = append(puts, more...)
		fresh = append(fresh, eventComing{position: n, oldest: l.oldest, entry: entry})
	}
	l.expect(enqueue(puts...), fresh...)
	return nil
}
