// Package sentinel is the step type that starts another sentinel, as a run of
// its own below this one.
package sentinel

import (
	"github.com/sentinel-runtime/sentinel/sdk"
)

const fields = `{
  "type": "object",
  "properties": {
    "definition": {"type": "object", "x-sentinel": "definition", "description": "What to run: a definition, or {\"$ref\": id} for one that exists."},
    "inputs": {"type": "object", "description": "Inputs of the child. Texts may hold $references."},
    "await": {"type": "boolean", "default": true, "description": "Wait until the child has ended. With false the step gives {run, sentinel} at once, and the child's end does not concern it."}
  },
  "required": ["definition"],
  "additionalProperties": false
}`

// Step describes the type.
func Step() sdk.Step {
	return sdk.Step{
		Type:    "sentinel",
		Summary: "Starts another sentinel and, by default, waits for its result.",
		Fields:  fields,
		Infer:   []string{"definition"},
		Aliases: map[string]string{"pipeline": "definition"},
		Run:     run,
	}
}

func run(c *sdk.Context) (sdk.Value, error) {
	await, err := c.BoolField("await", true)
	if err != nil {
		return sdk.Value{}, err
	}
	inputs := c.Field("inputs")
	if inputs.Given() && inputs.Kind() != sdk.KindObject {
		return sdk.Value{}, sdk.BadField("inputs", "want an object, got "+inputs.Kind().String())
	}
	run, name, err := c.Spawn("definition", inputs)
	if err != nil {
		return sdk.Value{}, err
	}
	if !await {
		return sdk.Object(sdk.F("run", sdk.String(run)), sdk.F("sentinel", sdk.String(name))), nil
	}
	result, err := c.WaitRun(run)
	if err != nil {
		return sdk.Value{}, err
	}
	if err := failure(run, name, result); err != nil {
		return sdk.Value{}, err
	}
	return output(run, result), nil
}

// output is the result of a child that completed. Its success also looks at
// what the child's last step gave, so that a child whose tests were red is not
// taken for a good one.
func output(run string, result sdk.Value) sdk.Value {
	last := result.Get("output")
	if !last.Exists() {
		last = sdk.Null()
	}
	return sdk.Object(
		sdk.F("success", sdk.Bool(last.Get("success").BoolOr(true))),
		sdk.F("status", result.Get("status")),
		sdk.F("run", sdk.String(run)),
		sdk.F("iterations", result.Get("iterations")),
		sdk.F("output", last),
		sdk.F("variables", result.Get("variables")),
		sdk.F("error", result.Get("error")),
	)
}

// failure is the error for a child that ended otherwise than completed, nil
// for one that did. The child's own code passes through, so that a retry
// decides by what really happened; a child without an error is named by how it
// ended.
func failure(run, name string, result sdk.Value) error {
	status := result.Get("status").StringOr("")
	if status == "completed" {
		return nil
	}
	code, message := sdk.CodePlugin, "ended as "+sdk.Quote(status)
	switch status {
	case "stopped":
		code, message = sdk.CodeCancelled, "was stopped"
	case "timed_out":
		code, message = sdk.CodeTimeout, "reached its time limit"
	case "quarantined":
		code, message = sdk.CodeInterrupted, "is quarantined: it took the process down three times"
	case "failed":
		message = "failed"
	}
	e := sdk.Fail(code, message)
	if own := sdk.ErrorFrom(result.Get("error")); own != nil {
		e = own
	}
	return sdk.Wrap("sentinel "+sdk.Quote(name)+" run "+run, e)
}
