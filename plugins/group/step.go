// Package group implements the step type that gives a list of steps a name, an end and one way to handle errors.
package group

import "github.com/sentinel-runtime/sentinel/sdk"

const fields = `{
  "type": "object",
  "properties": {
    "steps": {"x-sentinel": "steps", "description": "The steps, in the order of execution."},
    "onFailure": {"x-sentinel": "steps", "description": "Steps after the group if it is not completed, with $result {status, reason, error {code, message, step, stepId, exitCode}}. What they set stays in them."},
    "finally": {"x-sentinel": "steps", "description": "Steps after the group, however it ended, also at a stop and a time limit, with $result."},
    "finallyTimeoutMs": {"type": "integer", "minimum": 1, "default": 60000, "description": "Time limit of onFailure and of finally."}
  },
  "required": ["steps"],
  "additionalProperties": false
}`

const output = `{
  "type": "object",
  "properties": {
    "output": {"description": "Output of the last step, or null."}
  },
  "additionalProperties": false
}`

// Step returns the step type.
func Step() sdk.Step {
	return sdk.Step{
		Type:    "group",
		Summary: "Executes a list of steps as one, with onFailure and finally.",
		Fields:  fields,
		Output:  output,
		Run:     run,

		Validate: CheckEnd,
	}
}

// CheckEnd requires a list that finallyTimeoutMs is for.
func CheckEnd(fields sdk.Value) []sdk.Problem {
	if fields.Get("finallyTimeoutMs").Given() && !fields.Get("finally").Given() && !fields.Get("onFailure").Given() {
		return []sdk.Problem{{Field: "finallyTimeoutMs", Message: "requires finally or onFailure"}}
	}
	return nil
}

func run(c *sdk.Context) (sdk.Value, error) {
	output := sdk.Null()
	if c.Steps("steps") > 0 {
		var err error
		if output, err = c.Block("steps", sdk.Value{}); err != nil {
			return sdk.Value{}, err
		}
	}
	return sdk.Object(sdk.F("output", output)), nil
}
