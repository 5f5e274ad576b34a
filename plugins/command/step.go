// Package command implements the step type that calls one command of the host.
package command

import "github.com/sentinel-runtime/sentinel/sdk"

const fields = `{
  "type": "object",
  "properties": {
    "command": {"type": "string", "minLength": 1, "description": "Name of the command, such as code/read or sentinel/start.", "examples": ["code/read"]},
    "params": {"type": "object", "x-sentinel": "params", "description": "Parameters of the command, by its schema. Strings may contain $references."}
  },
  "required": ["command"],
  "additionalProperties": false
}`

// Step returns the step type.
func Step() sdk.Step {
	return sdk.Step{
		Type:    "command",
		Summary: "Calls a command and returns its result.",
		Fields:  fields,
		Infer:   []string{"command"},
		Run:     run,
	}
}

// run returns the result of the command unchanged. A result with success false is
// not an error; conditions can check it.
func run(c *sdk.Context) (sdk.Value, error) {
	name, err := c.StringField("command")
	if err != nil {
		return sdk.Value{}, err
	}
	if name == "" {
		return sdk.Value{}, sdk.BadField("command", "must not be empty")
	}
	params := c.Field("params")
	if params.Given() && params.Kind() != sdk.KindObject {
		return sdk.Value{}, sdk.BadField("params", "want an object, got "+params.Kind().String())
	}
	if !params.Given() {
		params = sdk.Object()
	}
	return c.Command(name, params)
}
