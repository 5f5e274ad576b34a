package runtime

import (
	"encoding/json"
	"fmt"

	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/trace"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A Trace is what a run did, as far as its journal still has it.
type Trace struct {
	Run        RunInfo          `json:"run"`
	Iterations []TraceIteration `json:"iterations"`
	Next       string           `json:"next,omitempty" jsonschema:"there is more: give it as after"`
}

// Limits of a [TraceQuery].
const (
	MaxTraceRecords = 10_000
	maxTraceBytes   = 8 << 20 // of values
)

// A TraceQuery selects a part of a trace.
type TraceQuery struct {
	Iteration int    // only this one; 0 for all
	Newest    bool   // only the newest iteration
	Step      string // only steps with this path or address, and those around them; "" for all
	After     string // Next of the part before
	Records   int    // of the journal, at most; default and limit [MaxTraceRecords]
	// Count counts the bytes of records and values that are read for the page, as they are; its error ends
	// the read. Default none.
	Count func(bytes int64) error
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

// TracePage reads a part of what a run did. It ends after so many records, or about 8 MiB of
// values, and Next is then not empty. A step that began in an earlier part is in it without what
// that part has of it; [trace.Join] puts parts together. What is asked for and no longer kept is
// the error not_found.
func (rt *Runtime) TracePage(id sentinels.RunID, q TraceQuery) (*Trace, error) {
	info, err := rt.Status(id)
	if err != nil {
		return nil, err
	}
	part := history.PageRequest{Iteration: q.Iteration, Step: q.Step, Records: q.Records, Bytes: maxTraceBytes, Count: q.Count}
	if q.Newest {
		part.Iteration = history.Newest
	}
	if part.Records <= 0 || part.Records > MaxTraceRecords {
		part.Records = MaxTraceRecords
	}
	if q.After != "" {
		var rest string
		n, _ := fmt.Sscanf(q.After+" ", "%d.%d%1s", &part.From.Start, &part.From.After, &rest)
		if n != 2 || part.From.Start == 0 || part.From.After < part.From.Start {
			return nil, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "after", Message: fmt.Sprintf("after %.50q: no position in a trace", q.After), Hint: "give the next of an earlier part"}
		}
	}
	page, err := rt.exec.TracePage(id, part)
	if err != nil {
		return nil, err
	}
	t := &Trace{Run: info, Iterations: page.Iterations}
	if t.Iterations == nil {
		t.Iterations = []TraceIteration{}
	}
	if page.Next != (history.PagePosition{}) {
		t.Next = fmt.Sprintf("%d.%d", page.Next.Start, page.Next.After)
	}
	return t, nil
}

// TraceEnds calls ended with each step of a run that ended, in the order of the ends, and with a
// function that loads its output. It returns the newest iteration with the steps that have not
// ended, nil if there is none. It takes no memory for the steps that ended.
func (rt *Runtime) TraceEnds(id sentinels.RunID, ended func(*TraceIteration, *TraceStep, func() (json.RawMessage, error)) error) (*TraceIteration, error) {
	if _, err := rt.Status(id); err != nil {
		return nil, err
	}
	return rt.exec.TraceEnds(id, ended)
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
