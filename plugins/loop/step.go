// Package loop is the step type that runs its steps again and again.
package loop

import "github.com/sentinel-runtime/sentinel/sdk"

const fields = `{
  "type": "object",
  "properties": {
    "steps": {"x-sentinel": "steps", "description": "The steps of one pass."},
    "count": {"type": "integer", "minimum": 0, "description": "Number of passes."},
    "while": {"type": "string", "minLength": 1, "x-sentinel": "expression", "description": "JavaScript expression over $variables, checked before each pass: go on while it is true."},
    "until": {"type": "string", "minLength": 1, "x-sentinel": "expression", "description": "JavaScript expression over $variables, checked after each pass: go on until it is true."},
    "each": {"type": "array", "description": "A list, often a $reference: one pass for each item."},
    "as": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$", "default": "item", "x-sentinel": "variable", "description": "With each: the variable that holds the item."},
    "indexAs": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$", "default": "index", "x-sentinel": "variable", "description": "The variable that holds the number of the pass, from 0. Give nested loops different ones."},
    "maxIterations": {"type": "integer", "minimum": 1, "description": "Most passes. Reaching it before the loop is done is an error. Default 10000, none for count and each."}
  },
  "required": ["steps"],
  "additionalProperties": false
}`

// Step describes the type.
func Step() sdk.Step {
	return sdk.Step{
		Type:     "loop",
		Summary:  "Runs its steps several times.",
		Fields:   fields,
		Infer:    []string{"steps"},
		Run:      run,
		Validate: check,
	}
}

// kinds are the fields that say how a loop ends, of which it has one.
var kinds = [...]string{"count", "while", "until", "each"}

// check wants one kind. None is fine with maxIterations: such a loop ends when
// a step fails or the cap is reached, and the cap is an error.
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
		return []sdk.Problem{{Field: "as", Message: "belongs to each"}}
	}
	return nil
}
