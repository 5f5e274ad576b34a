// Package watch is the step type that blocks until something was heard: the
// classified output of a shell execution, or an event.
package watch

import "github.com/sentinel-runtime/sentinel/sdk"

const fields = `{
  "type": "object",
  "properties": {
    "executionId": {"type": "string", "description": "The shell execution to watch, as code/shell/execute with wait:false gave it.", "examples": ["$build.executionId"]},
    "rules": {
      "type": "array",
      "description": "Rules that classify lines; the first one that matches wins. Without them those of the execution hold.",
      "items": {
        "type": "object",
        "properties": {
          "pattern": {"type": "string", "description": "Regular expression (RE2)."},
          "classification": {"type": "string", "enum": ["error", "warning", "info", "success", "verbose"], "description": "What a line that matches is."},
          "action": {"type": "string", "enum": ["Emit", "Suppress"], "default": "Emit", "description": "Keep the line or drop it."}
        },
        "required": ["pattern", "classification"],
        "additionalProperties": false
      },
      "x-sentinel": "raw"
    },
    "until": {"type": "string", "enum": ["finished", "error", "match"], "default": "finished", "description": "When to stop: the execution has ended, the first line classified as error, or the first line that a rule matched. The end of the execution always stops."},
    "event": {"type": "string", "minLength": 1, "description": "Instead of an execution: pattern of the event to wait for. A * stands for one segment, a final ** for the rest."}
  },
  "additionalProperties": false
}`

// Step describes the type.
func Step() sdk.Step {
	return sdk.Step{
		Type:     "watch",
		Summary:  "Waits for the output of a running process, or for an event.",
		Fields:   fields,
		Infer:    []string{"executionId"},
		ReadOnly: true,
		Run:      run,
		Validate: check,
	}
}

func check(fields sdk.Value) []sdk.Problem {
	execution, event := fields.Get("executionId").Given(), fields.Get("event").Given()
	switch {
	case !execution && !event:
		return []sdk.Problem{{Field: "executionId", Message: "want executionId or event", Hint: `start a process with code/shell/execute and "wait": false, and watch "$name.executionId"`}}
	case execution && event:
		return []sdk.Problem{{Field: "event", Message: "want executionId or event, not both"}}
	case event && (fields.Get("rules").Given() || fields.Get("until").Given()):
		return []sdk.Problem{{Field: "event", Message: "rules and until belong to executionId"}}
	}
	return nil
}

// run gives the answer for an execution as the host has it: executionId,
// lines, text, finished, exitCode, success. For an event it gives the record.
func run(c *sdk.Context) (sdk.Value, error) {
	if err := sdk.BadFields(check(c.Fields())); err != nil {
		return sdk.Value{}, err
	}
	if c.Field("event").Given() {
		pattern, err := c.StringField("event")
		if err != nil {
			return sdk.Value{}, err
		}
		event, err := c.WaitEvent(pattern, 0)
		return sdk.Object(sdk.F("event", event)), err
	}
	id, err := c.StringField("executionId")
	if err != nil {
		return sdk.Value{}, err
	}
	if id == "" {
		return sdk.Value{}, sdk.BadField("executionId", "empty: the execution did not start or its variable is not set")
	}
	until, err := c.StringField("until")
	if err != nil {
		return sdk.Value{}, err
	}
	if until == "" {
		until = "finished"
	}
	answer, err := c.Watch(id, c.Field("rules"), until)
	if err != nil {
		return sdk.Value{}, err
	}
	if exit, ok := answer.Get("exitCode").AsInt(); ok && !answer.Get("success").Exists() {
		answer = answer.With("success", sdk.Bool(exit == 0))
	}
	return answer, nil
}
