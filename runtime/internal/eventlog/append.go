package eventlog

import (
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A Commit puts writes of the log into a batch of the caller's, enqueues that and
// returns its ticket. The log calls it once, under its mutex, because offsets have
// the order of the batches. There are no writes if the log has the events already.
type Commit = func(puts ...store.Put) *store.Ticket

// Append adds an event to a commit of the caller's. Limits are not checked, see
// [Log.Accept].
func (l *Log) Append(e sentinels.Event, commit Commit) error {
	_, err := l.append(e, commit)
	return err
}

// append is Append. An event that the log has already gets no new offset: existing
// says where the event is.
func (l *Log) append(e sentinels.Event, commit Commit) (existing *spot, err error) {
	value, err := l.encode(e)
	if err != nil {
		return nil, err
	}
	entry := newEntry(e.Name, e.Source, e.ID)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advance()
	if at, ok := l.byID[entry.identity]; ok {
		commit()
		return &at, nil
	}
	n, puts := l.assign(value)
	l.expect(commit(puts...), pendingEntry{offset: n, oldest: l.oldest, entry: entry})
	return nil, nil
}

// encode returns an event as it is stored. Readers, triggers and the live feed get what is
// stored, so a secret in the data reaches none of them.
func (l *Log) encode(e sentinels.Event) ([]byte, error) {
	e.Data = l.opt.Redact.JSON(e.Data)
	return json.Marshal(e)
}

// AppendAll adds any number of events to one commit of the caller's, without those
// that the log has already. commit is called exactly once if AppendAll returns no
// error, and not at all otherwise.
func (l *Log) AppendAll(events []sentinels.Event, commit Commit) error {
	if len(events) == 0 {
		commit()
		return nil
	}
	values := make([][]byte, len(events))
	for i, e := range events {
		var err error
		if values[i], err = l.encode(e); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var puts []store.Put
	var fresh []pendingEntry
	inBatch := map[identity]bool{}
	for i, e := range events {
		entry := newEntry(e.Name, e.Source, e.ID)
		if _, ok := l.byID[entry.identity]; ok || inBatch[entry.identity] {
			continue
		}
		inBatch[entry.identity] = true
		n, more := l.assign(values[i])
		puts = append(puts, more...)
		fresh = append(fresh, pendingEntry{offset: n, oldest: l.oldest, entry: entry})
	}
	l.expect(commit(puts...), fresh...)
	return nil
}

// assign gives an event the next offset, and deletes the oldest ones that no
// longer fit. l.mu is held.
func (l *Log) assign(value []byte) (offset uint64, puts []store.Put) {
	l.enqueued++
	l.sizes = append(l.sizes, int64(len(value)))
	l.bytes += int64(len(value))
	puts = []store.Put{{Bucket: l.opt.Bucket, Key: Key(l.enqueued), Value: value}}
	for len(l.sizes) > l.opt.Keep || l.bytes > l.opt.MaxBytes && len(l.sizes) > 1 {
		puts = append(puts, store.Put{Bucket: l.opt.Bucket, Key: Key(l.oldest), Delete: true})
		l.bytes -= l.sizes[0]
		l.sizes = l.sizes[1:]
		l.oldest++
	}
	return l.enqueued, puts
}

// expect adds events to the index once their commit is done. l.mu is held.
func (l *Log) expect(ticket *store.Ticket, events ...pendingEntry) {
	for _, p := range events {
		p.ticket = ticket
		l.pending = append(l.pending, p)
		l.byID[p.entry.identity] = spot{p.offset, ticket}
	}
	if len(events) > 0 {
		ticket.OnDone(func(error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.advance()
		})
	}
}

// advance adds the events that have become durable to the index. The callback of
// a ticket comes a little after its commit, so readers of the log call advance too:
// every reader finds an event as soon as its emitter knows that it is durable.
// l.mu is held.
func (l *Log) advance() {
	for len(l.pending) > 0 {
		next := l.pending[0]
		select {
		case <-next.ticket.Done():
		default:
			return
		}
		l.pending[0] = pendingEntry{}
		l.pending = l.pending[1:]
		l.index(next, next.ticket.Err())
	}
}

// index adds an event whose commit is done, and wakes its subscribers. An event
// whose commit was refused, which its emitter has learnt, leaves an empty entry.
// l.mu is held.
func (l *Log) index(p pendingEntry, err error) {
	if err != nil {
		delete(l.byID, p.entry.identity)
		p.entry = entry{}
	} else {
		l.byID[p.entry.identity] = spot{offset: p.offset}
	}
	l.kept = append(l.kept, p.entry)
	for l.first < p.oldest {
		if old := l.kept[0]; old.name != "" {
			delete(l.byID, old.identity)
		}
		l.kept[0] = entry{} // the array stays until the slice grows
		l.kept = l.kept[1:]
		l.first++
	}
	if err == nil {
		l.wake(p.offset, p.entry.name)
	}
}
