package runtime

import (
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// redact removes secrets from a JSON value.
//
// Results and errors of host calls are redacted before a guest sees them, and
// outputs of steps before they become variables: what the journal has is then
// what the guest saw, and a replay gets the same answers.
func (rt *Runtime) redact(v json.RawMessage) json.RawMessage {
	if rt.opt.Redact == nil || len(v) == 0 {
		return v
	}
	return rt.opt.Redact(v)
}

// redactAll returns each value without secrets, for a record.
func (rt *Runtime) redactAll(values map[string]json.RawMessage) map[string]json.RawMessage {
	clean := make(map[string]json.RawMessage, len(values))
	for name, v := range values {
		clean[name] = journal.Compact(rt.redact(v))
	}
	return clean
}

// redactText removes secrets from text.
func (rt *Runtime) redactText(s string) string {
	if rt.opt.Redact == nil || s == "" {
		return s
	}
	quoted, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string is always valid
	}
	var out string
	if err := json.Unmarshal(rt.opt.Redact(quoted), &out); err != nil {
		return "" // better nothing than what could not be looked at
	}
	return out
}

// redactError returns e without secrets, e itself if it has none.
func (rt *Runtime) redactError(e *abi.Error) *abi.Error {
	if e == nil || rt.opt.Redact == nil {
		return e
	}
	message, hint := rt.redactText(e.Message), rt.redactText(e.Hint)
	if message == e.Message && hint == e.Hint {
		return e
	}
	clean := *e
	clean.Message, clean.Hint = message, hint
	return &clean
}

// redactProgress removes secrets from what observers get. Output and errors of
// steps are redacted already. A secret that a model writes in several pieces is
// not found in [OnText]; the whole text is in the step's output.
func (rt *Runtime) redactProgress(p *Progress) {
	if rt.opt.Redact == nil {
		return
	}
	p.Params, p.Message, p.Label, p.Error = rt.redact(p.Params), rt.redactText(p.Message), rt.redactText(p.Label), rt.redactError(p.Error)
	if p.Decision != nil {
		pending := *p.Decision
		pending.Prompt = rt.redactText(pending.Prompt)
		p.Decision = &pending
	}
}
