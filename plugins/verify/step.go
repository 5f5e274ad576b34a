// Package verify implements the step type that checks the acceptance criteria of a
// ticket against a branch.
package verify

import "github.com/sentinel-runtime/sentinel/sdk"

const fields = `{
  "type": "object",
  "properties": {
    "ticketId": {"type": "string", "minLength": 1, "description": "Ticket whose acceptance criteria are checked."},
    "branchName": {"type": "string", "minLength": 1, "description": "Branch with the work. Default: the ticket's."},
    "token": {"type": "integer", "minimum": 1, "description": "Token of the claim."}
  },
  "required": ["ticketId"],
  "additionalProperties": false
}`

const output = `{
  "type": "object",
  "properties": {
    "verification_status": {"type": "string", "enum": ["passing", "failing", "blocked"]},
    "checks": {"type": "array", "items": {"type": "object"}},
    "summary": {"type": "object"},
    "feedback_for_agent": {"type": "array", "items": {"type": "string"}, "description": "One text for each failed check."},
    "escalated": {"type": "boolean", "description": "The ticket is blocked, since it failed too often."}
  },
  "required": ["verification_status", "checks", "summary"]
}`

// execute is the host command that verifies.
const execute = "verify/run"

// Step returns the step type. A fault of the infrastructure is an error that is retried;
// criteria that fail are a result.
func Step() sdk.Step {
	return sdk.Step{
		Type:    "verify",
		Summary: "Checks the acceptance criteria of a ticket; criteria that fail are a result, not an error.",
		Fields:  fields,
		Output:  output,
		Aliases: map[string]string{"ticket_id": "ticketId", "branch_name": "branchName"},
		Run:     run,
	}
}

func run(c *sdk.Context) (sdk.Value, error) {
	id, err := c.StringField("ticketId")
	if err != nil {
		return sdk.Value{}, err
	}
	if id == "" {
		return sdk.Value{}, sdk.BadField("ticketId", "must not be empty")
	}
	result, err := c.Command(execute, sdk.Object(
		sdk.F("ticket_id", sdk.String(id)),
		sdk.F("branch_name", c.Field("branchName")),
		sdk.F("token", c.Field("token")),
	))
	if err != nil {
		return sdk.Value{}, err
	}
	blocked := result.Get("blocked")
	delay := blocked.Get("delayMs").IntOr(0)
	if delay == 0 {
		return result, nil
	}
	return sdk.Value{}, sdk.RetryAfter(sdk.Fail(sdk.CodeUnavailable, "verify "+sdk.Quote(id)+": "+blocked.Get("message").StringOr("")), delay)
}
