package runtime

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"
	"unique"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// eventLog holds every event that was emitted, in one order. A reader that
// waits for events reads it from a position of its own, so nothing is missed
// between two waits or over a crash, and each subscriber sees each event.
//
// The names, ids and sizes of the kept events are in memory, so that thousands
// of subscribers look for theirs without reading the store; what an event
// carries is read when a subscriber takes it. 10,000 events take about 1.6 MB.
//
// # Concurrency
//
// Safe for concurrent use. An event is seen by subscribers once it is durable.
// The lock is held while positions are given, never while the disk is waited
// for.
type eventLog struct {
	db       store.Store
	keep     int   // how many events the log holds; older ones are deleted
	maxBytes int64 // and their size in the store; the newest is kept whatever its size

	mu       sync.Mutex
	enqueued uint64        // position of the newest event given to the store
	oldest   uint64        // position of the oldest event that the store holds once all is committed
	sizes    []int64       // of the events from oldest to enqueued, in bytes
	bytes    int64         // sum of sizes
	first    uint64        // position of kept[0]
	kept     []eventEntry  // durable ones, by position, without a gap
	coming   []eventComing // those whose commit is on its way, in order
	places   map[eventIdentity]eventPlace
	subs     map[string]map[*subscriber]struct{} // by pattern
	wild     map[string]struct{}                 // the patterns among them with a wildcard
}

// An eventEntry is what is in memory of a durable event. The name is empty for a
// position whose commit was refused.
type eventEntry struct {
	name     string // shared by all events of that name
	identity eventIdentity
}

// An eventIdentity is what CloudEvents says makes an event one and the same.
type eventIdentity struct{ source, id string }

// An eventPlace is where an event stands in the log, durable when ticket is nil.
type eventPlace struct {
	position uint64
	ticket   *store.Ticket
}

// An eventComing has an offset and is not in the index yet.
type eventComing struct {
	position uint64
	oldest   uint64 // position of the oldest event once this one is committed
	entry    eventEntry
	ticket   *store.Ticket
}

func openEventLog(db store.Store, keep int, maxBytes int64) (*eventLog, error) {
	l := &eventLog{
		db: db, keep: keep, maxBytes: maxBytes,
		places: map[eventIdentity]eventPlace{}, subs: map[string]map[*subscriber]struct{}{}, wild: map[string]struct{}{},
	}
	// From the newest on, because a log that was allowed more before has too many
	// at its old end.
	var stale store.Batch
	var bad error
	err := db.Scan(bucketEvents, nil, nil, true, func(key, value []byte) bool {
		at := binary.BigEndian.Uint64(key)
		if l.enqueued == 0 {
			l.enqueued = at
		}
		full := l.enqueued-at >= uint64(keep) || len(l.sizes) > 0 && l.bytes+int64(len(value)) > maxBytes
		if full || len(stale.Puts) > 0 {
			stale.Puts = append(stale.Puts, store.Put{Bucket: bucketEvents, Key: append([]byte(nil), key...), Delete: true})
			return true
		}
		bad = l.found(at, value)
		return bad == nil
	})
	if err == nil {
		err = bad
	}
	if err != nil {
		return nil, fmt.Errorf("open event log: %w", err)
	}
	slices.Reverse(l.kept)
	slices.Reverse(l.sizes)
	l.first = l.enqueued + 1 - uint64(len(l.kept))
	l.oldest = l.first
	for i, entry := range l.kept {
		l.places[entry.identity] = eventPlace{position: l.first + uint64(i)}
	}
	delete(l.places, eventIdentity{})
	if len(stale.Puts) > 0 {
		stale.Lazy = true
		db.Enqueue(stale)
	}
	return l, nil
}

// found adds the event at a position when the log is opened, the newest first.
// Positions between it and the one before it belong to refused events, which stay
// empty.
func (l *eventLog) found(at uint64, value []byte) error {
	var e struct {
		ID     string `json:"id"`
		Name   string `json:"type"`
		Source string `json:"source"`
	}
	if err := json.Unmarshal(value, &e); err != nil {
		return fmt.Errorf("event %d: %w", at, err)
	}
	for l.enqueued-at > uint64(len(l.kept)) {
		l.kept, l.sizes = append(l.kept, eventEntry{}), append(l.sizes, 0)
	}
	l.kept, l.sizes = append(l.kept, newEntry(e.Name, e.Source, e.ID)), append(l.sizes, int64(len(value)))
	l.bytes += int64(len(value))
	return nil
}

// newEntry shares the texts that many events have in common.
func newEntry(name, source, id string) eventEntry {
	return eventEntry{name: unique.Make(name).Value(), identity: eventIdentity{unique.Make(source).Value(), id}}
}

func eventKey(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// position returns where the log stands now. Every event that was enqueued
// before counts as passed.
func (l *eventLog) position() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.enqueued
}

// publish enqueues an event by way of enqueue, which must put the given writes
// into a batch and return its ticket. Positions are given in the order of the
// batches, hence the lock around it. An event that the log has already takes no
// new place: enqueue is called without writes, and first says where the event
// is.
func (l *eventLog) publish(e sentinels.Event, enqueue func(puts ...store.Put) *store.Ticket) (first *eventPlace, err error) {
	value, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	entry := newEntry(e.Name, e.Source, e.ID)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.takeUp()
	if place, ok := l.places[entry.identity]; ok {
		enqueue()
		return &place, nil
	}
	n, puts := l.nextPlace(value)
	l.expect(enqueue(puts...), eventComing{position: n, oldest: l.oldest, entry: entry})
	return nil, nil
}

// expect adds events to the index once their commit is done. l.mu is held.
func (l *eventLog) expect(ticket *store.Ticket, events ...eventComing) {
	for _, c := range events {
		c.ticket = ticket
		l.coming = append(l.coming, c)
		l.places[c.entry.identity] = eventPlace{c.position, ticket}
	}
	if len(events) > 0 {
		ticket.OnDone(func(error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.takeUp()
		})
	}
}

// takeUp adds the events that have become durable to the index. Receipts come a
// little after their commit, so readers of the log call it too: an event is
// there for everyone as soon as its emitter knows that it is. l.mu is held.
func (l *eventLog) takeUp() {
	for len(l.coming) > 0 {
		next := l.coming[0]
		select {
		case <-next.ticket.Done():
		default:
			return
		}
		l.coming[0] = eventComing{}
		l.coming = l.coming[1:]
		l.committed(next, next.ticket.Err())
	}
}

// nextPlace gives an event the next place, and deletes the oldest ones that no
// longer fit. l.mu is held.
func (l *eventLog) nextPlace(value []byte) (n uint64, puts []store.Put) {
	l.enqueued++
	l.sizes = append(l.sizes, int64(len(value)))
	l.bytes += int64(len(value))
	puts = []store.Put{{Bucket: bucketEvents, Key: eventKey(l.enqueued), Value: value}}
	for len(l.sizes) > l.keep || l.bytes > l.maxBytes && len(l.sizes) > 1 {
		puts = append(puts, store.Put{Bucket: bucketEvents, Key: eventKey(l.oldest), Delete: true})
		l.bytes -= l.sizes[0]
		l.sizes = l.sizes[1:]
		l.oldest++
	}
	return l.enqueued, puts
}

// quarter returns a quarter of the number of events that the log has room for:
// of keep, or of those it holds when they are so large that fewer have room.
func (l *eventLog) quarter() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.keep
	if l.bytes > l.maxBytes/2 {
		n = min(n, len(l.sizes))
	}
	return uint64(max(n/4, 1))
}

// committed adds an event whose commit is done to the index, and wakes its
// subscribers. An event whose commit was refused, which its emitter has learnt,
// leaves an empty place. l.mu is held.
func (l *eventLog) committed(c eventComing, err error) {
	if err != nil {
		delete(l.places, c.entry.identity)
		c.entry = eventEntry{}
	} else {
		l.places[c.entry.identity] = eventPlace{position: c.position}
	}
	l.kept = append(l.kept, c.entry)
	for l.first < c.oldest {
		if old := l.kept[0]; old.name != "" {
			delete(l.places, old.identity)
		}
		l.kept[0] = eventEntry{} // the slice keeps its place until it grows
		l.kept = l.kept[1:]
		l.first++
	}
	if err == nil {
		l.wake(c.position, c.entry.name)
	}
}

// read returns the event at a position; found is false if it is kept no more.
func (l *eventLog) read(n uint64) (e sentinels.Event, found bool, err error) {
	raw, found, err := l.db.Get(bucketEvents, eventKey(n))
	if err != nil || !found {
		return e, false, err
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return e, false, fmt.Errorf("read event %d: %w", n, err)
	}
	return e, true, nil
}

// Events returns up to limit committed events that fit pattern, the newest
// last. An empty pattern fits all.
func (rt *Runtime) Events(pattern string, limit int) ([]sentinels.Event, error) {
	places := rt.events.newest(pattern, limit)
	out := make([]sentinels.Event, 0, len(places))
	for _, n := range places {
		e, found, err := rt.events.read(n)
		if err != nil {
			return nil, err
		}
		if found { // else newer ones took its place meanwhile
			out = append(out, e)
		}
	}
	return out, nil
}

// newest returns the positions of up to limit events that fit pattern, in order.
func (l *eventLog) newest(pattern string, limit int) []uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.takeUp()
	var places []uint64
	for i := len(l.kept) - 1; i >= 0 && len(places) < limit; i-- {
		if name := l.kept[i].name; name != "" && (pattern == "" || sentinels.MatchEvent(pattern, name)) {
			places = append(places, l.first+uint64(i))
		}
	}
	for i, j := 0, len(places)-1; i < j; i, j = i+1, j-1 {
		places[i], places[j] = places[j], places[i]
	}
	return places
}

// eventLimits bound the data of an event that does not come from a step.
var eventLimits = strictjson.Limits{Bytes: 4 << 20, Depth: 256, Keys: 100_000, StringBytes: 4 << 20}

// Emit appends an event that belongs to no run to the event log and returns when
// it is durable. If the log already holds an event with its source and ID, Emit
// returns that one instead. Without an ID every event is new. Data that is not
// strict JSON (duplicate keys, text that is not UTF-8) is bad_fields.
func (rt *Runtime) Emit(ctx context.Context, e sentinels.Event) (sentinels.Event, error) {
	if len(e.Data) > 0 {
		if err := strictjson.Check(e.Data, eventLimits); err != nil {
			return e, errf(abi.BadFields, "emit %q: data: %v", e.Name, err)
		}
	}
	if e.ID == "" {
		e.ID = string(newRunID())
	}
	if e.Time.IsZero() {
		e.Time = time.Now().UTC()
	}
	if err := rt.writable(); err != nil {
		return e, err
	}
	if c := (chain{e.Hops, e.Path}); c.hops > rt.limits.Hops {
		return e, c.refuse(e.Name, rt.limits.Hops)
	}
	if err := emissionOf(ctx).add(e); err != nil {
		return e, err
	}
	var ticket *store.Ticket
	first, err := rt.events.publish(e, func(puts ...store.Put) *store.Ticket {
		if len(puts) == 0 {
			return nil
		}
		ticket = rt.db.Enqueue(store.Batch{Puts: puts})
		return ticket
	})
	if err != nil {
		return e, err
	}
	if first == nil {
		return e, rt.await(ctx, ticket)
	}
	if first.ticket != nil {
		if err := rt.await(ctx, first.ticket); err != nil {
			return e, err
		}
	}
	if before, found, err := rt.events.read(first.position); err != nil || found {
		return before, err
	}
	return e, nil // it left the log this moment
}
