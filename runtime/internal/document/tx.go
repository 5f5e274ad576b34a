package document

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A Tx is the documents as one transaction sees them, its own writes included. It
// is not safe for concurrent use, and cannot be used after its transaction.
type Tx struct {
	store  *Store
	wrote  map[string]pendingWrite
	puts   []store.Put
	events []sentinels.Event // emitted with the writes
	quota  Quota
	usage  map[string]int64 // bytes by owner with the writes; nil if none has an owner

	onRead         func(bytes int64) error
	read, mostRead int64 // bytes that scans have read, and should read at most; 0 for any number

	readOnly bool // it is beside the transaction that may write
	done     bool
}

var (
	errDone     = errors.New("documents: transaction is over")
	errReadOnly = errors.New("documents: transaction only reads")
)

func documentKey(collection, id string) []byte { return []byte(collection + "\x00" + id) }

// lookupWrite returns a document with its owner and size: as the transaction wrote it, else as an earlier
// one wrote it that is not durable yet, else as the store has it.
func (tx *Tx) lookupWrite(key []byte) (w pendingWrite, err error) {
	if tx.done {
		return w, errDone
	}
	if w, ok := tx.wrote[string(key)]; ok {
		return w, nil
	}
	tx.store.pendingMu.Lock()
	w, ok := tx.store.pending[string(key)]
	tx.store.pendingMu.Unlock()
	if ok {
		return w, nil
	}
	raw, ok, err := tx.store.opt.Store.Get(Bucket, key)
	if err != nil || !ok {
		return pendingWrite{deleted: true}, err
	}
	var doc stored
	if err := json.Unmarshal(raw, &doc); err != nil {
		return w, failure.New(abi.Internal, "read document %q: %v", key, err)
	}
	return pendingWrite{doc: doc.Document, owner: doc.Owner, size: len(raw)}, nil
}

// Get returns a document, or the error not_found.
func (tx *Tx) Get(_ context.Context, collection, id string) (sentinels.Document, error) {
	w, err := tx.lookupWrite(documentKey(collection, id))
	switch {
	case err != nil:
	case w.deleted:
		err = failure.New(abi.NotFound, "collection %q has no document %q", collection, id)
	case tx.onRead != nil:
		err = tx.onRead(int64(w.size))
	}
	if err != nil {
		return sentinels.Document{}, err
	}
	return w.doc, nil
}

// Put writes a document. expect is the revision that the caller has: 0 for a new
// document, [sentinels.AnyRevision] for any or none. Otherwise it is the error
// conflict.
func (tx *Tx) Put(_ context.Context, collection, id string, data json.RawMessage, expect uint64) (sentinels.Document, error) {
	if tx.readOnly {
		return sentinels.Document{}, errReadOnly
	}
	key := documentKey(collection, id)
	w, err := tx.lookupWrite(key)
	old, ok := w.doc, !w.deleted
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
	value, err := json.Marshal(stored{doc, tx.quota.Owner})
	if err != nil {
		return doc, failure.New(abi.BadFields, "write document %q of %q: %v", id, collection, err)
	}
	owner, size := w.counted()
	if err := tx.count(key, owner, size, tx.quota.Owner, len(value)); err != nil {
		return old, err
	}
	before := &old
	if !ok {
		before = nil
	}
	if err := tx.reindex(before, &doc); err != nil {
		return old, err
	}
	tx.wrote[string(key)] = pendingWrite{doc: doc, owner: tx.quota.Owner, size: len(value)}
	tx.puts = append(tx.puts, store.Put{Bucket: Bucket, Key: key, Value: value})
	return doc, nil
}

// Delete removes a document; expect is as in [Tx.Put]. It is the error not_found if
// there is none.
func (tx *Tx) Delete(_ context.Context, collection, id string, expect uint64) error {
	if tx.readOnly {
		return errReadOnly
	}
	key := documentKey(collection, id)
	w, err := tx.lookupWrite(key)
	old := w.doc
	if err != nil {
		return err
	}
	if w.deleted {
		return failure.New(abi.NotFound, "collection %q has no document %q", collection, id)
	}
	if err := checkRevision(collection, id, old, true, expect); err != nil {
		return err
	}
	if err := tx.reindex(&old, nil); err != nil {
		return err
	}
	owner, size := w.counted()
	if err := tx.count(key, owner, size, "", 0); err != nil {
		return err
	}
	tx.wrote[string(key)] = pendingWrite{doc: old, deleted: true}
	tx.puts = append(tx.puts, store.Put{Bucket: Bucket, Key: key, Delete: true})
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
		return failure.New(abi.Conflict, "document %q of %q: revision conflict: have %d, current is %d", id, collection, expect, current)
	}
	return nil
}

// Emit appends an event to the event log in the same commit as the transaction's
// writes. e needs an ID, the same for every repetition of the call: an event that
// the log has already is not emitted again. A chain of events that has become too
// long is the error limit, and so is more than an iteration may emit.
func (tx *Tx) Emit(ctx context.Context, e sentinels.Event) error {
	if tx.readOnly {
		return errReadOnly
	}
	if e.ID == "" || e.Name == "" {
		return failure.New(abi.Internal, "emit in a transaction: an event needs an id and a name")
	}
	e, err := tx.store.opt.Events.Accept(ctx, e)
	if err != nil {
		return err
	}
	if e.Time.IsZero() {
		e.Time = time.Now().UTC()
	}
	tx.events = append(tx.events, e)
	return nil
}
