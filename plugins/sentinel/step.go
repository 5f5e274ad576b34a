// Package sentinel implements the step type that starts another sentinel as a child
// run.
package sentinel

import (
	"github.com/sentinel-runtime/sentinel/sdk"
)

const fields = `{
  "type": "object",
  "properties": {
    "definition": {"type": "object", "x-sentinel": "definition", "description": "The definition to run, {\"$ref\": id} for an existing sentinel, or one $reference to a variable with a definition, as an object or as JSON text. An inline definition begins with a copy of the variables around it."},
    "inputs": {"type": "object", "description": "Inputs of the child run. Strings may contain $references."},
    "tools": {"type": "array", "items": {"type": "string"}, "x-sentinel": "tools", "description": "Commands, or patterns such as code/*, that a definition in a variable may call besides those that this definition names; never more than this run may call.", "examples": [["code/read", "code/edit"]]},
    "await": {"type": "boolean", "default": true, "description": "Wait until the child run has ended. With false the step returns {run, sentinel} at once, and the outcome of the child run does not affect it."}
  },
  "required": ["definition"],
  "additionalProperties": false
}`

const outputSchema = `{
  "type": "object",
  "properties": {
    "run": {"type": "string", "description": "Id of the child run."},
    "sentinel": {"type": "string", "description": "With await false: its sentinel."},
    "success": {"type": "boolean", "description": "False if the output of the run has success false. A run that did not complete is an error."},
    "status": {"type": "string", "description": "completed"},
    "iterations": {"type": "integer", "description": "Iterations of the run."},
    "output": {"description": "Output of its last step."},
    "variables": {"type": "object", "description": "Its variables; each is also a field of the output under its own name, unless another field has that name."},
    "error": {"type": "object", "description": "{code, message}"}
  }
}`

// Step returns the step type.
func Step() sdk.Step {
	return sdk.Step{
		Type:    "sentinel",
		Summary: "Starts another sentinel and waits for its result, unless await is false.",
		Fields:  fields,
		Output:  outputSchema,
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
	return Joined(run, name, result)
}

// Joined returns the output of a step that waited for a run with the given result, and an
// error if the run did not complete. name is that of the sentinel, "" if it is not known.
func Joined(run, name string, result sdk.Value) (sdk.Value, error) {
	if err := failure(run, name, result); err != nil {
		return sdk.Value{}, err
	}
	return Output(run, result), nil
}

// Output returns the result of a child run: its fields, and each variable under its own
// name where no field has it. Its success is false if the run did not complete, or if its
// output has success false, such as that of a failed test.
func Output(run string, result sdk.Value) sdk.Value {
	last := result.Get("output")
	if !last.Exists() {
		last = sdk.Null()
	}
	fields := []sdk.Field{
		sdk.F("success", sdk.Bool(result.Get("status").StringOr("") == "completed" && last.Get("success").BoolOr(true))),
		sdk.F("status", result.Get("status")),
		sdk.F("run", sdk.String(run)),
		sdk.F("iterations", result.Get("iterations")),
		sdk.F("output", last),
		sdk.F("variables", result.Get("variables")),
		sdk.F("error", result.Get("error")),
	}
	own := sdk.Object(fields...)
	for name, value := range result.Get("variables").Fields() {
		if !own.Get(name).Exists() {
			fields = append(fields, sdk.F(name, value))
		}
	}
	return sdk.Object(fields...)
}

// failure returns the error for a child run that did not complete, nil for one that
// did. It keeps the code of the child's error, so that the retry decision depends on
// the cause. Without an error of the child its status decides.
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
		code, message = sdk.CodeTimeout, "reached its limit "+result.Get("reason").StringOr("timeoutMs")
	case "quarantined":
		code, message = sdk.CodeInterrupted, "is quarantined: it crashed the process three times"
	case "failed":
		message = "failed"
	}
	e := sdk.Fail(code, message)
	if own := sdk.ErrorFrom(result.Get("error")); own != nil {
		e = own
	}
	of := "run " + run
	if name != "" {
		of = "sentinel " + sdk.Quote(name) + " " + of
	}
	return sdk.Wrap(of, e)
}
