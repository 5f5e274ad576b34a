package runtime

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
)

// skippedByFork is said of a step that stands before the one a fork begins
// with, and that the other run did not have.
const skippedByFork = "fork"

// fork notes in the summary what the run was made from.
func (info *RunInfo) fork(f *journal.Fork) {
	info.RetryOf, info.RetryIteration = f.Run, f.Iteration
	if f.Iteration > 0 {
		info.RetryFrom = strconv.Itoa(f.From)
	}
}

// takeFork sets a run that begins to where the other one stood. Recovery does
// the same with what the journal has.
func (r *run) takeFork() error {
	f := r.begin.Fork
	if f.Iteration == 0 {
		return nil
	}
	vars, last, err := r.rt.forkedScope(f)
	if err != nil {
		return err
	}
	r.sc.replace(vars, last)
	r.iteration = f.Iteration - 1
	maps.Copy(r.cursors, f.Cursors)
	return nil
}

func (rt *Runtime) forkedScope(f *journal.Fork) (vars map[string]json.RawMessage, last json.RawMessage, err error) {
	raw, err := rt.load(f.Variables)
	if err != nil {
		return nil, nil, err
	}
	if err := json.Unmarshal(raw, &vars); err != nil {
		return nil, nil, fmt.Errorf("variables of the fork: %w", err)
	}
	last, err = rt.load(f.Last)
	return vars, last, err
}

// forkedPass returns what the run was made from if its next pass is the one
// that goes on with that; else nil.
func (r *run) forkedPass() *journal.Fork {
	f := r.begin.Fork
	if f == nil || f.Iteration == 0 || r.passes() != f.Iteration-1 {
		return nil
	}
	return f
}

// forkedContext returns the $ragContext that the other run's pass had.
func (r *run) forkedContext(f *journal.Fork) (json.RawMessage, error) {
	if f == nil {
		return nil, nil
	}
	return r.rt.load(f.RAG)
}

// forkedSteps makes the records of the steps that the other run had carried
// out, and has the pass take them as done, as after a crash behind them.
func (r *run) forkedSteps(f *journal.Fork) ([]*journal.Record, error) {
	if f == nil || f.From == 0 {
		return nil, nil
	}
	raw, err := r.rt.load(f.Done)
	if err != nil {
		return nil, err
	}
	var steps []journal.ForkedStep
	if err := json.Unmarshal(raw, &steps); err != nil {
		return nil, fmt.Errorf("steps of the fork: %w", err)
	}
	done := newHistory()
	records := make([]*journal.Record, 0, len(steps))
	for i := range steps {
		rec := &journal.Record{Kind: journal.StepEnd, Path: steps[i].Path, Attempts: []int{0}, StepEnd: &steps[i].End}
		done.add(rec)
		records = append(records, rec)
	}
	r.mu.Lock()
	r.hist = done
	r.mu.Unlock()
	return records, nil
}

// wentOn says what the pass that just began goes on with, and lets go of that:
// the journal has it now.
func (r *run) wentOn(f *journal.Fork) string {
	if f == nil {
		return ""
	}
	f.Done, f.RAG = journal.Value{}, journal.Value{}
	return fmt.Sprintf("goes on with iteration %d of run %s at step %d", f.Iteration, f.Run, f.From)
}
