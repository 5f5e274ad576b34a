// Package loop implements the step type that executes its steps repeatedly.
package loop

import (
	"github.com/sentinel-runtime/sentinel/plugins/group"
	"github.com/sentinel-runtime/sentinel/sdk"
)

const fields = `{
  "type": "object",
  "properties": {
    "steps": {"x-sentinel": "steps", "description": "The steps of one iteration."},
    "count": {"type": "integer", "minimum": 0, "description": "Number of iterations."},
    "while": {"type": "string", "minLength": 1, "x-sentinel": "expression", "description": "JavaScript expression over $variables, checked before each iteration. The loop continues while it is true."},
    "until": {"type": "string", "minLength": 1, "x-sentinel": "expression", "description": "JavaScript expression over $variables, checked after each iteration. The loop ends when it is true."},
    "each": {"type": ["array", "object"], "properties": {
      "linesOf": {"type": "string", "minLength": 1, "description": "The id of an execution that has ended.", "examples": ["$find.executionId"]},
      "expr": {"type": "string", "minLength": 1, "x-sentinel": "expression", "description": "JavaScript expression over $variables whose value is a list."},
      "from": {"type": "integer", "description": "The first whole number."},
      "to": {"type": "integer", "description": "The last whole number; less than from is an empty list."},
      "files": {"type": "string", "minLength": 1, "description": "Glob of files in the workspace, at most 2000; one without a slash applies in every folder, ./*.go in the first.", "examples": ["src/**/*.go"]}
    }, "additionalProperties": false, "description": "A list, often a $reference; {\"expr\": JavaScript}; {\"from\": 1, \"to\": 9}; {\"files\": \"**/*.go\"}; or {\"linesOf\": \"$id.executionId\"}: the lines that a shell line wrote to its standard output. One iteration for each item; their steps count for safety.maxSteps, 100,000.", "examples": ["$files", {"from": 1, "to": 9}, {"linesOf": "$find.executionId"}]},
    "maxConcurrent": {"type": "integer", "minimum": 1, "maximum": 1000, "description": "With each: how many items are executed at once. Each starts with the current variables and keeps what it sets to itself; its output is in results."},
    "onItemError": {"type": "string", "enum": ["fail", "continue", "stop"], "default": "fail", "description": "With each, after an item whose steps fail: fail the step, continue with the others, or stop without an error. No further item begins after fail and stop; items that run end."},
    "as": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$", "default": "item", "x-sentinel": "variable", "description": "With each: name of the variable with the item."},
    "indexAs": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$", "default": "index", "x-sentinel": "variable", "description": "Name of the variable with the number of the iteration, from 0. Nested loops need different names."},
    "onFailure": {"x-sentinel": "steps", "description": "Steps after the loop if it is not completed, with $result {status, reason, error {code, message, step, stepId, exitCode}}. What they set stays in them."},
    "finally": {"x-sentinel": "steps", "description": "Steps after the loop, however it ended, also at a stop and a time limit, with $result."},
    "finallyTimeoutMs": {"type": "integer", "minimum": 1, "default": 60000, "description": "Time limit of onFailure and of finally."},
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
    "results": {"type": "array", "description": "With maxConcurrent or onItemError: for each item the output of its last step, in the order of the list; null for one that failed."},
    "failed": {"type": "array", "items": {"type": "object", "properties": {"index": {"type": "integer"}, "item": {}, "error": {"type": "object", "properties": {"code": {"type": "string"}, "message": {"type": "string"}}}}, "additionalProperties": false}, "description": "The items that failed: {index, item, error}."},
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
			return []sdk.Problem{{Field: name, Message: "want one of count, while, until and each, not also " + given, Hint: oneKind(fields, given, name)}}
		}
		given = name
	}
	if given == "" && !fields.Get("maxIterations").Given() {
		return []sdk.Problem{{Field: "count", Message: "want one of count, while, until and each", Hint: "a loop without them needs maxIterations"}}
	}
	for _, name := range [...]string{"as", "maxConcurrent", "onItemError"} {
		if given != "each" && fields.Get(name).Given() {
			return []sdk.Problem{{Field: name, Message: "requires each"}}
		}
	}
	return append(checkEach(fields), group.CheckEnd(fields)...)
}

// oneKind returns the line to write in place of two of kinds, in their order. An expression
// can have all conditions of a loop except the end of a list.
func oneKind(fields sdk.Value, first, second string) string {
	check := fields.Get(second).StringOr("...")
	index := "$" + fields.Get("indexAs").StringOr("index")
	count := fields.Get("count").StringOr(fields.Get("count").String())
	switch first + " " + second {
	case "count while":
		check = "(" + check + ") && " + index + " < " + count
	case "count until":
		last := count + " - 1"
		if n, ok := fields.Get("count").AsInt(); ok {
			last = sdk.Int(n - 1).String()
		}
		check = "(" + check + ") || " + index + " >= " + last
	case "while until":
		return `write "while": ` + sdk.String("("+fields.Get("while").StringOr("...")+") && !("+check+")").String() + ` without "until"`
	case "count each":
		return `leave "count" out: "each" has one iteration for each item; a shorter list is {"expr": "$LIST.slice(0, ` + count + `)"}`
	case "while each":
		return itemEnd("!("+fields.Get("while").StringOr("...")+")", "first", "while")
	case "until each":
		return itemEnd(fields.Get("until").StringOr("..."), "last", "until")
	}
	return `write "` + second + `": ` + sdk.String(check).String() + ` without "count"`
}

// itemEnd returns how a loop with each ends before its last item.
func itemEnd(condition, place, instead string) string {
	return `write {"type": "fail", "message": "done", "condition": ` + sdk.String(condition).String() + `} as the ` + place +
		` of its steps, and "onItemError": "stop" in the loop, without "` + instead + `"`
}

// checkEach requires one of the forms of each that is an object.
func checkEach(fields sdk.Value) []sdk.Problem {
	each := fields.Get("each")
	if each.Kind() != sdk.KindObject {
		return nil
	}
	from, to := each.Get("from").Given(), each.Get("to").Given()
	forms := 0
	for _, given := range [...]bool{each.Get("linesOf").Given(), each.Get("expr").Given(), each.Get("files").Given(), from || to} {
		if given {
			forms++
		}
	}
	if forms != 1 || from != to {
		return []sdk.Problem{{Field: "each", Message: "want one of linesOf, expr, files, or from and to"}}
	}
	if !each.Get("linesOf").Given() {
		return nil
	}
	for _, name := range [...]string{"maxConcurrent", "onItemError"} {
		if fields.Get(name).Given() {
			return []sdk.Problem{{Field: name, Message: "cannot be used with linesOf, whose lines are read one after the other",
				Hint: `give the step that wrote them "parse": "lines" and loop over its variable`}}
		}
	}
	return nil
}
