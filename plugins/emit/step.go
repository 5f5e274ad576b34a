// Package emit implements the step type that publishes an event, which can trigger
// other sentinels.
package emit

import "github.com/sentinel-runtime/sentinel/sdk"

const fields = `{
  "type": "object",
  "properties": {
    "event": {"type": "string", "minLength": 1, "description": "Name of the event, segments separated by colons.", "examples": ["sentinel:deployed"]},
    "data": {"description": "Data of the event: any value, often a $reference. Runs that it triggers read it as $event.data."}
  },
  "required": ["event"],
  "additionalProperties": false
}`

const output = `{
  "type": "object",
  "properties": {
    "id": {"type": "string", "description": "Id of the event."},
    "event": {"type": "string", "description": "Name of the event."}
  },
  "additionalProperties": false
}`

// Step returns the step type.
func Step() sdk.Step {
	return sdk.Step{
		Type:    "emit",
		Summary: "Publishes an event.",
		Fields:  fields,
		Output:  output,
		Infer:   []string{"event"},
		Aliases: map[string]string{"payload": "data"},
		Run:     run,
	}
}

func run(c *sdk.Context) (sdk.Value, error) {
	event, err := c.StringField("event")
	if err != nil {
		return sdk.Value{}, err
	}
	if event == "" {
		return sdk.Value{}, sdk.BadField("event", "must not be empty")
	}
	id, err := c.Emit(event, c.Field("data"))
	if err != nil {
		return sdk.Value{}, err
	}
	return sdk.Object(sdk.F("id", sdk.String(id)), sdk.F("event", sdk.String(event))), nil
}
