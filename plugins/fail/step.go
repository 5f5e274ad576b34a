// Package fail implements the step type that ends with an error of its author.
package fail

import "github.com/sentinel-runtime/sentinel/sdk"

const fields = `{
  "type": "object",
  "properties": {
    "message": {"type": "string", "minLength": 1, "description": "Message of the error; may contain $references.", "examples": ["$count tests are red"]},
    "code": {"type": "string", "pattern": "^[a-z][a-z0-9_]{0,63}$", "default": "failed", "description": "Code of the error."}
  },
  "required": ["message"],
  "additionalProperties": false
}`

// Step returns the step type.
func Step() sdk.Step {
	return sdk.Step{
		Type:    "fail",
		Summary: "Fails with a message and a code.",
		Fields:  fields,
		Run:     run,
	}
}

func run(c *sdk.Context) (sdk.Value, error) {
	message, err := c.StringField("message")
	if err != nil {
		return sdk.Value{}, err
	}
	return sdk.Value{}, sdk.Permanent(sdk.Fail(sdk.Code(c.Field("code").StringOr("failed")), message))
}
