package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A stepList is one execution of a step list: the run's own, or a block that a
// step asked for.
type stepList struct {
	run      *run
	sc       scope
	steps    []sentinels.Step
	path     string // execution path of the list with its last dot: "" or "1#7.steps."
	address  string // likewise "" or "1.steps."
	attempts []int  // of the enclosing steps, outermost first
}

// runSteps executes the steps in order and returns the output of the last one. The
// error is that of the step that failed, with its code.
func (l *stepList) runSteps(ctx context.Context) (json.RawMessage, error) {
	var last json.RawMessage
	for i := range l.steps {
		x := l.execution(i)
		if err := l.run.countStep(x); err != nil {
			return last, err
		}
		out, err := x.runStep(ctx)
		if err != nil {
			return last, err
		}
		last = out
	}
	return last, nil
}

// execution returns the execution of a step of the list. Like other parts of
// what waits for a step it is a function of its own so that the frames below a
// run that waits stay small: its stack is then 4 KB in place of 8 or 16.
//
//go:noinline
func (l *stepList) execution(i int) *stepExecution {
	x := &stepExecution{
		list: l, step: &l.steps[i], run: l.run, sc: l.sc,
		path: l.path + strconv.Itoa(i), address: l.address + strconv.Itoa(i), enclosing: l.attempts,
	}
	x.past = l.run.past(x.path, x.enclosing)
	return x
}

// countStep holds an iteration to its number of step executions.
func (r *run) countStep(x *stepExecution) error {
	limit := r.rt.limits.Steps
	if own := r.definition().Safety.MaxSteps; own > 0 {
		limit = own
	}
	if x.past != nil {
		return nil // it was counted when it began
	}
	r.mu.Lock()
	r.steps++
	n := r.steps
	r.mu.Unlock()
	if n > limit {
		return &limitError{"maxSteps", fmt.Sprintf("maxSteps reached: iteration %d executed %d steps, the next one is at %s", r.iterationNumber(), limit, x.address)}
	}
	return nil
}

// past returns what a crash left of a step execution; nil in a run that was
// not interrupted there.
func (r *run) past(path string, enclosing []int) *history.Execution {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x := r.state.Executions.Get(path, enclosing); x != nil {
		return x.Clone()
	}
	return nil
}
