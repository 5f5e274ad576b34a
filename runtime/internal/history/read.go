package history

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Journals read the records of runs; a store implements it.
type Journals interface {
	// Journal calls fn with the records of a run from number from on, in order, until
	// fn returns an error, which it returns.
	Journal(run string, from uint64, fn func(seq uint64, record []byte) error) error
}

// ErrStop ends a [Fold] before the end of the journal, without an error.
var ErrStop = errors.New("stop reading the journal")

// Fold applies the records of a run to a new state: its first record, then those
// from number from on. before is called with each record before it is applied,
// unless it is nil; its error ends the fold. A run without records is the error
// not_found.
func Fold(journals Journals, id sentinels.RunID, from uint64, before func(seq uint64, rec *journal.Record, st *State) error) (*State, error) {
	st := &State{}
	apply := func(seq uint64, rec *journal.Record) error {
		if before != nil {
			if err := before(seq, rec, st); err != nil {
				return err
			}
		}
		if err := st.Apply(seq, rec); err != nil {
			return fmt.Errorf("journal of run %s: %w", id, err)
		}
		return nil
	}
	var err error
	if from > 1 {
		err = Read(journals, id, 1, func(seq uint64, rec *journal.Record) error {
			if err := apply(seq, rec); err != nil {
				return err
			}
			return ErrStop
		})
	}
	if err == nil || errors.Is(err, ErrStop) && st.Seq != 0 {
		err = Read(journals, id, max(from, 1), apply)
	}
	if errors.Is(err, ErrStop) {
		err = nil
	}
	if err == nil && st.Seq == 0 {
		err = abi.New(abi.NotFound, fmt.Sprintf("run %s has no journal", id))
	}
	return st, err
}

// Read calls fn with the decoded records of a run from number from on.
func Read(journals Journals, id sentinels.RunID, from uint64, fn func(seq uint64, rec *journal.Record) error) error {
	return readSized(journals, id, from, func(seq uint64, rec *journal.Record, _ int) error { return fn(seq, rec) })
}

// readSized is [Read] with the size of each record in bytes.
func readSized(journals Journals, id sentinels.RunID, from uint64, fn func(seq uint64, rec *journal.Record, size int) error) error {
	return journals.Journal(string(id), from, func(seq uint64, raw []byte) error {
		rec, err := journal.Decode(raw)
		if err != nil {
			return fmt.Errorf("record %d of run %s: %w", seq, id, err)
		}
		return fn(seq, rec, len(raw))
	})
}

// Trace reads what a run did from record number from on. load returns the content
// of a value. Values of shell lines are redacted: a replay needs them as they are, so the
// journal has them so.
func Trace(journals Journals, id sentinels.RunID, from uint64, load func(journal.Value) (json.RawMessage, error), redact func(string) string) (*Tracer, error) {
	t := &Tracer{Load: load, Redact: redact}
	return t, Read(journals, id, from, t.Add)
}
