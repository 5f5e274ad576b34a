// Package approve implements the step type that waits for a person's decision.
package approve

import "github.com/sentinel-runtime/sentinel/sdk"

const fields = `{
  "type": "object",
  "properties": {
    "prompt": {"type": "string", "minLength": 1, "description": "Question that the person decides."},
    "timeoutMs": {"type": "integer", "minimum": 1, "maximum": 1000000000000, "description": "Time limit in calendar time from the first question on, also while no process executes the run. Without a decision until then: error timeout."},
    "approvers": {"type": "array", "items": {"type": "string"}, "description": "Users who may decide. Default: everyone who may decide on this host."}
  },
  "required": ["prompt"],
  "additionalProperties": false
}`

const output = `{
  "type": "object",
  "properties": {
    "approved": {"type": "boolean", "description": "True; false only with onError skip, after a rejection or the time limit."},
    "by": {"type": "string", "description": "Who decided; empty after the time limit."},
    "at": {"type": "string", "description": "When, in RFC 3339."},
    "comment": {"type": "string", "description": "Comment of the person; empty if there is none."}
  },
  "additionalProperties": false
}`

// Step returns the step type. A step without a type is of this type if it has
// approvers; with a prompt alone it is of type llm.
func Step() sdk.Step {
	return sdk.Step{
		Type:    "approve",
		Summary: "Waits until a person approves; a rejection or a timeout is an error.",
		Fields:  fields,
		Output:  output,
		Infer:   []string{"approvers"},
		Run:     run,
	}
}

// run succeeds only after an approval. A rejection is the error denied, with the
// user who rejected, and the end of timeoutMs the error timeout. So later steps cannot mistake either for an
// approval. The data of both errors has the fields of an approval.
func run(c *sdk.Context) (sdk.Value, error) {
	prompt, err := c.StringField("prompt")
	if err != nil {
		return sdk.Value{}, err
	}
	if prompt == "" {
		return sdk.Value{}, sdk.BadField("prompt", "must not be empty")
	}
	approvers, _, err := c.StringsField("approvers")
	if err != nil {
		return sdk.Value{}, err
	}
	limit, err := c.IntField("timeoutMs", 1, 0)
	if err != nil {
		return sdk.Value{}, err
	}
	d, err := c.Decide(prompt, approvers, limit)
	answer := sdk.Object(
		sdk.F("approved", sdk.Bool(d.Approved)),
		sdk.F("by", sdk.String(d.By)),
		sdk.F("at", sdk.String(d.At)),
		sdk.F("comment", sdk.String(d.Comment)),
	)
	if err == nil && !d.Approved {
		message := "approve: rejected by " + d.By
		if d.Comment != "" {
			message += ": " + d.Comment
		}
		err = sdk.Permanent(sdk.Fail(sdk.CodeDenied, message))
	}
	if err != nil && d.At != "" {
		return sdk.Value{}, sdk.WithData(err, answer)
	}
	return answer, err
}
