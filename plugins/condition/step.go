// Package condition implements the step type that executes one of two branches.
package condition

import "github.com/sentinel-runtime/sentinel/sdk"

const fields = `{
  "type": "object",
  "properties": {
    "check": {"type": "string", "minLength": 1, "x-sentinel": "expression", "description": "JavaScript expression over $variables.", "examples": ["$build.exitCode === 0"]},
    "then": {"x-sentinel": "steps", "description": "Steps to execute if the check is true. May be missing or empty."},
    "else": {"x-sentinel": "steps", "description": "Steps to execute if the check is false. May be missing or empty."}
  },
  "required": ["check"],
  "additionalProperties": false
}`

const output = `{
  "type": "object",
  "properties": {
    "branch": {"type": "string", "enum": ["then", "else", "none"], "description": "The branch that was executed; none if it has no steps."},
    "value": {"type": "boolean", "description": "Value of the check."},
    "output": {"description": "Output of the last step of the branch, or null."}
  },
  "additionalProperties": false
}`

// Step returns the step type.
func Step() sdk.Step {
	return sdk.Step{
		Type:    "condition",
		Summary: "Executes one of two lists of steps.",
		Fields:  fields,
		Output:  output,
		Infer:   []string{"check"},
		Aliases: map[string]string{"if": "check"},
		Run:     run,
	}
}

// run returns {branch, value, output}. A branch without steps is a success with
// branch "none". An error in the branch is the step's error, unchanged.
func run(c *sdk.Context) (sdk.Value, error) {
	check, err := c.StringField("check")
	if err != nil {
		return sdk.Value{}, err
	}
	_, yes, err := c.Eval(check, sdk.Value{})
	if err != nil {
		return sdk.Value{}, err
	}
	branch := "else"
	if yes {
		branch = "then"
	}
	output := sdk.Null()
	if c.Steps(branch) == 0 {
		branch = "none"
	} else if output, err = c.Block(branch, sdk.Value{}); err != nil {
		return sdk.Value{}, err
	}
	return sdk.Object(
		sdk.F("branch", sdk.String(branch)),
		sdk.F("value", sdk.Bool(yes)),
		sdk.F("output", output),
	), nil
}
