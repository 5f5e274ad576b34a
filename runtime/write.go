package runtime

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
)

// blobSize is the size from which a value is kept as a blob beside the journal.
const blobSize = 64 << 10

// journalLog orders a run's records. Its lock is held while records get their
// numbers, are applied to the run's state and are enqueued, so that all three
// have one order.
type journalLog struct {
	mu    sync.Mutex
	bytes int64 // kept in the store, about
}

type writeOptions struct {
	lazy bool        // no caller waits
	info bool        // the run's summary changed: write it along
	puts []store.Put // written in the same commit
}

// write appends records to the run's journal, in order, in one commit, and
// applies them to the run's state. Nothing else changes that state. A record that
// cannot be encoded or applied is a fault of the program and panics.
func (r *run) write(opt writeOptions, records ...*journal.Record) *store.Ticket {
	now := time.Now().UnixMicro()
	elapsed := r.clock.Elapsed().Microseconds()
	encoded := make([][]byte, len(records))
	for i, rec := range records {
		if rec.Time == 0 {
			rec.Time = now
		}
		rec.Elapsed = elapsed
		b, err := journal.Encode(rec)
		if err != nil {
			panic(err)
		}
		encoded[i] = b
	}
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	b := store.Batch{Lazy: opt.lazy, Puts: opt.puts, Appends: make([]store.Append, 0, len(records))}
	first := r.apply(records)
	for i := range records {
		r.log.bytes += int64(len(encoded[i]))
		b.Appends = append(b.Appends, store.Append{Run: string(r.id), Seq: first + uint64(i), Record: encoded[i]})
	}
	if opt.info {
		b.Puts = append(b.Puts, r.infoPut())
	}
	return r.rt.db.Enqueue(b)
}

// apply applies records to the run's state and returns the number of the first
// one. The caller holds r.log.mu.
func (r *run) apply(records []*journal.Record) (first uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first = r.state.Seq + 1
	for _, rec := range records {
		if err := r.state.Apply(r.state.Seq+1, rec); err != nil {
			panic(fmt.Errorf("run %s: %w", r.id, err))
		}
		switch {
		case rec.IterationEnd != nil:
			r.info.Snapshot = r.state.Seq
		case rec.CallEnd != nil:
			r.emitting -= rec.CallEnd.Emitted // the state counts them now
		}
		if observe := r.rt.opt.applied; observe != nil {
			observe(r.id, &r.state)
		}
	}
	// The engine has the definitions decoded, and ten thousand runs that wait
	// would each hold a text.
	r.state.Definitions.Unload()
	return first
}

// infoPut returns the write of the run's summary. The caller holds r.log.mu, so
// that summaries are written in the order of what they sum up.
func (r *run) infoPut() store.Put {
	r.mu.Lock()
	r.info.Iteration, r.info.Usage, r.info.UpdatedAt = r.state.Iteration, r.state.Usage, time.Now().UTC()
	r.info.Elapsed = r.clock.Elapsed().Milliseconds()
	r.info.Revision, r.info.Hash, r.info.Edit = r.revision, r.hash, r.edits()
	value, err := json.Marshal(r.info)
	r.mu.Unlock()
	if err != nil {
		panic(fmt.Errorf("encode run summary: %w", err))
	}
	return store.Put{Bucket: bucketRuns, Key: []byte(r.id), Value: value}
}

// value wraps v for a record, without secrets.
func (rt *Runtime) value(v json.RawMessage) (journal.Value, error) { return rt.keep(rt.redact(v)) }

// keep wraps v, which is redacted, for a record; a large one becomes a blob,
// durable first.
func (rt *Runtime) keep(v json.RawMessage) (journal.Value, error) {
	if len(v) <= blobSize {
		return journal.Value{JSON: journal.Compact(v)}, nil
	}
	return rt.keepBlob(v)
}

// keepBlob makes v a blob, durable first.
func (rt *Runtime) keepBlob(v json.RawMessage) (journal.Value, error) {
	digest, err := rt.putBlob(v)
	if err != nil {
		return journal.Value{}, fmt.Errorf("keep value of %d bytes: %w", len(v), err)
	}
	return journal.Value{Blob: &journal.Blob{Digest: digest, Size: int64(len(v)), Loaded: v}}, nil
}

// load returns what value kept; nil for an empty one.
func (rt *Runtime) load(v journal.Value) (json.RawMessage, error) {
	if v.Blob == nil || v.Loaded != nil {
		return v.Content(), nil
	}
	return rt.db.Blob(v.Digest)
}
