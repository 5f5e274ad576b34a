package eventlog

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"unique"

	"github.com/sentinel-runtime/sentinel/runtime/internal/rate"
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

// Options are what a log needs. All are required but Redact and Rate.
type Options struct {
	Store    Store
	Bucket   string
	Keep     int   // how many events the log keeps, see share.go
	MaxBytes int64 // and their size in the store; the newest is kept whatever its size
	MaxHops  int   // how many runs an event may pass through
	// Redact removes secrets from the data of events before it is stored.
	Redact redact.Redactor
	// Writable returns why the engine accepts nothing new, nil if it does.
	Writable func() error
	// Await waits until a commit is done on behalf of a client, or returns the error
	// unavailable if the store stalls.
	Await func(context.Context, *store.Ticket) error
	// Rate bounds the events that agents and models emit, and not those of transactions. Default: no bound.
	Rate *rate.Limiter
	// Own are names of events that only transactions emit, see [Log.Accept].
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
	durable  uint64            // offset up to which all commits are done
	gone     uint64            // offset up to which no event is left
	kept     []entry           // events that the log keeps, by offset; those after durable are not visible yet
	shares   map[string]*share // of kept, by emitter
	bytes    int64             // sum of the sizes of kept
	pending  []pendingEntry    // events whose commit is not done yet, in order
	byID     map[identity]spot // kept and pending events
	subs     map[string]map[*subscription]struct{}
	wild     map[string]struct{} // the patterns in subs that have a wildcard
}

// An entry is what is in memory of an event.
type entry struct {
	offset   uint64
	name     string // shared by all events of that name
	identity identity
	share    string // whose it is, see [shareOf]
	size     int64
	before   gap // events that were removed between the one before it and this one
}

// An identity is what CloudEvents requires to be unique for each event.
type identity struct{ source, id string }

// A spot is where an event is in the log. It is durable when ticket is nil.
type spot struct {
	offset uint64
	ticket *store.Ticket
}

// A pendingEntry is an event whose commit is not done.
type pendingEntry struct {
	offset   uint64
	name     string
	identity identity
	ticket   *store.Ticket
}

// Open reads the index of the events in the store. It deletes those that pass
// the limits of opt.
func Open(opt Options) (*Log, error) {
	l := &Log{opt: opt, shares: map[string]*share{}, byID: map[identity]spot{}, subs: map[string]map[*subscription]struct{}{}, wild: map[string]struct{}{}}
	var bad error
	var before gap
	err := opt.Store.Scan(opt.Bucket, nil, nil, false, func(key, value []byte) bool {
		before, bad = l.load(binary.BigEndian.Uint64(key), value, before)
		return bad == nil
	})
	if err == nil {
		err = bad
	}
	if err != nil {
		return nil, fmt.Errorf("open event log: %w", err)
	}
	l.durable = l.enqueued
	if len(l.kept) > 0 {
		l.gone = l.kept[0].offset - 1
	}
	if stale := l.shrink(); len(stale) > 0 {
		opt.Store.Enqueue(store.Batch{Puts: stale, Lazy: true})
	}
	return l, nil
}

// load adds an event when the log is opened, or returns the gap that a record in its place is
// of. Offsets without a record belong to commits that the store refused.
func (l *Log) load(offset uint64, value []byte, before gap) (gap, error) {
	var e struct {
		ID      string   `json:"id"`
		Name    string   `json:"type"`
		Source  string   `json:"source"`
		By      string   `json:"by"`
		Path    []string `json:"path"`
		Removed int      `json:"removed"`
	}
	if err := json.Unmarshal(value, &e); err != nil {
		return gap{}, fmt.Errorf("event %d: %w", offset, err)
	}
	l.enqueued = offset
	if e.Removed > 0 {
		return gap{count: e.Removed, mark: offset}, nil
	}
	next := newEntry(&sentinels.Event{ID: e.ID, Name: e.Name, Source: e.Source, By: e.By, Path: e.Path}, offset, int64(len(value)))
	next.before = before
	l.keep(next)
	l.byID[next.identity] = spot{offset: offset}
	return gap{}, nil
}

// newEntry shares the strings that many events have in common.
func newEntry(e *sentinels.Event, offset uint64, size int64) entry {
	return entry{
		offset: offset, size: size, name: unique.Make(e.Name).Value(), share: unique.Make(shareOf(e)).Value(),
		identity: identity{unique.Make(e.Source).Value(), e.ID},
	}
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
		n = min(n, len(l.kept))
	}
	return uint64(max(n/4, 1))
}

// Newest returns up to limit committed events that match pattern, the newest
// last. An empty pattern matches all. Together they have at most so many bytes in the store, but the
// newest is returned whatever its size; 0 means unlimited. more reports whether this bound left out others.
func (l *Log) Newest(pattern string, limit int, bytes int64) (out []sentinels.Event, more bool, err error) {
	return l.readAll(l.newest(pattern, limit, bytes, nil))
}

// NewestOfUsers is [Log.Newest] of all events that the engine has not emitted.
func (l *Log) NewestOfUsers(limit int, bytes int64) (out []sentinels.Event, more bool, err error) {
	return l.readAll(l.newest("", limit, bytes, sentinels.FromEngine))
}

func (l *Log) readAll(offsets []uint64, more bool) ([]sentinels.Event, bool, error) {
	out := make([]sentinels.Event, 0, len(offsets))
	for _, n := range offsets {
		e, found, err := l.read(n)
		if err != nil {
			return nil, false, err
		}
		if found { // else newer ones have replaced it meanwhile
			out = append(out, e)
		}
	}
	return out, more, nil
}

// newest returns the offsets of what Newest returns, in order, without events of the sources that
// without names; nil leaves out none.
func (l *Log) newest(pattern string, limit int, bytes int64, without func(source string) bool) (offsets []uint64, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advance()
	var size int64
	for i := l.after(l.durable) - 1; i >= 0 && len(offsets) < limit; i-- {
		if e := &l.kept[i]; (pattern == "" || sentinels.MatchEvent(pattern, e.name)) && (without == nil || !without(e.identity.source)) {
			if size += e.size; bytes > 0 && size > bytes && len(offsets) > 0 {
				more = true
				break
			}
			offsets = append(offsets, e.offset)
		}
	}
	slices.Reverse(offsets)
	return offsets, more
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
