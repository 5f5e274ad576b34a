// Package command is the step type that calls one command of the host.
package command

import "github.com/sentinel-runtime/sentinel/sdk"

const fields = `{
  "type": "object",
  "properties": {
    "command": {"type": "string", "minLength": 1, "description": "Name of the command, such as code/read or sentinel/start.", "examples": ["code/read"]},
    "params": {"type": "object", "x-sentinel": "params", "description": "Parameters of the command, by that command's own schema. Texts may hold $references."}
  },
  "required": ["command"],
  "additionalProperties": false
}`

// Step describes the type.
func Step() sdk.Step {
	return sdk.Step{
		Type:    "command",
		Summary: "Calls a command and gives its result.",
		Fields:  fields,
		Infer:   []string{"command"},
		Run:     run,
	}
}

// run passes the result on untouched: a command that found something bad, with
// success false, is a result for conditions to look at and no error.
func run(c *sdk.Context) (sdk.Value, error) {
	name, err := c.StringField("command")
	if err != nil {
		return sdk.Value{}, err
	}
	if name == "" {
		return sdk.Value{}, sdk.BadField("command", "which command?")
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
