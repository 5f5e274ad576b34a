package sdk

import "github.com/sentinel-runtime/sentinel/sdk/abi"

// An Error is an error object of the ABI. Every error that a [Context] returns is an
// Error, and an Error that a step returns is reported as it is. Any other error that a
// step returns is reported with code plugin.
type Error = abi.Error

// A Code is the kind of an error.
type Code = abi.Code

// The codes that a step may return; package abi describes them. Only the host
// uses the others: trap, memory, output, internal.
const (
	CodeBadFields   = abi.BadFields
	CodeDenied      = abi.Denied
	CodeNotFound    = abi.NotFound
	CodeConflict    = abi.Conflict
	CodeTimeout     = abi.Timeout
	CodeCancelled   = abi.Cancelled
	CodeUnavailable = abi.Unavailable
	CodeLimit       = abi.Limit
	CodePlugin      = abi.Plugin
	CodeInterrupted = abi.Interrupted
)

// Fail returns an error with a code.
func Fail(code Code, message string) *Error { return abi.New(code, message) }

// BadField returns the error for an invalid field of the step.
//
//go:noinline
func BadField(field, message string) *Error {
	return &Error{Code: abi.BadFields, Message: field + ": " + message, Field: field, Permanent: true}
}

// AsError returns err as an error object: the first one in its chain, or else a new
// one with code plugin and err's text. It returns nil for nil.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	if e := abi.As(err); e != nil {
		return e
	}
	return abi.New(abi.Plugin, err.Error())
}

// Permanent marks err as an error that no retry can fix. It returns nil for nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	e := *AsError(err)
	e.Permanent = true
	return &e
}

// RetryAfter marks err with the delay before the next attempt in milliseconds, as a
// server has requested it. It returns nil for nil.
func RetryAfter(err error, ms int64) error {
	if err == nil {
		return nil
	}
	e := *AsError(err)
	e.RetryAfterMs = ms
	return &e
}

// Wrap adds a prefix to err's message and keeps the rest: code, hint, retryAfterMs,
// permanent. It returns nil for nil.
func Wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	e := *AsError(err)
	e.Message = op + ": " + e.Message
	return &e
}

// ErrorValue returns an error object as JSON, absent for nil.
func ErrorValue(e *Error) Value {
	if e == nil {
		return Value{}
	}
	v := Object(F("code", String(string(e.Code))), F("message", String(e.Message)), F("field", Text(e.Field)))
	if e.RetryAfterMs > 0 {
		v = v.With("retryAfterMs", Int(e.RetryAfterMs))
	}
	if e.Permanent {
		v = v.With("permanent", Bool(true))
	}
	v = v.With("hint", Text(e.Hint)).With("fallback", Text(e.Fallback))
	if data, err := Parse(string(e.Data)); err == nil {
		v = v.With("data", data)
	}
	return v.With("end", Text(e.End))
}

// WithData adds an object to err, which definitions read: the data of an error, and the members of the
// output of a step whose error onError skips. It returns nil for nil.
func WithData(err error, data Value) error {
	if err == nil {
		return nil
	}
	e := *AsError(err)
	e.Data = abi.JSON(data.String())
	return &e
}

// ErrorFrom reads an error object; nil for an absent or null value. A code that this
// SDK does not know becomes plugin (clause A5.1).
func ErrorFrom(v Value) *Error {
	if !v.Given() {
		return nil
	}
	e := &Error{
		Code:         abi.Plugin,
		Message:      v.Get("message").StringOr("unknown error"),
		Field:        v.Get("field").StringOr(""),
		RetryAfterMs: v.Get("retryAfterMs").IntOr(0),
		Permanent:    v.Get("permanent").BoolOr(false),
		Hint:         v.Get("hint").StringOr(""),
		Fallback:     v.Get("fallback").StringOr(""),
	}
	if data := v.Get("data"); data.Given() {
		e.Data = abi.JSON(data.String())
	}
	if code := v.Get("code").StringOr(""); abi.IsCode(code) {
		e.Code = Code(code)
	}
	return e
}
