package execution

import (
	"fmt"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/execution/step"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A journalLog orders a run's records. Its lock is held while records are numbered,
// applied to the run's state and enqueued, so that all three have one order.
type journalLog struct {
	mu    sync.Mutex
	bytes int64 // approximate size of the records that the store keeps
}

// Write appends records to the run's journal, in order, in one commit, and applies them
// to the run's state. Nothing else changes that state. It panics if a record cannot be
// encoded or applied, which is a bug.
func (r *liveRun) Write(c step.Commit, records ...*journal.Record) *store.Ticket {
	return r.writeSummary(c, nil, records...)
}

// writeSummary is Write for records that change the run's summary.
func (r *liveRun) writeSummary(c step.Commit, change func(*run.Info), records ...*journal.Record) *store.Ticket {
	now := time.Now().UnixMicro()
	elapsed := r.clock.Elapsed().Microseconds()
	encoded := make([][]byte, len(records))
	for i, rec := range records {
		if rec.Time == 0 {
			rec.Time = now
		}
		rec.Elapsed = elapsed
		b, err := journal.Encode(r.ex.relative(rec))
		if err != nil {
			panic(err)
		}
		encoded[i] = b
	}
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	b := store.Batch{Lazy: c.Lazy, Puts: c.Puts, Appends: make([]store.Append, 0, len(records))}
	given := len(r.folded.GivenBy()) // which r.log.mu alone changes
	first := r.apply(records)
	c.Summary = c.Summary || len(r.folded.GivenBy()) > given
	for i := range records {
		r.log.bytes += int64(len(encoded[i]))
		b.Appends = append(b.Appends, store.Append{Run: string(r.id), Seq: first + uint64(i), Record: encoded[i]})
	}
	var event *sentinels.Event
	if c.Summary {
		put, after := r.summaryPut(change)
		b.Puts = append(b.Puts, put)
		event = r.statusEvent(&after, records)
	}
	ticket := r.ex.enqueue(b, event)
	if change != nil {
		// Published only now, so that whatever others record after they have seen the
		// change comes behind it in the store.
		r.mu.Lock()
		change(&r.info)
		r.mu.Unlock()
	}
	return ticket
}

// relative returns a record with the workspace as it is stored, see [runindex.Project]. In memory
// it is absolute.
func (ex *Executor) relative(rec *journal.Record) *journal.Record {
	if rec.RunStart == nil {
		return rec
	}
	stored, begin := *rec, *rec.RunStart
	begin.Workspace = ex.opt.Index.Project().Relative(begin.Workspace)
	stored.RunStart = &begin
	return &stored
}

// apply applies records to the run's state and returns the number of the first one. The
// caller holds r.log.mu.
func (r *liveRun) apply(records []*journal.Record) (first uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first = r.folded.Seq + 1
	for _, rec := range records {
		if err := r.folded.Apply(r.folded.Seq+1, rec); err != nil {
			panic(fmt.Errorf("run %s: %w", r.id, err))
		}
		switch {
		case rec.StepStart != nil:
			r.executed = true
		case rec.IterationEnd != nil:
			r.info.Snapshot = r.folded.Seq
		case rec.CallEnd != nil:
			r.emitting -= rec.CallEnd.Emitted // the state counts them now
		}
		if observe := r.ex.opt.Applied; observe != nil {
			observe(r.id, &r.folded)
		}
	}
	// r.def is decoded already. The text would be kept in memory by each of ten
	// thousand waiting runs.
	r.folded.Definitions.Unload()
	return first
}

// summaryPut returns the write of the run's summary with change applied, and that
// summary. The caller holds r.log.mu, so that summaries are written in the order of the
// changes that they contain.
func (r *liveRun) summaryPut(change func(*run.Info)) (put store.Put, after run.Info) {
	r.mu.Lock()
	r.info.Iteration, r.info.Usage, r.info.UpdatedAt = r.folded.Iteration, r.folded.Usage, time.Now().UTC()
	r.info.Elapsed = r.clock.Elapsed().Milliseconds()
	r.info.Revision, r.info.Hash, r.info.Edit = r.revision, r.hash, r.folded.Definitions.Edits()
	r.info.GivenBy = r.folded.GivenBy()
	info := r.info
	if change != nil {
		change(&info)
	}
	value, err := r.ex.opt.Index.Project().Encode(info)
	r.mu.Unlock()
	if err != nil {
		panic(fmt.Errorf("encode run summary: %w", err))
	}
	return store.Put{Bucket: BucketRuns, Key: []byte(r.id), Value: value}, info
}
