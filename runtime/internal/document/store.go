package document

import (
	"context"
	"errors"
	"sync"

	"github.com/sentinel-runtime/sentinel/internal/fairqueue"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Bucket is where the documents are in the store: collection \x00 id -> document.
const Bucket = "documents"

// Options are what a Store needs. All are required.
type Options struct {
	Store Tables
	// Events is the log that receives what transactions emit.
	Events Events
	// Writable returns why the engine accepts nothing new, nil if it does.
	Writable func() error
	// Await waits until a commit is done on behalf of a client, or returns the error
	// unavailable if the store stalls.
	Await func(context.Context, *store.Ticket) error
}

// Tables are where documents are kept, a part of [store.Store].
type Tables interface {
	Enqueue(b store.Batch) *store.Ticket
	Get(bucket string, key []byte) (value []byte, found bool, err error)
	Scan(bucket string, prefix, after []byte, reverse bool, fn func(key, value []byte) bool) error
}

// Events is the event log as transactions use it.
type Events interface {
	// Accept returns an event as the log keeps it, with the agent or model behind the call of ctx,
	// and counts it; or why it may not be emitted.
	Accept(ctx context.Context, e sentinels.Event) (sentinels.Event, error)
	// AppendAll calls commit once with the writes for the events that the log does
	// not have yet. If it returns an error, it has not called commit.
	AppendAll(events []sentinels.Event, commit func(puts ...store.Put) *store.Ticket) error
}

// Store is collections of JSON documents. What a command writes through a [Tx]
// becomes durable together with the command's answer, so such a command happens
// exactly once.
//
// # Concurrency
//
// Safe for concurrent use. Transactions that may write execute one after the other, in turn for each
// owner (see [WithOwner]); keep them short. Those of [Store.View] wait for none and keep none waiting.
type Store struct {
	opt     Options
	indexes map[string][]*Index // by collection

	writers *fairqueue.Queue // its one place is that of the open transaction that may write
	usage   map[string]int64 // bytes of documents by owner, see [Tx.CountFor]; nil until it is needed; of that transaction

	pendingMu sync.Mutex
	pending   map[string]pendingWrite // by key; enqueued, and perhaps not committed yet
	counter   uint64                  // of transactions with writes
}

// A pendingWrite is on its way to the disk: later transactions must see it already.
type pendingWrite struct {
	doc         sentinels.Document
	owner       string // see [Quota]
	size        int    // in the store
	deleted     bool
	transaction uint64
}

// counted returns for whom the document counts, and with how many bytes.
func (w *pendingWrite) counted() (owner string, size int) {
	if w.deleted || w.owner == "" {
		return "", 0
	}
	return w.owner, w.size
}

// New returns the documents of a store.
func New(opt Options) *Store {
	return &Store{opt: opt, writers: fairqueue.New(1), pending: map[string]pendingWrite{}}
}

type ownerKey struct{}

// WithOwner returns a context whose transactions wait in the queue of an agent or a model; without
// one they wait in that of persons.
func WithOwner(ctx context.Context, owner string) context.Context {
	return context.WithValue(ctx, ownerKey{}, owner)
}

// enter waits until no other transaction may write.
func (s *Store) enter(ctx context.Context) (leave func(), err error) {
	owner, _ := ctx.Value(ownerKey{}).(string)
	return s.writers.Enter(ctx, fairqueue.Of(owner))
}

// View executes fn in a transaction that only reads, beside all others. fn sees each document, and each
// page of a scan, as it is at the time of the read: what commits in between may be in the later ones only.
func (s *Store) View(ctx context.Context, fn func(*Tx) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	tx := &Tx{store: s, readOnly: true}
	defer func() { tx.done = true }()
	return fn(tx)
}

// Update executes fn in a transaction and waits until its writes are durable. When
// fn fails, nothing is written. A transaction with writes is the error unavailable
// while the engine is read-only.
func (s *Store) Update(ctx context.Context, fn func(*Tx) error) error {
	var ticket *store.Ticket
	var empty bool
	err := s.Transact(ctx, func(tx *Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		if empty = len(tx.puts)+len(tx.events) == 0; empty {
			return nil
		}
		return s.opt.Writable()
	}, func(puts []store.Put) *store.Ticket {
		if !empty {
			ticket = s.opt.Store.Enqueue(store.Batch{Puts: puts})
		}
		return ticket
	})
	if err != nil || ticket == nil {
		return err
	}
	return s.opt.Await(ctx, ticket)
}

// Transact executes fn in a transaction and gives its writes to commit, which
// enqueues them in a batch of the caller's and returns its ticket. commit is called
// once, also without writes, while no other transaction is open. When Transact
// returns an error, nothing is written; it does not wait for the commit. The wait for
// other transactions ends with ctx.
func (s *Store) Transact(ctx context.Context, fn func(*Tx) error, commit func(puts []store.Put) *store.Ticket) error {
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	tx := &Tx{store: s, wrote: map[string]pendingWrite{}}
	defer func() { tx.done = true }()
	if err := fn(tx); err != nil {
		return err
	}
	var ticket *store.Ticket
	err = s.opt.Events.AppendAll(tx.events, func(puts ...store.Put) *store.Ticket {
		ticket = commit(append(tx.puts, puts...))
		return ticket
	})
	if err != nil || len(tx.wrote) == 0 {
		return err
	}
	if ticket == nil {
		return errors.New("documents: transaction was not enqueued")
	}
	s.show(tx.wrote, ticket)
	if tx.usage != nil {
		s.usage = tx.usage
	}
	return nil
}

// show makes writes visible to later transactions until the store has them.
func (s *Store) show(wrote map[string]pendingWrite, ticket *store.Ticket) {
	s.pendingMu.Lock()
	s.counter++
	n := s.counter
	for key, w := range wrote {
		w.transaction = n
		s.pending[key] = w
	}
	s.pendingMu.Unlock()
	ticket.OnDone(func(error) {
		s.pendingMu.Lock()
		defer s.pendingMu.Unlock()
		for key := range wrote {
			if s.pending[key].transaction == n { // else a later transaction has written it
				delete(s.pending, key)
			}
		}
	})
}
