// Package loop implements the step type that executes its steps repeatedly.
package loop

import "github.com/sentinel-runtime/sentinel/sdk"

const fields = `{
  "type": "object",
  "properties": {
    "steps": {"x-sentinel": "steps", "description": "The steps of one iteration."},
    "count": {"type": "integer", "minimum": 0, "description": "Number of iterations."},
    "while": {"type": "string", "minLength": 1, "x-sentinel": "expression", "description": "JavaScript expression over $variables, checked before each iteration. The loop continues while it is true."},
    "until": {"type": "string", "minLength": 1, "x-sentinel": "expression", "description": "JavaScript expression over $variables, checked after each iteration. The loop ends when it is true."},
    "each": {"type": ["array", "object"], "properties": {"linesOf": {"type": "string", "minLength": 1, "description": "The id of an execution that has ended.", "examples": ["$find.executionId"]}}, "required": ["linesOf"], "additionalProperties": false, "description": "A list, often a $reference, or {\"linesOf\": \"$id.executionId\"}: the lines that a shell line wrote to its standard output, however many. One iteration for each item.", "examples": ["$files", {"linesOf": "$find.executionId"}]},
    "as": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$", "default": "item", "x-sentinel": "variable", "description": "With each: name of the variable with the item."},
    "indexAs": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$", "default": "index", "x-sentinel": "variable", "description": "Name of the variable with the number of the iteration, from 0. Nested loops need different names."},
    "maxIterations": {"type": "integer", "minimum": 1, "description": "Maximum number of iterations. Reaching it before the loop ends is an error. Default 10000; no limit for count and each."}
  },
  "required": ["steps"],
  "additionalProperties": false
}`

const output = `{
  "type": "object",
  "properties": {
    "iterations": {"type": "integer", "description": "Number of iterations."},
    "output": {"description": "Output of the last step of the last iteration, or null."},
    "reason": {"type": "string", "enum": ["count", "while", "until", "each", ""], "description": "The field that ended the loop."}
  },
  "additionalProperties": false
}`

// Step returns the step type.
func Step() sdk.Step {
	return sdk.Step{
		Type:     "loop",
		Summary:  "Executes its steps several times.",
		Fields:   fields,
		Output:   output,
		Infer:    []string{"steps"},
		Run:      run,
		Validate: check,
	}
}

// kinds are the fields that define how a loop ends. A loop has one of them.
var kinds = [...]string{"count", "while", "until", "each"}

// check requires one of kinds, or none with maxIterations: such a loop ends when a
// step fails or with the error of the limit.
func check(fields sdk.Value) []sdk.Problem {
	given := ""
	for _, name := range kinds {
		if !fields.Get(name).Given() {
			continue
		}
		if given != "" {
			return []sdk.Problem{{Field: name, Message: "want one of count, while, until and each, not also " + given}}
		}
		given = name
	}
	if given == "" && !fields.Get("maxIterations").Given() {
		return []sdk.Problem{{Field: "count", Message: "want one of count, while, until and each", Hint: "a loop without them needs maxIterations"}}
	}
	if given != "each" && fields.Get("as").Given() {
		return []sdk.Problem{{Field: "as", Message: "requires each"}}
	}
	return nil
}
