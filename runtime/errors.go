package runtime

import (
	"fmt"

	"github.com/sentinel-runtime/sentinel/runtime/internal/execution"
	"github.com/sentinel-runtime/sentinel/runtime/internal/maintenance/statefolder"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Errors of [Open].
var (
	// ErrHeld means that another process has the store open.
	ErrHeld = statefolder.ErrHeld
	// ErrClosed is returned by every method after Close.
	ErrClosed = execution.ErrClosed
)

// errf returns an error with a code for the caller.
func errf(code abi.Code, format string, args ...any) *abi.Error {
	return &abi.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// asError returns err with a code: its own, or fallback if it has none.
func asError(err error, fallback abi.Code) *abi.Error {
	if e := abi.As(err); e != nil {
		return e
	}
	return &abi.Error{Code: fallback, Message: err.Error()}
}
