package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/eventlog"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Records are collections of JSON documents in the runtime's own store. What a
// command writes through a [RecordsTx] becomes durable together with the
// command's answer, so such a command happens exactly once.
//
// # Concurrency
//
// Safe for concurrent use. Transactions run one after another; keep them short.
type Records struct {
	db       store.Store
	await    func(context.Context, ticket) error // for a commit, see [Runtime.await]
	writable func() error                        // why nothing new is taken, see [Runtime.writable]
	events   *eventlog.Log                       // takes what transactions emit

	mu      sync.Mutex             // held by the transaction that is open
	ahead   map[string]aheadRecord // written, but perhaps not yet committed
	aheadMu sync.Mutex
	counter uint64
}

// An aheadRecord is a write on its way to the disk: later transactions must see
// it already.
type aheadRecord struct {
	doc     sentinels.Document
	deleted bool
	n       uint64
}

func newRecords(rt *Runtime) *Records {
	return &Records{db: rt.db, ahead: map[string]aheadRecord{}, writable: rt.writable, await: rt.await}
}

// Records returns the runtime's document store.
func (rt *Runtime) Records() *Records { return rt.records }

// Update runs fn in a transaction and waits until its writes are durable. When
// fn fails, nothing is written.
func (r *Records) Update(ctx context.Context, fn func(*RecordsTx) error) error {
	var ticket *store.Ticket
	err := r.transact(func(tx *RecordsTx) error {
		if err := fn(tx); err != nil {
			return err
		}
		if len(tx.puts)+len(tx.events) == 0 {
			return nil
		}
		if err := r.writable(); err != nil {
			return err
		}
		return r.events.AppendAll(tx.events, func(puts ...store.Put) *store.Ticket {
			ticket = r.db.Enqueue(store.Batch{Puts: append(tx.puts, puts...)})
			return ticket
		})
	}, func() *store.Ticket { return ticket })
	if err != nil || ticket == nil {
		return err
	}
	return r.await(ctx, ticket)
}

// transact runs fn, which must have enqueued tx's puts when it returns nil, and
// publishes the writes to later transactions.
func (r *Records) transact(fn func(*RecordsTx) error, ticket func() *store.Ticket) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	tx := &RecordsTx{records: r, wrote: map[string]aheadRecord{}}
	defer func() { tx.done = true }()
	if err := fn(tx); err != nil {
		return err
	}
	if len(tx.wrote) == 0 {
		return nil
	}
	r.aheadMu.Lock()
	r.counter++
	n := r.counter
	for k, w := range tx.wrote {
		w.n = n
		r.ahead[k] = w
	}
	r.aheadMu.Unlock()
	t := ticket()
	if t == nil {
		return errors.New("records: transaction was not enqueued")
	}
	t.OnDone(func(error) {
		r.aheadMu.Lock()
		defer r.aheadMu.Unlock()
		for k := range tx.wrote {
			if r.ahead[k].n == n {
				delete(r.ahead, k)
			}
		}
	})
	return nil
}

// A RecordsTx is the documents as one transaction sees them: its own writes at
// once. It is not safe for concurrent use and dead after its transaction.
type RecordsTx struct {
	records *Records
	wrote   map[string]aheadRecord
	puts    []store.Put
	events  []sentinels.Event // to be emitted with the writes
	done    bool
}

func recordKey(collection, id string) []byte { return []byte(collection + "\x00" + id) }

func (tx *RecordsTx) lookup(key []byte) (sentinels.Document, bool, error) {
	if tx.done {
		return sentinels.Document{}, false, errors.New("records: transaction is over")
	}
	if w, ok := tx.wrote[string(key)]; ok {
		return w.doc, !w.deleted, nil
	}
	tx.records.aheadMu.Lock()
	w, ok := tx.records.ahead[string(key)]
	tx.records.aheadMu.Unlock()
	if ok {
		return w.doc, !w.deleted, nil
	}
	raw, ok, err := tx.records.db.Get(bucketRecords, key)
	if err != nil || !ok {
		return sentinels.Document{}, false, err
	}
	var doc sentinels.Document
	if err := json.Unmarshal(raw, &doc); err != nil {
		return doc, false, errf(abi.Internal, "read document %q: %v", key, err)
	}
	return doc, true, nil
}

// Get returns a document, or the error not_found.
func (tx *RecordsTx) Get(_ context.Context, collection, id string) (sentinels.Document, error) {
	doc, ok, err := tx.lookup(recordKey(collection, id))
	if err == nil && !ok {
		err = errf(abi.NotFound, "collection %q has no document %q", collection, id)
	}
	return doc, err
}

// Scan calls fn for the documents of a collection in the order of their ids,
// beginning behind after, until fn returns false.
func (tx *RecordsTx) Scan(_ context.Context, collection, after string, reverse bool, fn func(sentinels.Document) bool) error {
	if tx.done {
		return errors.New("records: transaction is over")
	}
	prefix := recordKey(collection, "")
	own := tx.overlay(prefix)
	var behind []byte
	if after != "" {
		behind = recordKey(collection, after)
	}
	merged := newMerge(own, reverse, after)
	var bad error
	stopped := false
	emit := func(doc sentinels.Document) bool {
		if !fn(doc) {
			stopped = true
		}
		return !stopped
	}
	err := tx.records.db.Scan(bucketRecords, prefix, behind, reverse, func(key, value []byte) bool {
		id := string(key[len(prefix):])
		for _, doc := range merged.before(id) {
			if !emit(doc) {
				return false
			}
		}
		if merged.shadows(id) {
			return true
		}
		var doc sentinels.Document
		if bad = json.Unmarshal(value, &doc); bad != nil {
			return false
		}
		return emit(doc)
	})
	if err = errors.Join(err, bad); err != nil || stopped {
		return err
	}
	for _, doc := range merged.rest() {
		if !emit(doc) {
			break
		}
	}
	return nil
}

// overlay returns what is written but not committed under prefix, by id.
func (tx *RecordsTx) overlay(prefix []byte) map[string]aheadRecord {
	own := map[string]aheadRecord{}
	collect := func(from map[string]aheadRecord) {
		for k, w := range from {
			if len(k) >= len(prefix) && k[:len(prefix)] == string(prefix) {
				own[k[len(prefix):]] = w
			}
		}
	}
	tx.records.aheadMu.Lock()
	collect(tx.records.ahead)
	tx.records.aheadMu.Unlock()
	collect(tx.wrote)
	return own
}

// Put writes a document. expect is the revision it was made on: 0 for a new
// one, [sentinels.AnyRevision] for whatever is there; else conflict.
func (tx *RecordsTx) Put(_ context.Context, collection, id string, data json.RawMessage, expect uint64) (sentinels.Document, error) {
	key := recordKey(collection, id)
	old, ok, err := tx.lookup(key)
	if err != nil {
		return old, err
	}
	if err := checkRevision(collection, id, old, ok, expect); err != nil {
		return old, err
	}
	now := time.Now().UTC()
	doc := sentinels.Document{Collection: collection, ID: id, Revision: 1, CreatedAt: now, UpdatedAt: now, Data: data}
	if ok {
		doc.Revision, doc.CreatedAt = old.Revision+1, old.CreatedAt
	}
	value, err := json.Marshal(doc)
	if err != nil {
		return doc, errf(abi.BadFields, "write document %q of %q: %v", id, collection, err)
	}
	tx.wrote[string(key)] = aheadRecord{doc: doc}
	tx.puts = append(tx.puts, store.Put{Bucket: bucketRecords, Key: key, Value: value})
	return doc, nil
}

// Delete removes a document; expect is as in Put, and a missing one not_found.
func (tx *RecordsTx) Delete(_ context.Context, collection, id string, expect uint64) error {
	key := recordKey(collection, id)
	old, ok, err := tx.lookup(key)
	if err != nil {
		return err
	}
	if !ok {
		return errf(abi.NotFound, "collection %q has no document %q", collection, id)
	}
	if err := checkRevision(collection, id, old, ok, expect); err != nil {
		return err
	}
	tx.wrote[string(key)] = aheadRecord{doc: old, deleted: true}
	tx.puts = append(tx.puts, store.Put{Bucket: bucketRecords, Key: key, Delete: true})
	return nil
}

func checkRevision(collection, id string, old sentinels.Document, exists bool, expect uint64) error {
	if expect == sentinels.AnyRevision {
		return nil
	}
	current := uint64(0)
	if exists {
		current = old.Revision
	}
	if current != expect {
		return errf(abi.Conflict, "document %q of %q: made on revision %d, the current one is %d", id, collection, expect, current)
	}
	return nil
}

// Emit puts an event into the log in the moment in which the transaction's
// writes become durable. e needs an ID, the same for every repetition of the
// call: an event that the log has already is not emitted again. A chain of
// events that has become too long is the error limit.
func (tx *RecordsTx) Emit(ctx context.Context, e sentinels.Event) error {
	if e.ID == "" || e.Name == "" {
		return errf(abi.Internal, "emit in a transaction: an event needs an id and a name")
	}
	if err := tx.records.events.Accept(ctx, e); err != nil {
		return err
	}
	if e.Time.IsZero() {
		e.Time = time.Now().UTC()
	}
	tx.events = append(tx.events, e)
	return nil
}
