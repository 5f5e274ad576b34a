// Package stop implements the step type that ends its run.
package stop

import "github.com/sentinel-runtime/sentinel/sdk"

const fields = `{
  "type": "object",
  "properties": {
    "status": {"type": "string", "enum": ["completed", "failed", "stopped"], "default": "stopped", "description": "Status of the run. completed is a success, with exit code 0; the others are exit code 1."},
    "message": {"type": "string", "minLength": 1, "description": "Why; may contain $references. The message of the run's error; of a run that is completed the live view shows it."}
  },
  "additionalProperties": false
}`

// Step returns the step type.
func Step() sdk.Step {
	return sdk.Step{
		Type:    "stop",
		Summary: "Ends the run at once, also from within loops and branches: as stopped, unless status is completed.",
		Fields:  fields,
		Run:     run,
	}
}

func run(c *sdk.Context) (sdk.Value, error) {
	e := sdk.Fail(sdk.CodePlugin, c.Field("message").StringOr("a step of type stop ended the run"))
	e.End = c.Field("status").StringOr("stopped")
	return sdk.Value{}, sdk.Permanent(e)
}
