// Package approve is the step type that waits for a person's decision.
package approve

import "github.com/sentinel-runtime/sentinel/sdk"

const fields = `{
  "type": "object",
  "properties": {
    "prompt": {"type": "string", "minLength": 1, "description": "What the person decides on."},
    "approvers": {"type": "array", "items": {"type": "string"}, "description": "Who may decide. Without it: anyone who may decide on this host."}
  },
  "required": ["prompt"],
  "additionalProperties": false
}`

// Step describes the type. The prompt of a step without a type makes it one of
// type llm; approvers make it this.
func Step() sdk.Step {
	return sdk.Step{
		Type:    "approve",
		Summary: "Waits until a person approves; a rejection or a time limit is an error.",
		Fields:  fields,
		Infer:   []string{"approvers"},
		Run:     run,
	}
}

// run goes on only after a yes. A no is the error denied, naming who said it;
// the step's timeoutMs, kept by the host, is the error timeout. Neither can be
// taken for a yes by a step that forgot to look.
func run(c *sdk.Context) (sdk.Value, error) {
	prompt, err := c.StringField("prompt")
	if err != nil {
		return sdk.Value{}, err
	}
	if prompt == "" {
		return sdk.Value{}, sdk.BadField("prompt", "what is to be decided?")
	}
	approvers, _, err := c.StringsField("approvers")
	if err != nil {
		return sdk.Value{}, err
	}
	d, err := c.Decide(prompt, approvers, 0)
	if err != nil {
		return sdk.Value{}, err
	}
	if !d.Approved {
		message := "approve: rejected by " + d.By
		if d.Comment != "" {
			message += ": " + d.Comment
		}
		return sdk.Value{}, sdk.Permanent(sdk.Fail(sdk.CodeDenied, message))
	}
	return sdk.Object(
		sdk.F("approved", sdk.Bool(true)),
		sdk.F("by", sdk.String(d.By)),
		sdk.F("at", sdk.String(d.At)),
		sdk.F("comment", sdk.Text(d.Comment)),
	), nil
}
