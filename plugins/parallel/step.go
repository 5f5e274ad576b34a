// Package parallel is the step type that runs several lists of steps at once.
package parallel

import (
	"strconv"

	"github.com/sentinel-runtime/sentinel/sdk"
)

const fields = `{
  "type": "object",
  "properties": {
    "branches": {"x-sentinel": "branches", "description": "Lists of steps. Each starts from the variables as they are now and sees its own writes only; at the end the writes are applied in the order of the branches."},
    "failFast": {"type": "boolean", "default": false, "description": "The first branch that fails cancels the others, drops their writes and is the step's error. Without it all branches run to their end and the result says which failed."},
    "concurrency": {"type": "integer", "minimum": 0, "default": 0, "description": "How many branches run at once; 0 is all."}
  },
  "required": ["branches"],
  "additionalProperties": false
}`

// Step describes the type.
func Step() sdk.Step {
	return sdk.Step{
		Type:    "parallel",
		Summary: "Runs several lists of steps at once.",
		Fields:  fields,
		Infer:   []string{"branches"},
		Run:     run,
	}
}

// run gives {success, branches: [{success, output, error?}]}. Who wants every
// branch's outcome gets it as a result, success false if one failed; who wants
// the step to fail says failFast.
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
		if cause := culprit(results); cause >= 0 {
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

// culprit returns the branch that failed by itself, not because a sibling's
// failure cancelled it; the first that failed at all if there is no such; -1
// if none failed.
func culprit(results []sdk.BlockResult) int {
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
