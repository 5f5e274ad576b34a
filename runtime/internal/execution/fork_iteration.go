package execution

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/run"
)

// noteFork notes in the summary what the run was made from.
func noteFork(info *run.Info, f *journal.Fork) {
	info.RetryOf, info.RetryIteration = f.Run, f.Iteration
	if f.Iteration > 0 {
		info.RetryFrom = strconv.Itoa(f.From)
	}
}

// forkedIteration returns what the run was made from if its next iteration is the one
// that continues with that; else nil.
func (r *liveRun) forkedIteration() *journal.Fork {
	f := r.begin.Fork
	if f == nil || f.Iteration == 0 || r.Iteration() != f.Iteration-1 {
		return nil
	}
	return f
}

// forkedContext returns the $ragContext that the other run's iteration had.
func (r *liveRun) forkedContext(f *journal.Fork) (json.RawMessage, error) {
	if f == nil {
		return nil, nil
	}
	return r.ex.svc.Values.Load(f.RAG)
}

// forkedSteps returns the records of the steps that the other run had executed.
// The iteration takes them as done, as after a crash behind them.
func (r *liveRun) forkedSteps(f *journal.Fork) []*journal.Record {
	if f == nil || f.From == 0 {
		return nil
	}
	records := make([]*journal.Record, 0, len(f.Done))
	for i := range f.Done {
		records = append(records, &journal.Record{Kind: journal.StepEnd, Path: f.Done[i].Path, Attempts: []int{0}, StepEnd: &f.Done[i].End})
	}
	return records
}

// takeForkMessage says what the iteration that just began continues, and releases that:
// the journal has it now.
func (r *liveRun) takeForkMessage(f *journal.Fork) string {
	if f == nil {
		return ""
	}
	f.Done, f.RAG = nil, journal.Value{}
	return fmt.Sprintf("continues with iteration %d of run %s at step %d", f.Iteration, f.Run, f.From)
}
