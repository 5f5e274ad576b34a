package abitest

import (
	"encoding/json"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// failChecks use the step type kit_fail.
var failChecks = []check{
	{"A1.4", "an error with every code ends the step", func(j *judge) {
		for _, code := range abi.Codes() {
			t := j.fail(map[string]any{"code": string(code), "message": "no \"" + string(code) + "\" ü"})
			if e := abi.As(t.err); e == nil || e.Code != code || e.Message != "no \""+string(code)+"\" ü" {
				j.faultf("an error of code %s ends the step with %s", code, errorText(t.err))
			}
		}
	}},
	{"A5.1", "every key of an error object reaches the host", func(j *judge) {
		want := abi.Error{Code: abi.Unavailable, Message: "busy\nnow ✓", Field: "params.url", RetryAfterMs: 1500, Permanent: true, Hint: "try \"later\""}
		t := j.fail(must(`{"code":"unavailable","message":"busy\nnow ✓","field":"params.url","retryAfterMs":1500,"permanent":true,"hint":"try \"later\""}`))
		if e := abi.As(t.err); e == nil || *e != want {
			j.faultf("the step ended with %+v, want %+v", e, want)
		}
	}},
	{"A5.1", "an error object has only the keys that the step has set", func(j *judge) {
		want := abi.Error{Code: abi.NotFound, Message: "gone"}
		t := j.fail(must(`{"code":"not_found","message":"gone"}`))
		if e := abi.As(t.err); e == nil || *e != want {
			j.faultf("the step ended with %+v, want %+v", e, want)
		}
	}},
	{"A5.1", "a code of the step is kept, or becomes plugin", func(j *judge) {
		t := j.fail(must(`{"code":"made_up","message":"odd"}`))
		if e := abi.As(t.err); e == nil || e.Code != abi.Plugin && e.Code != "made_up" || e.Message != "odd" {
			j.faultf("the step ended with %s", errorText(t.err))
		}
	}},
	{"A1.5", "a panic fails the step, and the next one is executed", func(j *judge) {
		t := j.run(step{typ: "kit_fail", fields: map[string]any{"panic": "kit gave up"}}, denied)
		switch abi.CodeOf(t.err) {
		case abi.Trap, abi.Plugin:
		default:
			j.faultf("a panic ends the step with %s, want code trap or plugin", errorText(t.err))
		}
		if t.err != nil && strings.Contains(t.err.Error(), "\n") {
			j.faultf("the message of a panic has several lines: %q", t.err)
		}
		j.echo([]byte("1"), json.Number("1"))
	}},
}

// fail runs kit_fail with an error object.
func (j *judge) fail(object any) attemptResult {
	return j.run(step{typ: "kit_fail", fields: map[string]any{"error": object}}, denied)
}
