package sentinel_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/plugins/sentinel"
	"github.com/sentinel-runtime/sentinel/sdk"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

const started = `{"run":"r1","sentinel":"run-tests"}`

func TestAwaited(t *testing.T) {
	for _, tt := range []struct{ name, result, want string }{
		{"completed", `{"run":"r1","status":"completed","iterations":2,"output":{"success":true},"variables":{"tests":1}}`,
			`{"success":true,"status":"completed","run":"r1","iterations":2,"output":{"success":true},"variables":{"tests":1},"tests":1}`},
		{"a variable with the name of a field", `{"status":"completed","iterations":1,"variables":{"output":1,"x":[2]}}`,
			`{"success":true,"status":"completed","run":"r1","iterations":1,"output":null,"variables":{"output":1,"x":[2]},"x":[2]}`},
		{"completed with success false", `{"status":"completed","iterations":1,"output":{"success":false},"variables":{}}`,
			`{"success":false,"status":"completed","run":"r1","iterations":1,"output":{"success":false},"variables":{}}`},
		{"completed without output", `{"status":"completed","iterations":0,"variables":{}}`,
			`{"success":true,"status":"completed","run":"r1","iterations":0,"output":null,"variables":{}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := sdktest.New(t).OK("sentinel_spawn", started).OK("sentinel_wait", `{"timedOut":false,"result":`+tt.result+`}`)
			out, fault := sdktest.Run(t, sdktest.Only(sentinel.Step()), "sentinel", `{"definition":{"steps":[]},"inputs":{"q":"x"}}`, h)
			if fault != nil || out.String() != tt.want {
				t.Errorf("got  %s %v\nwant %s", out, fault, tt.want)
			}
			if diff := cmp.Diff([]string{`{"field":"definition","inputs":{"q":"x"}}`}, h.Requests("sentinel_spawn")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{`{"run":"r1"}`}, h.Requests("sentinel_wait")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNotCompleted(t *testing.T) {
	const op = `sentinel "run-tests" run r1: `
	for _, tt := range []struct {
		result string
		want   sdk.Error
	}{
		{`{"status":"failed","error":{"code":"unavailable","message":"503","hint":"later"}}`, sdk.Error{Code: sdk.CodeUnavailable, Message: op + "503", Hint: "later"}},
		{`{"status":"failed"}`, sdk.Error{Code: sdk.CodePlugin, Message: op + "failed"}},
		{`{"status":"stopped"}`, sdk.Error{Code: sdk.CodeCancelled, Message: op + "was stopped"}},
		{`{"status":"timed_out"}`, sdk.Error{Code: sdk.CodeTimeout, Message: op + "reached its limit timeoutMs"}},
		{`{"status":"timed_out","reason":"maxIterations"}`, sdk.Error{Code: sdk.CodeTimeout, Message: op + "reached its limit maxIterations"}},
		{`{"status":"quarantined"}`, sdk.Error{Code: sdk.CodeInterrupted, Message: op + "is quarantined: it crashed the process three times"}},
		{`{"status":"odd"}`, sdk.Error{Code: sdk.CodePlugin, Message: op + `ended as "odd"`}},
	} {
		h := sdktest.New(t).OK("sentinel_spawn", started).OK("sentinel_wait", `{"timedOut":false,"result":`+tt.result+`}`)
		_, fault := sdktest.Run(t, sdktest.Only(sentinel.Step()), "sentinel", `{"definition":{"$ref":"ci"}}`, h)
		if diff := cmp.Diff(&tt.want, fault); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.result, diff)
		}
	}
}

// TestNotAwaited checks that a step with await false makes no wait call.
func TestNotAwaited(t *testing.T) {
	h := sdktest.New(t).OK("sentinel_spawn", started)
	out, fault := sdktest.Run(t, sdktest.Only(sentinel.Step()), "sentinel", `{"definition":{"$ref":"ci"},"await":false}`, h)
	if fault != nil || out.String() != started {
		t.Errorf("%s %v", out, fault)
	}
}
