package abi

// Code is the kind of an error: one of the codes below, which plugins, runtime, API and CLI
// share and whose list is append-only, or a plugin's own, for which the host does what it does
// for [Plugin].
type Code string

// The codes.
const (
	BadFields   Code = "bad_fields"  // a step's fields or a call's parameters violate their schema
	Denied      Code = "denied"      // no grant, not on the allow-list, outside the workspace
	NotFound    Code = "not_found"   // the named thing does not exist
	Conflict    Code = "conflict"    // a stale revision, a name that is taken
	Timeout     Code = "timeout"     // a time limit was reached
	Cancelled   Code = "cancelled"   // the run was stopped, or a branch failed with failFast
	Unavailable Code = "unavailable" // network, rate limit, server error: a retry may help
	Limit       Code = "limit"       // a limit that the message names
	Trap        Code = "trap"        // the guest trapped
	Memory      Code = "memory"      // the guest reached its memory limit
	Output      Code = "output"      // the guest's output is missing, too large or not JSON of the specified form
	Plugin      Code = "plugin"      // an error from the guest, or the guest is not deterministic
	Interrupted Code = "interrupted" // in doubt after a crash, and the decision was to fail
	Internal    Code = "internal"    // a fault of the host
)

// Codes returns every code, in the order they were introduced.
func Codes() []Code {
	return []Code{
		BadFields, Denied, NotFound, Conflict, Timeout, Cancelled, Unavailable,
		Limit, Trap, Memory, Output, Plugin, Interrupted, Internal,
	}
}

// maxCode is the longest code, in bytes.
const maxCode = 64

// IsCode reports whether text has the form of a code: a lower-case letter, then lower-case
// letters, digits and underscores.
func IsCode(text string) bool {
	for i := range len(text) {
		c := text[i]
		if (c < 'a' || c > 'z') && (i == 0 || (c < '0' || c > '9') && c != '_') {
			return false
		}
	}
	return text != "" && len(text) <= maxCode
}

// Error is the error object that crosses the boundary in both directions.
// Field is the path of the invalid field ("params.command"), if there is one.
// RetryAfterMs is the delay that a server has requested, 0 for none. Permanent means
// that a retry cannot help, for any code. Fallback is the model that the operator has configured for a
// turn of a model in place of this one, empty for none. Data is an object with what a definition may
// want to know about the error besides its text, such as who rejected; empty for none.
type Error struct {
	Code         Code   `json:"code"`
	Message      string `json:"message"`
	Field        string `json:"field,omitempty"`
	RetryAfterMs int64  `json:"retryAfterMs,omitempty"`
	Permanent    bool   `json:"permanent,omitempty"`
	Hint         string `json:"hint,omitempty"` // what to do next, for users; on a separate line in output
	Fallback     string `json:"fallback,omitempty"`
	Data         JSON   `json:"data,omitempty"`

	// End is the status with which a step that is part of the program ends the run. The host
	// drops it of other plugins.
	End string `json:"end,omitempty"`
}

// JSON is the text of a JSON value. It is a string, so that errors can be compared.
type JSON string

// MarshalJSON returns the text.
func (j JSON) MarshalJSON() ([]byte, error) { return []byte(j), nil }

// UnmarshalJSON stores the text.
func (j *JSON) UnmarshalJSON(text []byte) error {
	*j = JSON(text)
	return nil
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
