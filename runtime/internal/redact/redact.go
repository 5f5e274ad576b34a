// Package redact removes secrets from what a run records and reports.
package redact

import (
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Redactor removes secrets from a JSON value. Nil removes nothing.
//
// Results and errors of host calls are redacted before a guest sees them, and
// outputs of steps before they become variables: what the journal has is then
// what the guest saw, and a replay gets the same answers. Redacting twice is the
// same as once.
//
// # Concurrency
//
// Safe for concurrent use if the function is.
type Redactor func([]byte) []byte

// JSON removes secrets from a JSON value.
func (r Redactor) JSON(v json.RawMessage) json.RawMessage {
	if r == nil || len(v) == 0 {
		return v
	}
	return r(v)
}

// Values returns each value without secrets, for a record.
func (r Redactor) Values(values map[string]json.RawMessage) map[string]json.RawMessage {
	clean := make(map[string]json.RawMessage, len(values))
	for name, v := range values {
		clean[name] = journal.Compact(r.JSON(v))
	}
	return clean
}

// Text removes secrets from text. If the function returns invalid JSON, the text is
// dropped.
func (r Redactor) Text(s string) string {
	if r == nil || s == "" {
		return s
	}
	quoted, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string is always valid
	}
	var out string
	if err := json.Unmarshal(r(quoted), &out); err != nil {
		return ""
	}
	return out
}

// Error returns e without secrets, e itself if it has none.
func (r Redactor) Error(e *abi.Error) *abi.Error {
	if e == nil || r == nil {
		return e
	}
	message, hint, data := r.Text(e.Message), r.Text(e.Hint), e.Data
	if data != "" {
		data = abi.JSON(r.JSON(json.RawMessage(data)))
	}
	if message == e.Message && hint == e.Hint && data == e.Data {
		return e
	}
	clean := *e
	clean.Message, clean.Hint, clean.Data = message, hint, data
	return &clean
}
