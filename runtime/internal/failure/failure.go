// Package failure makes errors with a code. Package abi has no function for it, because
// it would link package fmt into guests.
package failure

import (
	"fmt"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// New returns an error with a code for the caller.
func New(code abi.Code, format string, args ...any) *abi.Error {
	return &abi.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// From returns err with a code: its own if it has one, else fallback.
func From(err error, fallback abi.Code) *abi.Error {
	if e := abi.As(err); e != nil {
		return e
	}
	return &abi.Error{Code: fallback, Message: err.Error()}
}
