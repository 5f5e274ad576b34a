package approve_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/plugins/approve"
	"github.com/sentinel-runtime/sentinel/sdk"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

func TestApproved(t *testing.T) {
	h := sdktest.New(t).OK("sentinel_wait", `{"timedOut":false,"decision":{"verdict":"approve","by":"ann","at":"2026-01-01T00:00:00Z","comment":"fine"}}`)
	out, fault := sdktest.Run(t, sdktest.Only(approve.Step()), "approve", `{"prompt":"Push?","approvers":["ann"]}`, h)
	if want := `{"approved":true,"by":"ann","at":"2026-01-01T00:00:00Z","comment":"fine"}`; fault != nil || out.String() != want {
		t.Errorf("got %s %v, want %s", out, fault, want)
	}
	if diff := cmp.Diff([]string{`{"decision":{"approvers":["ann"],"prompt":"Push?"}}`}, h.Requests("sentinel_wait")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFinding19NoComment checks that an approval without a comment has an empty one, so
// that $answer.comment never fails a run.
func TestFinding19NoComment(t *testing.T) {
	h := sdktest.New(t).OK("sentinel_wait", `{"timedOut":false,"decision":{"verdict":"approve","by":"ann","at":"2026-01-01T00:00:00Z"}}`)
	out, fault := sdktest.Run(t, sdktest.Only(approve.Step()), "approve", `{"prompt":"Push?"}`, h)
	if want := `{"approved":true,"by":"ann","at":"2026-01-01T00:00:00Z","comment":""}`; fault != nil || out.String() != want {
		t.Errorf("got %s %v, want %s", out, fault, want)
	}
}

// TestNotApproved checks that only the verdict "approve" succeeds: a rejection, a
// timeout and an unknown verdict are errors.
func TestNotApproved(t *testing.T) {
	for answer, want := range map[string]sdk.Error{
		`{"timedOut":false,"decision":{"verdict":"reject","by":"bob","at":"2026-01-01T00:00:00Z","comment":"not today"}}`: {
			Code: sdk.CodeDenied, Message: "approve: rejected by bob: not today", Permanent: true,
			Data: `{"approved":false,"by":"bob","at":"2026-01-01T00:00:00Z","comment":"not today"}`,
		},
		`{"timedOut":true,"reason":"the limit of 60 s ended at noon","deadline":"2026-01-01T12:00:00Z"}`: {
			Code: sdk.CodeTimeout, Message: "the limit of 60 s ended at noon without a decision", Data: `{"approved":false,"by":"","at":"2026-01-01T12:00:00Z","comment":""}`,
		},
		`{"timedOut":true}`: {Code: sdk.CodeTimeout, Message: "wait: time limit reached"},
		`{"timedOut":true,"decision":{"verdict":"approve","by":"x"}}`:   {Code: sdk.CodeTimeout, Message: "wait: time limit reached"},
		`{"timedOut":false,"decision":{"verdict":"Approved","by":"x"}}`: {Code: sdk.CodeDenied, Message: "approve: rejected by x", Permanent: true},
	} {
		_, fault := sdktest.Run(t, sdktest.Only(approve.Step()), "approve", `{"prompt":"Push?"}`, sdktest.New(t).OK("sentinel_wait", answer))
		if diff := cmp.Diff(&want, fault); diff != "" {
			t.Errorf("%s (-want +got):\n%s", answer, diff)
		}
	}
	h := sdktest.New(t).OK("sentinel_wait", `{"timedOut":true}`)
	_, _ = sdktest.Run(t, sdktest.Only(approve.Step()), "approve", `{"prompt":"Push?","timeoutMs":60000}`, h)
	if diff := cmp.Diff([]string{`{"decision":{"prompt":"Push?"},"timeoutMs":60000}`}, h.Requests("sentinel_wait")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, fault := sdktest.Run(t, sdktest.Only(approve.Step()), "approve", `{}`, sdktest.New(t)); fault == nil || fault.Field != "prompt" {
		t.Errorf("no prompt: %v", fault)
	}
}
