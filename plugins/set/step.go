// Package set implements the step type that computes values and stores them in variables.
package set

import "github.com/sentinel-runtime/sentinel/sdk"

const fields = `{
  "type": "object",
  "properties": {
    "values": {"type": "object", "minProperties": 1, "x-sentinel": "values", "description": "Values of variables: any JSON, whose strings may contain $references, or {\"expr\": JavaScript over $variables}. All values are computed from the variables before the step.", "examples": [{"count": {"expr": "($count ?? 0) + 1"}, "title": "Build $iteration"}]}
  },
  "required": ["values"],
  "additionalProperties": false
}`

const output = `{"type": "object", "description": "The values, by name."}`

// Step returns the step type.
func Step() sdk.Step {
	return sdk.Step{
		Type:     "set",
		Summary:  "Computes values and stores them in variables.",
		Fields:   fields,
		Output:   output,
		Infer:    []string{"values"},
		ReadOnly: true,
		Run:      run,
	}
}

// run returns the values that it has set, by name. None is set after an error.
func run(c *sdk.Context) (sdk.Value, error) {
	var fields []sdk.Field
	for name, entry := range c.Field("values").Fields() {
		value := entry.Get("value")
		if source, ok := entry.Get("expr").AsString(); ok {
			var err error
			if value, err = c.EvalValue(source); err != nil {
				return sdk.Value{}, failed(name, err)
			}
		}
		fields = append(fields, sdk.F(name, value))
	}
	values := sdk.Object(fields...)
	return values, c.SetVars(values)
}

// failed returns the error of an expression with the name of its variable. An Error that the
// author throws, to fail the step, has the author's text alone: only that of the expression itself
// begins as such errors do.
func failed(name string, err error) error {
	const own = "expression"
	if e := sdk.AsError(err); e.Code == sdk.CodePlugin && (len(e.Message) < len(own) || e.Message[:len(own)] != own) {
		return err
	}
	return sdk.Wrap("values."+name, err)
}
