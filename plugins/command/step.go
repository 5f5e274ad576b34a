// Package command implements the step type that calls one command of the host.
package command

import "github.com/sentinel-runtime/sentinel/sdk"

const fields = `{
  "type": "object",
  "properties": {
    "command": {"type": "string", "minLength": 1, "description": "Name of the command, such as code/read or sentinel/start.", "examples": ["code/read"]},
    "params": {"type": "object", "x-sentinel": "params", "description": "Parameters of the command, by its schema. Strings may contain $references."},
    "allow": {"type": "array", "items": {"type": "string"}, "x-sentinel": "tools", "description": "Commands that may be called, as in tools. Required if command has a reference."}
  },
  "required": ["command"],
  "additionalProperties": false
}`

// Step returns the step type.
func Step() sdk.Step {
	return sdk.Step{
		Type:     "command",
		Summary:  "Calls a command and returns its result.",
		Fields:   fields,
		Infer:    []string{"command"},
		Run:      run,
		Validate: check,
	}
}

// check requires an allow-list, written in the definition, for a command that only the run
// knows: a value, which may come from a model, never decides alone what is called.
func check(fields sdk.Value) []sdk.Problem {
	allow := fields.Get("allow")
	if !allow.Given() {
		if dollar(fields.Get("command")) {
			return []sdk.Problem{{Field: "command", Message: "a command that is the value of a reference needs the field allow", Hint: `list what may be called: "allow": ["code/read"]`}}
		}
		return nil
	}
	problem := []sdk.Problem{{Field: "allow", Message: "want a list of commands without references", Hint: "a value must not widen what the definition allows"}}
	if allow.Kind() != sdk.KindList {
		return problem
	}
	for _, entry := range allow.Items() {
		if dollar(entry) {
			return problem
		}
	}
	return nil
}

// dollar reports whether a string has a dollar, which names of commands do not have.
func dollar(v sdk.Value) bool {
	for _, c := range []byte(v.StringOr("")) {
		if c == '$' {
			return true
		}
	}
	return false
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
	allow, given, err := c.StringsField("allow")
	if err != nil {
		return sdk.Value{}, err
	}
	if given {
		// The rules for models apply: also to parameters, which come from the same value.
		return c.ToolCommand(name, params, allow)
	}
	return c.Command(name, params)
}
