// Command retry_until is a step plugin that defines a control structure: it runs
// its steps again, with growing pauses, until an expression holds.
package main

import "github.com/sentinel-runtime/sentinel/sdk"

const fields = `{
  "type": "object",
  "properties": {
    "steps": {"x-sentinel": "steps", "description": "The steps of one attempt."},
    "until": {"type": "string", "minLength": 1, "x-sentinel": "expression", "description": "JavaScript expression over $variables, looked at after each attempt: done when it is true. Without it the first attempt that ends without an error is enough."},
    "maxAttempts": {"type": "integer", "minimum": 1, "maximum": 100000, "default": 10, "description": "Most attempts. Reaching it is an error."},
    "delayMs": {"type": "integer", "minimum": 0, "default": 1000, "description": "Pause after the first attempt."},
    "factor": {"type": "number", "minimum": 1, "maximum": 100, "default": 2, "description": "How much longer each further pause is."},
    "maxDelayMs": {"type": "integer", "minimum": 0, "default": 60000, "description": "Longest pause."},
    "failFast": {"type": "boolean", "default": false, "description": "An error in the steps ends the step. Otherwise it is one failed attempt."},
    "attemptAs": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$", "default": "attempt", "x-sentinel": "variable", "description": "The variable that holds the number of the attempt, from 1."},
    "resultAs": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$", "default": "result", "x-sentinel": "variable", "description": "The variable that holds how the attempt ended, {success, output, error}: for until of this one, for the steps of the one before."}
  },
  "required": ["steps"],
  "additionalProperties": false
}`

var plugin = sdk.Plugin{
	Name:    "retry_until",
	Version: "1.0.0",
	Steps: []sdk.Step{{
		Type:    "retry_until",
		Summary: "Runs its steps again, with growing pauses, until an expression holds.",
		Fields:  fields,
		Run:     run,
	}},
	// It asks for nothing: nested steps are the run's own, and so are pauses.
	Stateless: true,
}

func init() { sdk.Main(plugin) }

func main() {} // never runs: a plugin is a library to its host
