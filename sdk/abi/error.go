package abi

// Code says what kind of thing went wrong. The list is closed and append-only;
// it serves plugins, runtime, API and CLI alike.
type Code string

// The codes.
const (
	BadFields   Code = "bad_fields"  // a step's fields or a call's parameters are not as their schema has them
	Denied      Code = "denied"      // no grant, not on the allow-list, outside the workspace
	NotFound    Code = "not_found"   // the named thing does not exist
	Conflict    Code = "conflict"    // a stale revision, a name that is taken
	Timeout     Code = "timeout"     // a time limit was reached
	Cancelled   Code = "cancelled"   // the run was stopped, a sibling failed fast
	Unavailable Code = "unavailable" // network, rate limit, server error: worth another try
	Limit       Code = "limit"       // a cap that was named in the message
	Trap        Code = "trap"        // the guest trapped
	Memory      Code = "memory"      // the guest reached its memory limit
	Output      Code = "output"      // the guest's output is missing, too large or no JSON of a known shape
	Plugin      Code = "plugin"      // the guest reported an error of its own, or is not deterministic
	Interrupted Code = "interrupted" // in doubt after a crash, and decided to fail
	Internal    Code = "internal"    // a fault of the host
)

// Codes returns every code, in the order they were introduced.
func Codes() []Code {
	return []Code{
		BadFields, Denied, NotFound, Conflict, Timeout, Cancelled, Unavailable,
		Limit, Trap, Memory, Output, Plugin, Interrupted, Internal,
	}
}

// Error is the error object that crosses the boundary in both directions.
// Field names the offending field as a path ("params.command") where there is
// one. RetryAfterMs is what a server asked for, 0 if nothing. Permanent says
// that another try cannot help, whatever the code suggests.
type Error struct {
	Code         Code   `json:"code"`
	Message      string `json:"message"`
	Field        string `json:"field,omitempty"`
	RetryAfterMs int64  `json:"retryAfterMs,omitempty"`
	Permanent    bool   `json:"permanent,omitempty"`
	Hint         string `json:"hint,omitempty"` // what to do next, for a person; its own line in output
}

// Error returns the message; the code is for programs.
func (e *Error) Error() string { return e.Message }

// New returns an error with the given code and message.
func New(code Code, message string) *Error { return &Error{Code: code, Message: message} }

// CodeOf returns the code of the first *Error in err's chain, or Internal if
// there is none, or "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e := As(err); e != nil {
		return e.Code
	}
	return Internal
}

// As returns the first *Error in err's chain, or nil. It walks Unwrap by hand
// because package errors links reflection into a guest.
func As(err error) *Error {
	for err != nil {
		if e, ok := err.(*Error); ok {
			return e
		}
		switch u := err.(type) {
		case interface{ Unwrap() error }:
			err = u.Unwrap()
		case interface{ Unwrap() []error }:
			for _, inner := range u.Unwrap() {
				if e := As(inner); e != nil {
					return e
				}
			}
			return nil
		default:
			return nil
		}
	}
	return nil
}
