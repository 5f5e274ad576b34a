package history_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
)

// numbered is a record with its number.
type numbered struct {
	seq uint64
	rec *journal.Record
}

func find(t *testing.T, wanted int, records []numbered) (f history.Finder, read int) {
	t.Helper()
	f.Wanted = wanted
	st := &history.State{}
	for i, r := range records {
		if f.Add(r.seq, r.rec, st) {
			return f, i
		}
		if err := st.Apply(r.seq, r.rec); err != nil {
			t.Fatal(err)
		}
	}
	return f, len(records)
}

func threeIterations() []numbered {
	end := func() *journal.Record {
		return step("0", []int{0}, &journal.Record{StepEnd: &journal.StepEndBody{Output: value("1")}})
	}
	return []numbered{
		{1, runStart()},
		{2, iterationStart(1)}, {3, end()}, {4, iterationEnd(1)},
		{5, iterationStart(2)}, {6, end()}, {7, iterationEnd(2)},
		{8, iterationStart(3)}, {9, end()},
	}
}

func TestFinder(t *testing.T) {
	whole := threeIterations()
	trimmed := append(whole[:1:1], whole[5:]...) // retention has removed records 2 to 5
	for _, tt := range []struct {
		name        string
		wanted      int
		records     []numbered
		number      int
		from, first uint64
		kept        []int
		ends, read  int
	}{
		{"newest", 0, whole, 3, 7, 8, []int{1, 2, 3}, 1, 9},
		{"first", 1, whole, 1, 1, 2, []int{1}, 1, 3},
		{"second", 2, whole, 2, 4, 5, []int{1, 2}, 1, 6},
		{"one that is to come", 4, whole, 0, 0, 0, []int{1, 2, 3}, 0, 9},
		{"one that is not kept from its start", 2, trimmed, 0, 0, 0, []int{3}, 0, 5},
		{"newest of a trimmed journal", 0, trimmed, 3, 7, 8, []int{3}, 1, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, read := find(t, tt.wanted, tt.records)
			got := f.Found
			if got.Number != tt.number || got.From != tt.from || got.First != tt.first || len(got.Ends) != tt.ends || read != tt.read {
				t.Errorf("found %+v after %d records, want %+v", got, read, tt)
			}
			if diff := cmp.Diff(tt.kept, f.Kept); diff != "" {
				t.Errorf("kept iterations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCallReader(t *testing.T) {
	var r history.CallReader
	call := func(rec *journal.Record) *journal.Record { return step("0", []int{2}, rec) }
	for i, rec := range []*journal.Record{
		call(&journal.Record{CallEnd: &journal.CallEndBody{Seq: 1}}), // its iteration.start is not kept
		iterationStart(4),
		call(&journal.Record{StepStart: &journal.StepStartBody{Type: "command", Address: "0"}}),
		call(&journal.Record{CallStart: &journal.CallStartBody{Seq: 7, Function: "sentinel_command"}}),
	} {
		if a, c := r.Add(rec); a != nil || c != nil {
			t.Errorf("record %d: got %+v, %+v", i, a, c)
		}
	}
	a, c := r.Add(call(&journal.Record{CallEnd: &journal.CallEndBody{Seq: 7, Result: value("9")}}))
	if c == nil || c.Seq != 7 || c.Start == nil || string(c.End.Result.JSON) != "9" || a.Number != 2 || a.Start == nil || r.Iteration != 4 {
		t.Errorf("got %+v, %+v in iteration %d", a, c, r.Iteration)
	}
}
