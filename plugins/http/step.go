// Package http implements the step type that makes an HTTP request, and fails if the status of the
// answer is not an expected one.
package http

import (
	"strconv"

	"github.com/sentinel-runtime/sentinel/plugins/http/fields"
	"github.com/sentinel-runtime/sentinel/sdk"
)

const schema = `{
  "type": "object",
  "properties": {` + fields.Request + `,
    "allowFailure": {"type": "boolean", "default": false, "description": "Return another status as a result with success false, instead of an error."}
  },
  "required": ["url"],
  "additionalProperties": false
}`

// Step returns the step type. A step without a type is of this type if it has url.
func Step() sdk.Step {
	return sdk.Step{
		Type:     "http",
		Summary:  "Makes an HTTP request; a status other than 2xx is an error.",
		Fields:   schema,
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
