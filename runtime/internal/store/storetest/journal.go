package storetest

import (
	"bytes"
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
)

var journalClauses = []clause{
	{name: "S1.1 an unknown run has no records", check: func(t *testing.T, s store.Store) {
		wantJournal(t, s, run1, 0)
		if seq, ok, err := s.LastSeq(run1); seq != 0 || ok || err != nil {
			t.Errorf("last: %d, %v, %v", seq, ok, err)
		}
	}},
	{name: "S1.2 records are read in order, from any number", check: func(t *testing.T, s store.Store) {
		commit(t, s, store.Batch{Appends: appends(run1, 1, 3)})
		commit(t, s, store.Batch{Appends: appends(run1, 4, 9)})
		wantJournal(t, s, run1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
		wantJournal(t, s, run1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9)
		wantJournal(t, s, run1, 8, 8, 9)
		wantJournal(t, s, run1, 10)
		wantLast(t, s, run1, 9)
	}},
	{name: "S1.3 runs do not mix, also at the ends of the key space", check: func(t *testing.T, s store.Store) {
		for _, run := range []string{run2, runF, run1} {
			commit(t, s, store.Batch{Appends: appends(run, 1, 2)})
		}
		commit(t, s, store.Batch{Appends: append(appends(run2, 3, 4), appends(runF, 3, 3)...)})
		wantJournal(t, s, run1, 0, 1, 2)
		wantJournal(t, s, run2, 0, 1, 2, 3, 4)
		wantJournal(t, s, run3, 0)
		wantJournal(t, s, runF, 2, 2, 3)
		wantLast(t, s, run1, 2)
		wantLast(t, s, runF, 3)
	}},
	{name: "S1.4 a wrong sequence number refuses the batch", check: func(t *testing.T, s store.Store) {
		for _, seq := range []uint64{0, 2, store.All} {
			refuse(t, s, store.Batch{Appends: []store.Append{{Run: run1, Seq: seq}}}, store.ErrSequence)
		}
		commit(t, s, store.Batch{Appends: appends(run1, 1, 2)})
		for _, seq := range []uint64{0, 1, 2, 4} {
			refuse(t, s, store.Batch{Appends: []store.Append{{Run: run1, Seq: seq}}}, store.ErrSequence)
		}
		// The second append of the same batch must follow the first.
		refuse(t, s, store.Batch{Appends: []store.Append{{Run: run1, Seq: 3}, {Run: run1, Seq: 3}}}, store.ErrSequence)
		wantJournal(t, s, run1, 0, 1, 2)
		commit(t, s, store.Batch{Appends: appends(run1, 3, 3)})
		wantLast(t, s, run1, 3)
	}},
	{name: "S1.5 an error of fn ends the walk", check: func(t *testing.T, s store.Store) {
		commit(t, s, store.Batch{Appends: appends(run1, 1, 5)})
		var n int
		err := s.Journal(run1, 0, func(uint64, []byte) error {
			if n++; n == 3 {
				return errNo
			}
			return nil
		})
		if err != errNo || n != 3 {
			t.Errorf("walk: %d calls, %v", n, err)
		}
	}},
	{name: "S1.6 a long journal is complete, and fn may write", check: func(t *testing.T, s store.Store) {
		// More than one chunk by number and by size.
		big := bytes.Repeat([]byte("x"), 40<<10)
		for seq := uint64(1); seq <= 1500; seq++ {
			rec := recordOf(seq)
			if seq > 1490 {
				rec = append(rec, big...)
			}
			s.Enqueue(store.Batch{Lazy: true, Appends: []store.Append{{Run: run1, Seq: seq, Record: rec}}})
		}
		commit(t, s, store.Batch{})
		next := uint64(1)
		err := s.Journal(run1, 0, func(seq uint64, record []byte) error {
			if seq != next || !bytes.HasPrefix(record, recordOf(seq)) {
				return fmt.Errorf("record %d, want %d: %.10q", seq, next, record)
			}
			next++
			if seq%500 == 1 {
				commit(t, s, store.Batch{Puts: []store.Put{put("b", "k", strconv.Itoa(int(seq)))}})
			}
			return nil
		})
		if err != nil || next != 1501 {
			t.Fatalf("walk ended at %d: %v", next, err)
		}
	}},
	{name: "S1.7 a trim deletes its records only", check: func(t *testing.T, s store.Store) {
		commit(t, s, store.Batch{Appends: append(appends(run1, 1, 9), appends(run2, 1, 3)...)})
		trim := func(from, to uint64) {
			commit(t, s, store.Batch{Trims: []store.Trim{{Run: run1, From: from, To: to}}})
		}
		trim(1, 4)
		wantJournal(t, s, run1, 0, 5, 6, 7, 8, 9)
		trim(0, 2) // nothing there
		trim(6, 7)
		wantJournal(t, s, run1, 0, 5, 8, 9)
		wantJournal(t, s, run1, 6, 8, 9)
		commit(t, s, store.Batch{Appends: appends(run1, 10, 10)})
		trim(10, 10)
		commit(t, s, store.Batch{Appends: appends(run1, 10, 11)})
		trim(1, store.All)
		wantJournal(t, s, run1, 0)
		wantJournal(t, s, run2, 0, 1, 2, 3)
		commit(t, s, store.Batch{Appends: appends(run1, 1, 1)})
		wantLast(t, s, run1, 1)
	}},
	{name: "S1.8 a batch appends before it trims", check: func(t *testing.T, s store.Store) {
		commit(t, s, store.Batch{Appends: appends(run1, 1, 3)})
		commit(t, s, store.Batch{Appends: appends(run1, 4, 5), Trims: []store.Trim{{Run: run1, From: 1, To: 4}}})
		wantJournal(t, s, run1, 0, 5)
	}},
	{name: "S1.9 runs are UUIDs in canonical text", check: func(t *testing.T, s store.Store) {
		for _, run := range []string{
			"", "x", "0197a3c45b6d7e8f9a0b000000000001", "0197A3C4-5B6D-7E8F-9A0B-000000000001",
			"{197a3c4-5b6d-7e8f-9a0b-000000000001", "0197a3c4-5b6d-7e8f-9a0b-00000000000g", "0197a3c4-5b6d-7e8f-9a0b0-00000000001",
		} {
			refuse(t, s, store.Batch{Appends: appends(run, 1, 1)}, store.ErrInvalid)
			refuse(t, s, store.Batch{Trims: []store.Trim{{Run: run, To: 1}}}, store.ErrInvalid)
			wantIs(t, s.Journal(run, 0, nil), store.ErrInvalid)
			_, _, err := s.LastSeq(run)
			wantIs(t, err, store.ErrInvalid)
		}
		refuse(t, s, store.Batch{Trims: []store.Trim{{Run: run1, From: 2, To: 1}}}, store.ErrInvalid)
	}},
	{name: "S1.10 an empty record is a record", check: func(t *testing.T, s store.Store) {
		commit(t, s, store.Batch{Appends: []store.Append{{Run: run1, Seq: 1}, {Run: run1, Seq: 2, Record: []byte{}}}})
		wantLast(t, s, run1, 2)
	}},
}

func recordOf(seq uint64) []byte { return strconv.AppendUint(nil, seq, 10) }

func wantJournal(t *testing.T, s store.Store, run string, from uint64, want ...uint64) {
	t.Helper()
	var got []uint64
	err := s.Journal(run, from, func(seq uint64, record []byte) error {
		if !bytes.Equal(record, recordOf(seq)) {
			return fmt.Errorf("record %d: %q", seq, record)
		}
		got = append(got, seq)
		return nil
	})
	if err != nil {
		t.Fatalf("journal of %s: %v", run, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("journal of %s from %d (-want +got):\n%s", run, from, diff)
	}
}

func wantLast(t *testing.T, s store.Store, run string, want uint64) {
	t.Helper()
	if seq, ok, err := s.LastSeq(run); seq != want || !ok || err != nil {
		t.Errorf("last of %s: %d, %v, %v, want %d", run, seq, ok, err, want)
	}
}
