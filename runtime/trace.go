package runtime

import (
	"fmt"

	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/trace"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A Trace is what a run did, as far as its journal still has it.
type Trace struct {
	Run        RunInfo          `json:"run"`
	Iterations []TraceIteration `json:"iterations"`
}

// The parts of a [Trace], see package trace.
type (
	TraceIteration = trace.Iteration
	TraceStep      = trace.Step
	TraceAttempt   = trace.Attempt
	TraceCall      = trace.Call
)

// Trace reads what a run did from its journal.
func (rt *Runtime) Trace(id sentinels.RunID) (*Trace, error) {
	info, err := rt.Status(id)
	if err != nil {
		return nil, err
	}
	t, err := rt.traceFrom(id, 1)
	return &Trace{Run: info, Iterations: t.Iterations}, err
}

// TraceOpen reads only the iteration that a run is in, nil between two of them:
// of a run with a long history it costs a small part of [Runtime.Trace].
func (rt *Runtime) TraceOpen(id sentinels.RunID) (*TraceIteration, error) {
	info, err := rt.Status(id)
	if err != nil {
		return nil, err
	}
	t, err := rt.traceFrom(id, max(info.Snapshot, 1))
	if n := len(t.Iterations); err == nil && n > 0 && !t.Iterations[n-1].Done {
		return &t.Iterations[n-1], nil
	}
	return nil, err
}

// traceFrom makes the trace of a run from record number first on.
func (rt *Runtime) traceFrom(id sentinels.RunID, first uint64) (*history.Tracer, error) {
	t := &history.Tracer{Load: rt.load}
	err := rt.db.Journal(string(id), first, func(seq uint64, raw []byte) error {
		rec, err := journal.Decode(raw)
		if err != nil {
			return fmt.Errorf("record %d of run %s: %w", seq, id, err)
		}
		return t.Add(rec)
	})
	return t, err
}
