package history_test

import (
	"errors"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// timed sets the time of a record.
func timed(at int64, rec *journal.Record) *journal.Record {
	rec.Time = at
	return rec
}

// An extent has the times, the newest snapshot, the end and the largest offset in
// the event log, whichever record has it.
func TestExtent(t *testing.T) {
	begin := runStart()
	begin.RunStart.EventCursor = 3
	wait := step("1", []int{1}, &journal.Record{CallStart: &journal.CallStartBody{Seq: 1, Cursor: 9}})
	// Offsets of events of runs are those of another log.
	others := step("2", []int{1}, &journal.Record{CallStart: &journal.CallStartBody{Seq: 1, Cursor: 99, Label: "sentinel:a:failed"}})
	came := step("2", []int{1}, &journal.Record{CallEnd: &journal.CallEndBody{Seq: 1, EventSeq: 100}})
	end := &journal.Record{Kind: journal.RunEnd, RunEnd: &journal.RunEndBody{Status: sentinels.StatusCompleted}}
	var x history.Extent
	for i, c := range []struct {
		rec      *journal.Record
		offset   uint64
		snapshot uint64
		ended    bool
	}{
		{timed(10, begin), 3, 0, false},
		{timed(20, iterationStart(1)), 3, 0, false},
		{timed(30, iterationEnd(1)), 5, 3, false},
		{timed(40, iterationStart(2)), 5, 3, false},
		{timed(50, wait), 9, 3, false},
		{timed(52, others), 9, 3, false},
		{timed(54, came), 9, 3, false},
		{timed(60, end), 9, 3, true},
	} {
		if err := x.Apply(uint64(i+1), c.rec); err != nil {
			t.Fatal(err)
		}
		if x.EventOffset != c.offset || x.Snapshot != c.snapshot || (x.End != nil) != c.ended || x.Began != 10 || x.Newest != c.rec.Time {
			t.Errorf("record %d: %+v", i+1, x)
		}
	}
	if x.Iteration != 2 || x.Seq != 8 {
		t.Errorf("iteration %d, record %d", x.Iteration, x.Seq)
	}
}

// A fork begins with the cursors of the other run.
func TestExtentOfAFork(t *testing.T) {
	begin := runStart()
	begin.RunStart.EventCursor = 3
	begin.RunStart.Fork = &journal.Fork{Iteration: 2, EventSeq: 7, Cursors: map[string]uint64{"a": 12, "b": 4, "sentinel:*:failed": 40}}
	var x history.Extent
	if err := x.Apply(1, begin); err != nil || x.EventOffset != 12 {
		t.Errorf("offset %d, %v", x.EventOffset, err)
	}
}

// A record that does not follow is an error, and changes nothing but the state.
func TestExtentOfAGap(t *testing.T) {
	var x history.Extent
	if err := x.Apply(1, timed(10, runStart())); err != nil {
		t.Fatal(err)
	}
	if err := x.Apply(7, timed(20, iterationEnd(4))); err != nil { // retention leaves such a hole
		t.Fatal(err)
	}
	var gap *history.GapError
	if err := x.Apply(9, timed(30, iterationStart(5))); !errors.As(err, &gap) || x.Newest != 20 || x.Snapshot != 7 || !x.Complete() {
		t.Errorf("%+v, %v", x, err)
	}
}
