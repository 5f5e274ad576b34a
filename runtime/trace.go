package runtime

import (
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
	t, err := rt.exec.Trace(id, 1)
	return &Trace{Run: info, Iterations: t}, err
}

// TraceOpen reads only the iteration that a run is in, nil between two of them:
// of a run with a long history it costs a small part of [Runtime.Trace].
func (rt *Runtime) TraceOpen(id sentinels.RunID) (*TraceIteration, error) {
	info, err := rt.Status(id)
	if err != nil {
		return nil, err
	}
	t, err := rt.exec.Trace(id, max(info.Snapshot, 1))
	if n := len(t); err == nil && n > 0 && !t[n-1].Done {
		return &t[n-1], nil
	}
	return nil, err
}
