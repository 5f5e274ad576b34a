package history

import (
	"strconv"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
)

// A PastIteration is an iteration as the records of its run have it.
type PastIteration struct {
	Number int                         // 0 for none
	Start  *journal.IterationStartBody // nil if its records are not kept from the start
	Used   Definition
	From   uint64                       // record from which its variables are known, 1 for the run's start
	First  uint64                       // its first record
	Ends   map[int]*journal.StepEndBody // of its top-level steps, by index
}

// A Finder finds an iteration while the records of a run are folded, see
// [State.Apply].
type Finder struct {
	Wanted int // number of the iteration, 0 for the newest
	Found  PastIteration
	Kept   []int // iterations whose records are kept from the start

	ended   int    // newest iteration that is known to have ended
	endedAt uint64 // its last record, 1 for the run's start
}

// Add reads a record before it is applied to st. It reports whether the iteration was
// found and has ended, so that no further record matters.
func (f *Finder) Add(seq uint64, rec *journal.Record, st *State) (done bool) {
	switch {
	case rec.RunStart != nil:
		f.endedAt = 1
		if fork := rec.RunStart.Fork; fork != nil && fork.Iteration > 0 {
			f.ended = fork.Iteration - 1
		}
	case rec.IterationStart != nil:
		f.start(seq, rec.IterationStart, st)
	case rec.IterationEnd != nil:
		f.ended, f.endedAt = rec.IterationEnd.Iteration, seq
		return f.Wanted != 0 && f.Wanted == f.Found.Number
	case f.Found.Start != nil && rec.StepEnd != nil:
		if i, err := strconv.Atoi(rec.Path); err == nil {
			f.Found.Ends[i] = rec.StepEnd
		}
	}
	return false
}

func (f *Finder) start(seq uint64, b *journal.IterationStartBody, st *State) {
	f.Found.Start = nil
	if b.Iteration != f.ended+1 {
		return // retention has removed the records before it
	}
	f.Kept = append(f.Kept, b.Iteration)
	if f.Wanted == 0 || f.Wanted == b.Iteration {
		f.Found = PastIteration{
			Number: b.Iteration, Start: b, Used: st.DefinitionOf(b), From: f.endedAt, First: seq, Ends: map[int]*journal.StepEndBody{},
		}
	}
}

// A CallReader finds the host calls in the records of a run, of all iterations that
// are kept.
type CallReader struct {
	Iteration  int // of the newest record
	executions Executions
}

// Add reads a record. For the end of a host call it returns the attempt that made the
// call, and the call; else nil.
func (r *CallReader) Add(rec *journal.Record) (*Attempt, *Call) {
	if rec.IterationStart != nil {
		r.executions, r.Iteration = Executions{}, rec.IterationStart.Iteration
	}
	if r.executions == nil {
		return nil, nil
	}
	r.executions.Add(rec)
	if rec.CallEnd == nil || len(rec.Attempts) == 0 {
		return nil, nil
	}
	e := r.executions.Get(rec.Path, enclosing(rec))
	return e.Attempt, e.Attempt.Call(rec.CallEnd.Seq)
}
