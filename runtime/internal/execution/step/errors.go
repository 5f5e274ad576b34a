package step

import (
	"context"
	"errors"
	"fmt"

	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Causes for which the context of a run ends. They are never recorded: the end of the
// run translates them.
var (
	ErrStopped  = errors.New("run was stopped")
	ErrShutdown = errors.New("runtime is shutting down")
)

var (
	errSibling = errors.New("a parallel branch failed")
	errPark    = errors.New("guest is unloaded while it waits")
)

// A LimitError ends or pauses a run that reached one of its limits.
type LimitError struct {
	Limit string // the limit's name as in the definition: maxIterations, timeoutMs, budget.costUsd
	Text  string
	Hint  string // what to do about it, may be empty
	Step  string // address of the step that used most of it, may be empty
}

func (e *LimitError) Error() string { return e.Text }

// memoryError is the error of a step whose variables exceed their limit.
func memoryError(r Schedule, format string, args ...any) *abi.Error {
	return &abi.Error{
		Code: abi.Limit, Field: run.ReasonMemory, Hint: r.MemoryHint("limits.variableMemory"),
		Message: run.ReasonMemory + " reached: " + fmt.Sprintf(format, args...) + fmt.Sprintf(", the limit is %d", r.VariableLimit()),
	}
}

// An UndecidedError ends a run that waited for a decision about an interrupted call.
type UndecidedError struct {
	Step string // address of the step that made the call; "" for one of a child run
	Err  *abi.Error
}

func (e *UndecidedError) Error() string { return e.Err.Message }

// Unwrap returns the error of the run.
func (e *UndecidedError) Unwrap() error { return e.Err }

// An EndError ends a run with the status that a step of type stop names.
type EndError struct {
	Status sentinels.Status
	Err    *abi.Error // nil for completed
	Step   string     // address of the step
}

func (e *EndError) Error() string { return fmt.Sprintf("step %s ends the run as %s", e.Step, e.Status) }

// isLimit reports whether err, which may come from a nested step, is a limit of the
// run, or ends it otherwise.
func isLimit(err error) bool {
	return errors.As(err, new(*LimitError)) || errors.As(err, new(*EndError))
}

// RunEnding reports whether ctx ended because the run or the process ends.
func RunEnding(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, ErrShutdown) || errors.Is(cause, ErrStopped) || isLimit(cause) || errors.As(cause, new(*UndecidedError))
}
