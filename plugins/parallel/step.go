// Package parallel implements the step type that executes several lists of steps concurrently.
package parallel

import (
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk"
)

const fields = `{
  "type": "object",
  "properties": {
    "branches": {"type": ["array", "object"], "x-sentinel": "branches", "description": "Lists of steps, or an object of them by name. Each branch starts with the current variables and sees only its own writes. At the end the writes are applied in the order of the branches; names are in alphabetical order."},
    "failFast": {"type": "boolean", "default": false, "description": "The first branch that fails cancels the others and fails the step; no write is kept. By default all run to their end before a failed branch fails the step."},
    "allowFailure": {"type": ["boolean", "array"], "items": {"type": ["integer", "string"], "minimum": 0}, "default": false, "description": "true: a branch that fails does not fail the step, and the result reports which failed. A list: this holds for the branches with these names, or numbers from 0."},
    "maxConcurrent": {"type": "integer", "minimum": 0, "default": 0, "description": "Maximum number of branches that run at once; 0 is no limit."}
  },
  "required": ["branches"],
  "additionalProperties": false
}`

const output = `{
  "type": "object",
  "properties": {
    "success": {"type": "boolean", "description": "False if a branch failed."},
    "branches": {"type": ["array", "object"], "description": "For each branch {success, output, error}: the output of its last step, and its error if it failed. By name if the branches have names."}
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

		Validate: check,
	}
}

func check(fields sdk.Value) []sdk.Problem {
	allow := fields.Get("allowFailure")
	if fields.Get("failFast").BoolOr(false) && allow.Given() {
		return []sdk.Problem{{Field: "allowFailure", Message: "has no effect with failFast, which ends all branches at the first failure"}}
	}
	names, _ := branches(fields)
	for _, item := range allow.Items() {
		// A reference has its value at the execution, which checks it.
		if text, ok := item.AsString(); ok && strings.Contains(text, "$") {
			continue
		}
		if find(item, names) < 0 {
			return []sdk.Problem{{Field: "allowFailure", Message: noBranch(item, names)}}
		}
	}
	return nil
}

// branches returns the names of the branches, in order, which are numbers if they are a list.
func branches(fields sdk.Value) (names []string, named bool) {
	counts := fields.Get("branches").Get("counts")
	if counts.Kind() != sdk.KindObject {
		for i := range counts.Len() {
			names = append(names, strconv.Itoa(i))
		}
		return names, false
	}
	for name := range counts.Fields() {
		names = append(names, name)
	}
	return names, true
}

// find returns the position of the branch that item names, -1 if there is none.
func find(item sdk.Value, names []string) int {
	text, ok := item.AsString()
	if i, number := item.AsInt(); number {
		text, ok = strconv.FormatInt(i, 10), true
	}
	for i, name := range names {
		if ok && name == text {
			return i
		}
	}
	return -1
}

func noBranch(item sdk.Value, names []string) string {
	message := "no branch " + item.String()
	switch last := len(names) - 1; {
	case last < 0:
		return message + ": the step has none"
	case names[0] == "0":
		return message + ": the branches are 0 to " + names[last]
	}
	return message + ": the branches are " + strings.Join(names, ", ")
}

// allowed returns which branches may fail.
func allowed(c *sdk.Context, names []string) ([]bool, error) {
	may := make([]bool, len(names))
	field := c.Field("allowFailure")
	all := field.BoolOr(false)
	for i := range may {
		may[i] = all
	}
	for _, item := range field.Items() {
		i := find(item, names)
		if i < 0 {
			return nil, sdk.BadField("allowFailure", noBranch(item, names))
		}
		may[i] = true
	}
	return may, nil
}

// run returns {success, branches}, in which branches has {success, output, error?} for each, in a list or by name. A
// failed branch is an error of the step, unless allowFailure says otherwise: then success is false.
func run(c *sdk.Context) (sdk.Value, error) {
	failFast, err := c.BoolField("failFast", false)
	if err != nil {
		return sdk.Value{}, err
	}
	concurrent, err := c.IntField("maxConcurrent", 0, 0)
	if err != nil {
		return sdk.Value{}, err
	}
	names, named := branches(c.Fields())
	may, err := allowed(c, names)
	if err != nil {
		return sdk.Value{}, err
	}
	blocks := make([]sdk.Block, len(names))
	for i, name := range names {
		blocks[i].Field = "branches." + name
	}
	success, items, byName := true, make([]sdk.Value, len(blocks)), make([]sdk.Field, len(blocks))
	if len(blocks) > 0 {
		results, err := c.Blocks(blocks, failFast, concurrent)
		if err != nil {
			return sdk.Value{}, err
		}
		if cause := rootCause(results); cause >= 0 && failFast {
			return sdk.Value{}, sdk.Wrap("branch "+names[cause], results[cause].Error)
		}
		if err := failure(results, names, may); err != nil {
			return sdk.Value{}, err
		}
		for i, r := range results {
			success = success && r.Success
			items[i] = item(r)
			byName[i] = sdk.F(names[i], items[i])
		}
	}
	all := sdk.List(items...)
	if named {
		all = sdk.Object(byName...)
	}
	return sdk.Object(sdk.F("success", sdk.Bool(success)), sdk.F("branches", all)), nil
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

// maxListed is how many failed branches an error names.
const maxListed = 10

// failure returns the error for the branches that failed and may not, nil if there are none.
// Its code is that of the first. It is permanent if all are. It has no field: that would be one
// of a step in a branch.
func failure(results []sdk.BlockResult, names []string, may []bool) error {
	var first *sdk.Error
	var list strings.Builder
	failed, permanent := 0, true
	for i, r := range results {
		if r.Success || may[i] {
			continue
		}
		failed++
		permanent = permanent && r.Error.Permanent
		if first == nil {
			first = r.Error
		}
		if failed <= maxListed {
			list.WriteString("; branch " + names[i] + ": " + r.Error.Message)
		}
	}
	if failed == 0 {
		return nil
	}
	if failed > maxListed {
		list.WriteString("; and " + strconv.Itoa(failed-maxListed) + " more")
	}
	e := *first
	e.Field = ""
	e.Message = strconv.Itoa(failed) + " of " + strconv.Itoa(len(results)) + " branches failed" + list.String()
	e.Permanent = permanent
	return &e
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
