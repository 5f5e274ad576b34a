package runtime

import (
	"errors"
	"fmt"

	"github.com/sentinel-runtime/sentinel/runtime/internal/maintenance/statefolder"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Errors of [Open].
var (
	// ErrHeld says that another process has the store open.
	ErrHeld = statefolder.ErrHeld
	// ErrClosed is returned by every method after Close.
	ErrClosed = errors.New("runtime is closed")
)

// Causes for which a run's context ends. They never reach a journal: what they
// mean for the run is decided where the run ends.
var (
	errStopped  = errors.New("run was stopped")
	errShutdown = errors.New("runtime is shutting down")
	errSibling  = errors.New("a parallel branch failed")
	errPark     = errors.New("guest is unloaded while it waits")
)

// A limitError ends or pauses a run that reached one of its limits.
type limitError struct {
	limit string // the limit's name as in the definition: maxIterations, timeoutMs, budget.costUsd
	text  string
}

func (e *limitError) Error() string { return e.text }

// errf returns an error with a code for the caller.
func errf(code abi.Code, format string, args ...any) *abi.Error {
	return &abi.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// asError gives err a code: its own if it has one, else fallback.
func asError(err error, fallback abi.Code) *abi.Error {
	if e := abi.As(err); e != nil {
		return e
	}
	return &abi.Error{Code: fallback, Message: err.Error()}
}
