package wait_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/plugins/wait"
	"github.com/sentinel-runtime/sentinel/sdk"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

func TestWait(t *testing.T) {
	for _, tt := range []struct{ fields, request, answer, want string }{
		{`{"durationMs":1500}`, `{"durationMs":1500}`, `{"timedOut":false}`, `{"reason":"duration"}`},
		{`{"durationMs":"20"}`, `{"durationMs":20}`, `{"timedOut":false}`, `{"reason":"duration"}`},
		{`{"until":"2030-01-01T00:00:00Z"}`, `{"until":"2030-01-01T00:00:00Z"}`, `{"timedOut":false}`, `{"reason":"until"}`},
		{`{"event":"a:*"}`, `{"event":"a:*"}`, `{"timedOut":false,"event":{"type":"a:b"}}`, `{"reason":"event","event":{"type":"a:b"}}`},
		{`{"event":"sentinel:a:b","source":"user"}`, `{"event":"sentinel:a:b","source":"user"}`, `{"timedOut":false,"event":{"type":"sentinel:a:b"}}`, `{"reason":"event","event":{"type":"sentinel:a:b"}}`},
		{`{"run":"r1"}`, `{"run":"r1"}`, `{"timedOut":false,"result":{"status":"completed","iterations":1,"output":2,"variables":{"x":3}}}`,
			`{"success":true,"status":"completed","run":"r1","iterations":1,"output":2,"variables":{"x":3},"x":3,"reason":"run"}`},
	} {
		h := sdktest.New(t).OK("sentinel_wait", tt.answer)
		out, fault := sdktest.Run(t, sdktest.Only(wait.Step()), "wait", tt.fields, h)
		if fault != nil || out.String() != tt.want {
			t.Errorf("%s: got %s %v, want %s", tt.fields, out, fault, tt.want)
		}
		if diff := cmp.Diff([]string{tt.request}, h.Requests("sentinel_wait")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestTimeout(t *testing.T) {
	h := sdktest.New(t).OK("sentinel_wait", `{"timedOut":true}`)
	if _, fault := sdktest.Run(t, sdktest.Only(wait.Step()), "wait", `{"event":"a"}`, h); fault == nil || fault.Code != sdk.CodeTimeout {
		t.Errorf("%v", fault)
	}
}

// TestRunFails: a run that did not complete is the error of the step.
func TestRunFails(t *testing.T) {
	h := sdktest.New(t).OK("sentinel_wait", `{"timedOut":false,"result":{"status":"failed","error":{"code":"denied","message":"no"}}}`)
	_, fault := sdktest.Run(t, sdktest.Only(wait.Step()), "wait", `{"run":"r1"}`, h)
	if fault == nil || fault.Code != sdk.CodeDenied || fault.Message != "run r1: no" {
		t.Errorf("%v", fault)
	}
}

func TestRefuses(t *testing.T) {
	for _, fields := range []string{`{}`, `{"run":""}`, `{"run":"r","event":"a"}`, `{"durationMs":1,"event":"a"}`, `{"durationMs":1,"source":"user"}`, `{"durationMs":-1}`, `{"durationMs":"soon"}`} {
		if _, fault := sdktest.Run(t, sdktest.Only(wait.Step()), "wait", fields, sdktest.New(t)); fault == nil || fault.Code != sdk.CodeBadFields {
			t.Errorf("%s: %v", fields, fault)
		}
	}
	if got := sdktest.Problems(t, sdktest.Only(wait.Step()), "wait", `{"durationMs":"$ms"}`); got != nil {
		t.Errorf("a reference was refused: %q", got)
	}
}
