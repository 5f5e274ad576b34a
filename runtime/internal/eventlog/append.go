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
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advance()
	if at, ok := l.byID[identity{e.Source, e.ID}]; ok {
		commit()
		return &at, nil
	}
	p, puts := l.assign(&e, value)
	l.expect(commit(puts...), p)
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
		is := identity{e.Source, e.ID}
		if _, ok := l.byID[is]; ok || inBatch[is] {
			continue
		}
		inBatch[is] = true
		p, more := l.assign(&e, values[i])
		puts = append(puts, more...)
		fresh = append(fresh, p)
	}
	l.expect(commit(puts...), fresh...)
	return nil
}

// assign gives an event the next offset, and removes those that no longer fit. A commit that
// the store refuses leaves the removed ones in the store until the log is opened again. l.mu
// is held.
func (l *Log) assign(e *sentinels.Event, value []byte) (p pendingEntry, puts []store.Put) {
	l.enqueued++
	next := newEntry(e, l.enqueued, int64(len(value)))
	l.keep(next)
	puts = append(puts, store.Put{Bucket: l.opt.Bucket, Key: Key(l.enqueued), Value: value})
	return pendingEntry{offset: next.offset, name: next.name, identity: next.identity}, append(puts, l.shrink()...)
}

// expect adds events to the index once their commit is done. l.mu is held.
func (l *Log) expect(ticket *store.Ticket, events ...pendingEntry) {
	for _, p := range events {
		p.ticket = ticket
		l.pending = append(l.pending, p)
		l.byID[p.identity] = spot{p.offset, ticket}
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

// index makes an event whose commit is done visible, and wakes its subscribers, also of one
// that has been removed since: they waited before. An event whose commit was refused, which its
// emitter has learnt, goes without a trace. l.mu is held.
func (l *Log) index(p pendingEntry, err error) {
	l.durable = p.offset
	i, kept := l.at(p.offset)
	switch {
	case err != nil && kept:
		l.refuse(i)
		fallthrough
	case !kept:
		delete(l.byID, p.identity)
	default:
		l.byID[p.identity] = spot{offset: p.offset}
	}
	if err == nil {
		l.wake(p.offset, p.name)
	}
}
