// Package http implements the step type that makes an HTTP request, and fails if the status of the
// answer is not an expected one.
package http

import (
	"strconv"

	"github.com/sentinel-runtime/sentinel/sdk"
)

const fields = `{
  "type": "object",
  "properties": {
    "url": {"type": "string", "minLength": 1, "description": "URL with http or https. Data belongs into query, which is escaped.", "examples": ["https://api.example.com/users"]},
    "method": {"enum": ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"], "default": "GET", "description": "Method."},
    "query": {"type": "object", "description": "Added to the query of the URL; a list repeats its name, null leaves it out."},
    "headers": {"type": "object", "additionalProperties": ` + text + `, "description": "Headers by name. {\"secret\": NAME} is the value of a secret."},
    "json": {"description": "Body as JSON."},
    "form": {"type": "object", "description": "Body as a form; values as in query."},
    "body": {"type": "string", "description": "Body as it is."},
    "auth": {"type": "object", "description": "Header Authorization: {\"bearer\": TOKEN} or {\"basic\": {\"username\", \"password\"}}.", "properties": {"bearer": ` + text + `,
      "basic": {"type": "object", "properties": {"username": ` + text + `, "password": ` + text + `}, "required": ["username", "password"], "additionalProperties": false}},
      "minProperties": 1, "maxProperties": 1, "additionalProperties": false},
    "timeoutMs": {"type": "integer", "minimum": 1, "maximum": 1000000000000, "default": 30000, "description": "Time limit of the request with its body."},
    "redirects": {"type": "integer", "minimum": 0, "maximum": 50, "default": 5, "description": "Redirects that are followed; with 0 a redirect is the answer."},
    "expect": {"anyOf": [` + status + `, {"type": "array", "items": ` + status + `, "minItems": 1}], "default": "2xx", "description": "Statuses that are a success: 200, \"2xx\", \"200-204\" or a list."},
    "allowFailure": {"type": "boolean", "default": false, "description": "Return another status as a result with success false, instead of an error."},
    "idempotencyKey": {"anyOf": [{"type": "boolean"}, {"type": "string", "minLength": 1}], "description": "true: send the header Idempotency-Key, the same in all attempts and after a crash; or the name of the header."}
  },
  "required": ["url"],
  "additionalProperties": false
}`

const (
	text   = `{"anyOf": [{"type": "string"}, {"type": "object", "properties": {"secret": {"type": "string"}}, "required": ["secret"], "additionalProperties": false}]}`
	status = `{"anyOf": [{"type": "integer", "minimum": 100, "maximum": 599}, {"type": "string", "pattern": "^[1-5]([0-9][0-9](-[1-5][0-9][0-9])?|xx)$"}]}`
)

// Step returns the step type. A step without a type is of this type if it has url.
func Step() sdk.Step {
	return sdk.Step{
		Type:     "http",
		Summary:  "Makes an HTTP request; a status other than 2xx is an error.",
		Fields:   fields,
		Infer:    []string{"url"},
		Run:      run,
		Validate: check,
	}
}

// check reports a second body, and a body of a method without one.
func check(fields sdk.Value) []sdk.Problem {
	method := fields.Get("method").StringOr("GET")
	first := ""
	for _, name := range []string{"json", "form", "body"} {
		switch {
		case !given(fields, name):
		case method == "GET" || method == "HEAD":
			return []sdk.Problem{{Field: name, Message: "a " + method + " has no body", Hint: `write "method": "POST", or give the values in "query"`}}
		case first != "":
			return []sdk.Problem{{Field: name, Message: "want one of json, form and body"}}
		default:
			first = name
		}
	}
	return nil
}

// given reports whether a field is there; null is a body of JSON.
func given(fields sdk.Value, name string) bool {
	for field := range fields.Fields() {
		if field == name {
			return true
		}
	}
	return false
}

// run hands the fields to the host, which makes the request under its rules.
func run(c *sdk.Context) (sdk.Value, error) {
	if err := sdk.BadFields(check(c.Fields())); err != nil {
		return sdk.Value{}, err
	}
	allow, err := c.BoolField("allowFailure", false)
	if err != nil {
		return sdk.Value{}, err
	}
	var params []sdk.Field
	for name, value := range c.Fields().Fields() {
		if name != "allowFailure" {
			params = append(params, sdk.F(name, value))
		}
	}
	result, err := c.Command("http/request", sdk.Object(params...))
	if err != nil || allow || result.Get("success").BoolOr(true) {
		return result, err
	}
	code := sdk.Code("http_" + strconv.FormatInt(result.Get("status").IntOr(0), 10))
	e := sdk.Fail(code, result.Get("problem").StringOr("no answer"))
	e.RetryAfterMs = result.Get("retryAfterMs").IntOr(0)
	return sdk.Value{}, e
}
