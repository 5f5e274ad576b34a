// Package watch implements the step type that waits for the classified output of a
// shell execution, or for an event.
package watch

import "github.com/sentinel-runtime/sentinel/sdk"

const fields = `{
  "type": "object",
  "properties": {
    "executionId": {"type": "string", "description": "Id of the shell execution to watch, as returned by code/shell/execute with wait:false.", "examples": ["$build.executionId"]},
    "rules": {
      "type": "array",
      "description": "Rules that classify lines; the first match decides. Default: the rules of the execution.",
      "items": {
        "type": "object",
        "properties": {
          "pattern": {"type": "string", "description": "Regular expression (RE2)."},
          "classification": {"type": "string", "enum": ["error", "warning", "info", "success", "verbose"], "description": "Class of a matching line."},
          "action": {"type": "string", "enum": ["Emit", "Suppress"], "default": "Emit", "description": "Keep the line or drop it."}
        },
        "required": ["pattern", "classification"],
        "additionalProperties": false
      },
      "x-sentinel": "raw"
    },
    "until": {"type": "string", "enum": ["finished", "error", "match"], "default": "finished", "description": "When to stop: at the end of the execution, at the first line classified as error, or at the first line that a rule matches. The end of the execution always stops."},
    "event": {"type": "string", "minLength": 1, "description": "Instead of an execution: pattern of the event to wait for. * matches one segment, a final ** the rest."}
  },
  "additionalProperties": false
}`

// Step returns the step type.
func Step() sdk.Step {
	return sdk.Step{
		Type:     "watch",
		Summary:  "Waits for the output of a running process, or for an event.",
		Fields:   fields,
		Output:   output,
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
		return []sdk.Problem{{Field: "event", Message: "rules and until require executionId"}}
	}
	return nil
}

// run returns {executionId, lines, text, finished, exitCode, success} for an
// execution, and {event} for an event.
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
