package execution

import (
	"context"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/runindex"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// signalStored appends a signal to the journal of a run that no process executes. It
// takes effect when the run is resumed.
func (ex *Executor) signalStored(ctx context.Context, info run.Info, sig *journal.SignalBody) error {
	var left []run.PendingDecision
	for _, q := range info.Decisions {
		if q.Call != sig.Call {
			left = append(left, q)
		}
	}
	info.Decisions = left
	noteDecision(&info, sig)
	return ex.appendStored(ctx, &info, &journal.Record{Kind: journal.Signal, Signal: sig})
}

// appendStored appends a record to the journal of a run that no process executes, and
// writes its summary.
func (ex *Executor) appendStored(ctx context.Context, info *run.Info, rec *journal.Record) error {
	seq, _, err := ex.opt.Store.LastSeq(string(info.ID))
	if err != nil {
		return err
	}
	return ex.appendAfter(ctx, seq, info, rec)
}

// errTakenOver is returned if this process has taken over the run since the caller
// looked.
var errTakenOver = failure.New(abi.Conflict, "the run was resumed meanwhile")

// appendAfter is appendStored for a caller that has read the journal up to record seq.
// If seq is not the newest record any more, the error is [store.ErrSequence]. It
// excludes takeovers: a record that is appended during one would conflict with those of
// the run.
func (ex *Executor) appendAfter(ctx context.Context, seq uint64, info *run.Info, rec *journal.Record) error {
	ex.takeoverMu.Lock()
	defer ex.takeoverMu.Unlock()
	if ex.live(info.ID) != nil {
		return errTakenOver
	}
	now := time.Now().UTC()
	info.UpdatedAt, rec.Time = now, now.UnixMicro()
	rec.Elapsed = info.Elapsed * 1000
	b, err := journal.Encode(rec)
	if err != nil {
		return err
	}
	value, err := ex.opt.Index.Project().Encode(*info)
	if err != nil {
		return err
	}
	event, err := ex.storedEvent(info, rec, seq+1)
	if err != nil {
		return err
	}
	puts := []store.Put{{Bucket: BucketRuns, Key: []byte(info.ID), Value: value}}
	if info.Status.Final() {
		puts = append(puts, runindex.EndPut(info.ID))
	}
	ticket := ex.enqueue(store.Batch{
		Appends: []store.Append{{Run: string(info.ID), Seq: seq + 1, Record: b}},
		Puts:    puts,
	}, event)
	over := *info
	if !over.Status.Final() {
		return ex.opt.Health.Await(ctx, ticket)
	}
	ticket.OnDone(func(err error) { // even if the caller has given up
		if err == nil {
			ex.opt.Index.Ended(over)
		}
	})
	if err := ex.opt.Health.Await(ctx, ticket); err != nil {
		return err
	}
	ex.opt.Index.Ended(over) // OnDone may be called after Await has returned
	return nil
}
