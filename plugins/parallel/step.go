// Package parallel implements the step type that executes several lists of steps concurrently.
package parallel

import (
	"strconv"

	"github.com/sentinel-runtime/sentinel/sdk"
)

const fields = `{
  "type": "object",
  "properties": {
    "branches": {"x-sentinel": "branches", "description": "Lists of steps. Each branch starts with the current variables and sees only its own writes. At the end the writes are applied in the order of the branches."},
    "failFast": {"type": "boolean", "default": false, "description": "The first branch that fails cancels the others and fails the step; no write is kept. By default all run to their end and the result reports which failed."},
    "concurrency": {"type": "integer", "minimum": 0, "default": 0, "description": "Maximum number of branches that run at once; 0 is no limit."}
  },
  "required": ["branches"],
  "additionalProperties": false
}`

const output = `{
  "type": "object",
  "properties": {
    "success": {"type": "boolean", "description": "False if a branch failed."},
    "branches": {"type": "array", "description": "For each branch {success, output, error}: the output of its last step, and its error if it failed."}
  },
  "additionalProperties": false
}`

// Step returns the step type.
func Step() sdk.Step {
	return sdk.Step{
		Type:    "parallel",
		Summary: "Executes several lists of steps concurrently.",
		Fields:  fields,
		Output:  output,
		Infer:   []string{"branches"},
		Run:     run,
	}
}

// run returns {success, branches: [{success, output, error?}]}. success is false
// if a branch failed. With failFast a failed branch is an error of the step
// instead.
func run(c *sdk.Context) (sdk.Value, error) {
	failFast, err := c.BoolField("failFast", false)
	if err != nil {
		return sdk.Value{}, err
	}
	concurrency, err := c.IntField("concurrency", 0, 0)
	if err != nil {
		return sdk.Value{}, err
	}
	blocks := make([]sdk.Block, c.Branches("branches"))
	for i := range blocks {
		blocks[i].Field = "branches." + strconv.Itoa(i)
	}
	success, items := true, make([]sdk.Value, len(blocks))
	if len(blocks) > 0 {
		results, err := c.Blocks(blocks, failFast, concurrency)
		if err != nil {
			return sdk.Value{}, err
		}
		if cause := rootCause(results); cause >= 0 {
			success = false
			if failFast {
				return sdk.Value{}, sdk.Wrap("branch "+strconv.Itoa(cause), results[cause].Error)
			}
		}
		for i, r := range results {
			items[i] = item(r)
		}
	}
	return sdk.Object(sdk.F("success", sdk.Bool(success)), sdk.F("branches", sdk.List(items...))), nil
}

func item(r sdk.BlockResult) sdk.Value {
	output := r.Output
	if !output.Exists() {
		output = sdk.Null()
	}
	return sdk.Object(
		sdk.F("success", sdk.Bool(r.Success)),
		sdk.F("output", output),
		sdk.F("error", sdk.ErrorValue(r.Error)),
	)
}

// rootCause returns the first branch that failed and was not cancelled because of
// another branch. If all failed branches were cancelled it returns the first one,
// and -1 if none failed.
func rootCause(results []sdk.BlockResult) int {
	first := -1
	for i, r := range results {
		if r.Success {
			continue
		}
		if r.Error.Code != sdk.CodeCancelled {
			return i
		}
		if first < 0 {
			first = i
		}
	}
	return first
}
