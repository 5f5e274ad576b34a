package execution

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/run"
)

// noteFork sets the fields of the summary that name the origin of a fork.
func noteFork(info *run.Info, f *journal.Fork) {
	info.RetryOf, info.RetryIteration = f.Run, f.Iteration
	if f.Iteration > 0 {
		info.RetryFrom = strconv.Itoa(f.From)
	}
}

// forkedIteration returns the origin of the run if its next iteration is the one that
// continues an iteration of the origin; else nil.
func (r *liveRun) forkedIteration() *journal.Fork {
	f := r.begin.Fork
	if f == nil || f.Iteration == 0 || r.Iteration() != f.Iteration-1 {
		return nil
	}
	return f
}

// forkedContext returns the $ragContext of the iteration that is continued, nil if it
// is to be built.
func (r *liveRun) forkedContext(f *journal.Fork) (json.RawMessage, error) {
	if f == nil {
		return nil, nil
	}
	return r.ex.svc.Values.Load(f.RAG)
}

// forkedSteps returns end records of the steps that the other run had executed. The
// iteration does not execute them again, as after a crash.
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

// takeForkMessage returns a progress message about the iteration that is continued, and
// releases its values, which the journal contains by now.
func (r *liveRun) takeForkMessage(f *journal.Fork) string {
	if f == nil {
		return ""
	}
	f.Done, f.RAG = nil, journal.Value{}
	return fmt.Sprintf("continues with iteration %d of run %s at step %d", f.Iteration, f.Run, f.From)
}
