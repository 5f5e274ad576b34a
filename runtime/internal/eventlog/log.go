package eventlog

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"unique"

	"github.com/sentinel-runtime/sentinel/runtime/internal/redact"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Buckets of the store: [Key] of the offset -> event.
const (
	Bucket     = "events"
	BucketRuns = "runevents" // of runs
)

// Key is the key of the event with an offset. The keys have the order of the offsets.
func Key(offset uint64) []byte { return binary.BigEndian.AppendUint64(nil, offset) }

// Options are what a log needs. All are required but Redact.
type Options struct {
	Store    Store
	Bucket   string
	Keep     int   // how many events the log keeps; older ones are deleted
	MaxBytes int64 // and their size in the store; the newest is kept whatever its size
	MaxHops  int   // how many runs an event may pass through
	// Redact removes secrets from the data of events before it is stored.
	Redact redact.Redactor
	// Writable returns why the engine accepts nothing new, nil if it does.
	Writable func() error
	// Await waits until a commit is done on behalf of a client, or returns the error
	// unavailable if the store stalls.
	Await func(context.Context, *store.Ticket) error
	// Own are names of events that have no source, which those of other callers must not have.
	Own []string
	// NewID returns an ID for an event that comes without one.
	NewID func() string
}

// Store is where events are kept, a part of [store.Store].
type Store interface {
	Enqueue(b store.Batch) *store.Ticket
	Get(bucket string, key []byte) (value []byte, found bool, err error)
	Scan(bucket string, prefix, after []byte, reverse bool, fn func(key, value []byte) bool) error
}

// Log holds the events that were emitted, in one order. Readers follow it with
// cursors of their own, so each of them gets every event.
//
// The names, IDs and sizes of the kept events are in memory, so that thousands
// of subscriptions find theirs without reading the store; the data of an event
// is read when a subscriber receives it. 10,000 events take about 1.6 MB.
//
// # Concurrency
//
// Safe for concurrent use. Readers see an event once it is durable. The mutex is
// held while offsets are assigned, never while the log waits for the disk.
type Log struct {
	opt Options

	mu       sync.Mutex
	enqueued uint64            // offset of the newest event given to the store
	oldest   uint64            // offset of the oldest event in the store once all is committed
	sizes    []int64           // of the events from oldest to enqueued, in bytes
	bytes    int64             // sum of sizes
	first    uint64            // offset of kept[0]
	kept     []entry           // durable events, by offset, without a gap
	pending  []pendingEntry    // events whose commit is not done yet, in order
	byID     map[identity]spot // kept and pending events
	subs     map[string]map[*subscription]struct{}
	wild     map[string]struct{} // the patterns in subs that have a wildcard
}

// An entry is what is in memory of a durable event. The name is empty for an
// offset whose commit was refused.
type entry struct {
	name     string // shared by all events of that name
	identity identity
}

// An identity is what CloudEvents requires to be unique for each event.
type identity struct{ source, id string }

// A spot is where an event is in the log. It is durable when ticket is nil.
type spot struct {
	offset uint64
	ticket *store.Ticket
}

// A pendingEntry has an offset and is not in the index yet.
type pendingEntry struct {
	offset uint64
	oldest uint64 // offset of the oldest event once this one is committed
	entry  entry
	ticket *store.Ticket
}

// Open reads the index of the events in the store. It deletes those that pass
// the limits of opt.
func Open(opt Options) (*Log, error) {
	l := &Log{opt: opt, byID: map[identity]spot{}, subs: map[string]map[*subscription]struct{}{}, wild: map[string]struct{}{}}
	// From the newest on: a log that had larger limits before has too many events
	// at its old end.
	var stale store.Batch
	var bad error
	err := opt.Store.Scan(opt.Bucket, nil, nil, true, func(key, value []byte) bool {
		offset := binary.BigEndian.Uint64(key)
		if l.enqueued == 0 {
			l.enqueued = offset
		}
		full := l.enqueued-offset >= uint64(opt.Keep) || len(l.sizes) > 0 && l.bytes+int64(len(value)) > opt.MaxBytes
		if full || len(stale.Puts) > 0 {
			stale.Puts = append(stale.Puts, store.Put{Bucket: opt.Bucket, Key: slices.Clone(key), Delete: true})
			return true
		}
		bad = l.load(offset, value)
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
	for i, e := range l.kept {
		l.byID[e.identity] = spot{offset: l.first + uint64(i)}
	}
	delete(l.byID, identity{})
	if len(stale.Puts) > 0 {
		stale.Lazy = true
		opt.Store.Enqueue(stale)
	}
	return l, nil
}

// load adds an event when the log is opened, the newest first. Offsets between it
// and the one before it belong to refused events, which stay empty.
func (l *Log) load(offset uint64, value []byte) error {
	var e struct {
		ID     string `json:"id"`
		Name   string `json:"type"`
		Source string `json:"source"`
	}
	if err := json.Unmarshal(value, &e); err != nil {
		return fmt.Errorf("event %d: %w", offset, err)
	}
	for l.enqueued-offset > uint64(len(l.kept)) {
		l.kept, l.sizes = append(l.kept, entry{}), append(l.sizes, 0)
	}
	l.kept, l.sizes = append(l.kept, newEntry(e.Name, e.Source, e.ID)), append(l.sizes, int64(len(value)))
	l.bytes += int64(len(value))
	return nil
}

// newEntry shares the strings that many events have in common.
func newEntry(name, source, id string) entry {
	return entry{name: unique.Make(name).Value(), identity: identity{unique.Make(source).Value(), id}}
}

// End returns the offset of the newest event, committed or not. A reader that
// begins there gets the events that are appended from now on.
func (l *Log) End() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.enqueued
}

// Quarter returns a quarter of the number of events that the log can keep:
// of [Options.Keep], or of those it has now when they are so large that fewer fit.
func (l *Log) Quarter() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.opt.Keep
	if l.bytes > l.opt.MaxBytes/2 {
		n = min(n, len(l.sizes))
	}
	return uint64(max(n/4, 1))
}

// Newest returns up to limit committed events that match pattern, the newest
// last. An empty pattern matches all.
func (l *Log) Newest(pattern string, limit int) ([]sentinels.Event, error) {
	offsets := l.newest(pattern, limit)
	out := make([]sentinels.Event, 0, len(offsets))
	for _, n := range offsets {
		e, found, err := l.read(n)
		if err != nil {
			return nil, err
		}
		if found { // else newer ones have replaced it meanwhile
			out = append(out, e)
		}
	}
	return out, nil
}

// newest returns the offsets of what Newest returns, in order.
func (l *Log) newest(pattern string, limit int) []uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advance()
	var offsets []uint64
	for i := len(l.kept) - 1; i >= 0 && len(offsets) < limit; i-- {
		if name := l.kept[i].name; name != "" && (pattern == "" || sentinels.MatchEvent(pattern, name)) {
			offsets = append(offsets, l.first+uint64(i))
		}
	}
	slices.Reverse(offsets)
	return offsets
}

// read returns the event at an offset; found is false if it has left the log.
func (l *Log) read(offset uint64) (e sentinels.Event, found bool, err error) {
	raw, found, err := l.opt.Store.Get(l.opt.Bucket, Key(offset))
	if err != nil || !found {
		return e, false, err
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return e, false, fmt.Errorf("read event %d: %w", offset, err)
	}
	return e, true, nil
}
