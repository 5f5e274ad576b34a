// Package wait implements the step type that waits for a time, the end of a run or an event.
package wait

import (
	"github.com/sentinel-runtime/sentinel/plugins/sentinel"
	"github.com/sentinel-runtime/sentinel/sdk"
)

const fields = `{
  "type": "object",
  "properties": {
    "durationMs": {"type": "integer", "minimum": 0, "maximum": 1000000000000, "description": "Duration in milliseconds of calendar time; it continues while the host is down."},
    "until": {"type": "string", "format": "date-time", "description": "A time in RFC 3339. A time in the past ends the wait at once.", "examples": ["2026-01-31T08:00:00Z"]},
    "run": {"type": "string", "description": "The run to wait for, such as that of a sentinel step with await false. The result is that of the run, as the sentinel step returns it; a run that fails is an error.", "examples": ["$child.run"]},
    "event": {"type": "string", "minLength": 1, "description": "Pattern of the event to wait for: * is one segment, a final ** the rest. After timeoutMs of the step it is an error."},
    "source": {"type": "string", "enum": ["engine", "user"], "description": "Whose event sentinel:ID:WORD. Default: the engine's where ID is a stored sentinel."}
  },
  "additionalProperties": false
}`

const output = `{
  "type": "object",
  "properties": {
    "reason": {"type": "string", "enum": ["duration", "until", "event", "run"], "description": "What ended the wait."},
    "event": {"type": "object", "description": "The event: {name, id, source, time, data}."}
  }
}`

// Step returns the step type.
func Step() sdk.Step {
	return sdk.Step{
		Type:     "wait",
		Summary:  "Waits for a duration, a time, the end of a run or an event.",
		Fields:   fields,
		Output:   output,
		Infer:    []string{"durationMs"},
		ReadOnly: true,
		Run:      run,
		Validate: check,
	}
}

func check(fields sdk.Value) []sdk.Problem {
	given := 0
	for _, name := range [...]string{"durationMs", "until", "event", "run"} {
		if fields.Get(name).Given() {
			given++
		}
	}
	if given != 1 {
		return []sdk.Problem{{Field: "durationMs", Message: "want exactly one of durationMs, until, event and run"}}
	}
	if fields.Get("source").Given() && !fields.Get("event").Given() {
		return []sdk.Problem{{Field: "source", Message: "source requires event"}}
	}
	return nil
}

// run returns {reason}, and the event or the result of the run if there is one.
func run(c *sdk.Context) (sdk.Value, error) {
	if err := sdk.BadFields(check(c.Fields())); err != nil {
		return sdk.Value{}, err
	}
	switch {
	case c.Field("durationMs").Given():
		ms, err := c.IntField("durationMs", 0, 0)
		if err != nil {
			return sdk.Value{}, err
		}
		return reason("duration"), c.Sleep(ms)
	case c.Field("until").Given():
		at, err := c.StringField("until")
		if err != nil {
			return sdk.Value{}, err
		}
		return reason("until"), c.WaitUntil(at)
	}
	if c.Field("run").Given() {
		id, err := c.StringField("run")
		if err != nil {
			return sdk.Value{}, err
		}
		if id == "" {
			return sdk.Value{}, sdk.BadField("run", "empty: what it names did not start, or its variable is not set")
		}
		result, err := c.WaitRun(id)
		if err != nil {
			return sdk.Value{}, err
		}
		result, err = sentinel.Joined(id, "", result)
		return result.With("reason", sdk.String("run")), err
	}
	pattern, err := c.StringField("event")
	if err != nil {
		return sdk.Value{}, err
	}
	event, err := c.WaitEventOf(pattern, c.Field("source").StringOr(""), 0)
	return reason("event").With("event", event), err
}

func reason(name string) sdk.Value { return sdk.Object(sdk.F("reason", sdk.String(name))) }
