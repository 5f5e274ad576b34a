package step

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A List executes a step list: the top-level steps of a run, or a nested list.
type List struct {
	svc      *Services
	run      Run
	sc       Scope
	steps    []sentinels.Step
	path     string          // execution path of the list with its last dot: "" or "1#7.steps."
	address  string          // address of the list with its last dot: "" or "1.steps."
	attempts []int           // numbers of the enclosing attempts, outermost first
	retry    json.RawMessage // $retry of the step around, nil if none is repeated
	settle   func()          // see [failures]; nil if no block waits for one of these steps
	cleanup  bool            // onFailure or finally: a step that fails does not keep those behind it from being executed
}

// NewList returns a List of the run's top-level steps for the current iteration.
func NewList(svc *Services, r Run, sc Scope, steps []sentinels.Step) *List {
	return &List{svc: svc, run: r, sc: sc, steps: steps}
}

// NewEnd returns the execution of the onFailure and finally of the run's definition.
func NewEnd(svc *Services, r Run, sc Scope) *End {
	def := r.Definition()
	s := &sentinels.Step{Blocks: map[string][]sentinels.Step{}}
	for _, list := range def.Lists()[1:] {
		s.Blocks[list.Key] = list.Steps
	}
	x := &stepExecution{svc: svc, run: r, sc: sc, step: s, path: sentinels.EndAddress, address: sentinels.EndAddress, started: time.Now(), begun: true}
	x.recorded = r.RecordedStep(x.path, nil)
	return &End{x}
}

// RunSteps executes the steps in order and returns the output of the last one. The
// error is that of the first step that failed, with its code.
func (l *List) RunSteps(ctx context.Context) (json.RawMessage, error) {
	var last json.RawMessage
	var failed error
	for i := range l.steps {
		x := l.execution(i)
		if x.recorded == nil { // else it was counted before the crash
			if err := l.run.CountStep(x.address); err != nil {
				return last, err
			}
		}
		out, err := x.runStep(ctx)
		switch {
		case err == nil:
		case l.cleanup && ctx.Err() == nil && errors.As(err, new(*abi.Error)) && !errors.As(err, new(*UndecidedError)):
			if failed == nil {
				failed = err
			}
			continue
		default:
			return last, err
		}
		if x.recorded == nil || x.recorded.End == nil {
			x.settled()
		}
		last = out
	}
	return last, failed
}

// execution returns the execution of step i. It is a function of its own, and not
// inlined, so that the stack of a waiting run takes 4 KB instead of 8 or 16.
//
//go:noinline
func (l *List) execution(i int) *stepExecution {
	x := &stepExecution{
		svc: l.svc, step: &l.steps[i], run: l.run, sc: l.sc,
		path: l.path + strconv.Itoa(i), address: l.address + strconv.Itoa(i), enclosing: l.attempts, outerRetry: l.retry, settle: l.settle,
	}
	x.recorded = l.run.RecordedStep(x.path, x.enclosing)
	return x
}
