package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/trace"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Newest is the Iteration of a [PageRequest] for the newest one.
const Newest = -1

// A PageRequest selects a part of a trace.
type PageRequest struct {
	Iteration int    // its number, [Newest], or 0 for all
	Step      string // path or address of steps, without which only those around them are in the page; "" is all
	From      PagePosition
	Records   int   // how many the page is made of at most
	Bytes     int64 // of values; the one that exceeds them is the last one
	// Count counts the bytes of records and of stored values before they are held. Its error ends the
	// read. Default none.
	Count func(bytes int64) error
}

// A PagePosition is the end of a page: a record, and the one that began its iteration.
type PagePosition struct{ Start, After uint64 }

// A Page is a part of a trace. Steps that began on an earlier page are in it without what that one
// has of them.
type Page struct {
	Iterations []trace.Iteration
	Next       PagePosition // zero if it is the last one
}

// TracePage reads a part of what a run did. Memory is used for the page and for the steps that are
// open at one time, whatever the length of the trace.
func TracePage(journals Journals, id sentinels.RunID, q PageRequest, load func(journal.Value) (json.RawMessage, error), redact func(string) string) (Page, error) {
	var page Page
	pos := q.From
	if pos.Start == 0 && q.Iteration != 0 {
		var err error
		if pos.Start, err = findIteration(journals, id, q.Iteration); err != nil {
			return page, err
		}
	}
	records, size, loads, end := 0, int64(0), false, uint64(0)
	count := q.Count
	if count == nil {
		count = func(int64) error { return nil }
	}
	t := &Tracer{Redact: redact, Load: func(v journal.Value) (json.RawMessage, error) {
		if !loads {
			return nil, nil
		}
		if v.Blob != nil {
			if err := count(v.Size); err != nil {
				return nil, err
			}
		}
		raw, err := load(v)
		size += int64(len(raw))
		return raw, err
	}}
	err := readSized(journals, id, max(pos.Start, 1), func(seq uint64, rec *journal.Record, bytes int) error {
		begins := rec.Kind == journal.IterationStart
		if begins && q.Iteration != 0 && len(t.Iterations) > 0 {
			return ErrStop
		}
		if seq > q.From.After && (records >= q.Records || size >= q.Bytes) {
			page.Next = pos
			return ErrStop
		}
		if begins {
			// An iteration is left out if an earlier page has all of it, or if nothing in it is wanted.
			if n := len(t.Iterations); n > 0 && len(t.Iterations[n-1].Steps) == 0 && (q.Step != "" || end <= q.From.After) {
				t.Iterations = t.Iterations[:n-1]
			}
			pos.Start, end = seq, seq
		}
		if rec.Kind == journal.IterationEnd {
			end = seq
		}
		fits := pos.Start > 0 && (q.Step == "" || rec.Path == q.Step || sentinels.PathAddress(rec.Path) == q.Step)
		loads = seq > q.From.After && fits
		if loads {
			records++
			if err := count(int64(bytes)); err != nil {
				return err
			}
		}
		pos.After = seq
		if err := t.Add(seq, rec); err != nil {
			return err
		}
		if !loads {
			t.drop(rec)
		}
		return nil
	})
	if errors.Is(err, ErrStop) {
		err = nil
	}
	page.Iterations = t.Iterations
	return page, err
}

// findIteration returns the number of the record that began an iteration, or the newest one.
func findIteration(journals Journals, id sentinels.RunID, n int) (start uint64, err error) {
	first, last := 0, 0
	err = Read(journals, id, 1, func(seq uint64, rec *journal.Record) error {
		if rec.Kind != journal.IterationStart {
			return nil
		}
		last = rec.IterationStart.Iteration
		if first == 0 {
			first = last
		}
		if start = seq; last == n {
			return ErrStop
		}
		return nil
	})
	switch {
	case err != nil && !errors.Is(err, ErrStop):
		return 0, err
	case last == n || n == Newest && start != 0:
		return start, nil
	case start == 0:
		return 0, abi.New(abi.NotFound, fmt.Sprintf("the journal of run %s has no iteration", id))
	}
	return 0, &abi.Error{Code: abi.NotFound, Field: "iteration", Message: fmt.Sprintf("the journal of run %s has no iteration %d", id, n), Hint: fmt.Sprintf("it has %d to %d", first, last)}
}

// TraceEnds calls ended with each step that ended, in the order of the ends, and with its output,
// which is not loaded. It returns the newest iteration with the steps that have not ended.
func TraceEnds(journals Journals, id sentinels.RunID, redact func(string) string, ended func(*trace.Iteration, *trace.Step, journal.Value) error) (*trace.Iteration, error) {
	t := &Tracer{Redact: redact, Load: func(journal.Value) (json.RawMessage, error) { return nil, nil }}
	err := Read(journals, id, 1, func(seq uint64, rec *journal.Record) error {
		if rec.Kind == journal.IterationStart {
			t.Iterations = nil
		}
		if err := t.Add(seq, rec); err != nil {
			return err
		}
		if rec.Kind == journal.StepEnd {
			if s := t.ofRecord(rec); s != nil {
				if err := ended(t.newest(), s, rec.StepEnd.Output); err != nil {
					return err
				}
			}
		}
		t.drop(rec)
		return nil
	})
	return t.newest(), err
}

// ofRecord returns the step of a record, nil if it has none.
func (t *Tracer) ofRecord(rec *journal.Record) *trace.Step {
	if len(rec.Attempts) == 0 {
		return nil
	}
	return t.steps[Key(rec.Path, rec.Attempts[:len(rec.Attempts)-1])]
}

// drop removes what a record has ended: its step, unless steps in it are kept, or its call.
func (t *Tracer) drop(rec *journal.Record) {
	s := t.ofRecord(rec)
	if s == nil {
		return
	}
	switch rec.Kind {
	case journal.CallEnd, journal.Checkpoint:
		a := t.attempts[Key(rec.Path, rec.Attempts)]
		var seq int
		if rec.CallEnd != nil {
			seq = rec.CallEnd.Seq
		} else {
			seq = rec.Checkpoint.Seq
		}
		key := callKey(rec, seq)
		if a != nil && t.calls[key] != nil {
			a.Calls = without(a.Calls, t.calls[key])
			delete(t.calls, key)
		}
	case journal.StepEnd:
		if slices.ContainsFunc(s.Attempts, func(a *trace.Attempt) bool { return len(a.Steps) > 0 }) {
			return
		}
		enclosing := rec.Attempts[:len(rec.Attempts)-1]
		for _, a := range s.Attempts {
			delete(t.attempts, Key(rec.Path, append(slices.Clone(enclosing), a.Number)))
			for _, c := range a.Calls {
				delete(t.calls, callKey(&journal.Record{Path: rec.Path, Attempts: append(slices.Clone(enclosing), a.Number)}, c.Number))
			}
		}
		delete(t.steps, Key(rec.Path, enclosing))
		if up := t.above(rec.Path, enclosing); up != nil {
			up.Steps = without(up.Steps, s)
		} else if it := t.newest(); it != nil {
			it.Steps = without(it.Steps, s)
		}
	}
}

// without removes an element that is near the end.
func without[T any](list []*T, one *T) []*T {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i] == one {
			return slices.Delete(list, i, i+1)
		}
	}
	return list
}
