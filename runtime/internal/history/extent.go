package history

import (
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// An Extent is a run as far as its journal reaches. A repair uses it for journals
// whose newest records may be lost. The zero value is the extent of an empty
// journal.
type Extent struct {
	State
	Began  int64 // time of the first record in microseconds since 1970
	Newest int64 // time of the newest record
	// Snapshot is the number of the newest iteration.end, 0 if there is none.
	Snapshot uint64
	// End is the record of the run's end, nil if the run has not ended.
	End *journal.RunEndBody
	// EventOffset is the largest offset in the event log that a record has. The run
	// may have read all events up to it.
	EventOffset uint64
}

// Apply applies a record as [State.Apply] does. After an error the state is not to
// be used; the other fields are those of the records before.
func (x *Extent) Apply(seq uint64, rec *journal.Record) error {
	if err := x.State.Apply(seq, rec); err != nil {
		return err
	}
	if rec.RunStart != nil {
		x.Began = rec.Time
	}
	x.Newest, x.End = rec.Time, rec.RunEnd
	if rec.IterationEnd != nil {
		x.Snapshot = seq
	}
	x.EventOffset = max(x.EventOffset, eventOffset(rec), largest(x.Cursors)) // events that were received move a cursor
	return nil
}

// eventOffset returns the largest offset in the event log that a record has, apart from
// what it adds to the cursors of the state.
func eventOffset(rec *journal.Record) uint64 {
	switch {
	case rec.RunStart != nil:
		offset := rec.RunStart.EventCursor
		if fork := rec.RunStart.Fork; fork != nil {
			offset = max(offset, largest(fork.Cursors))
			if fork.Event != nil && !sentinels.IsRunEvent(fork.Event.Name) {
				offset = max(offset, fork.EventSeq)
			}
		}
		return offset
	case rec.CallStart != nil && !sentinels.IsRunEvent(rec.CallStart.Label):
		return rec.CallStart.Cursor
	}
	return 0
}

// largest returns the largest cursor in the event log. Those of events of runs are in
// another log.
func largest(cursors map[string]uint64) (offset uint64) {
	for pattern, n := range cursors {
		if !sentinels.IsRunEvent(pattern) {
			offset = max(offset, n)
		}
	}
	return offset
}
