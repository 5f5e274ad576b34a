package condition_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/plugins/condition"
	"github.com/sentinel-runtime/sentinel/sdk"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

func TestBranches(t *testing.T) {
	const yes, no = `{"value":5,"truthy":true}`, `{"value":null,"truthy":false}`
	for _, tt := range []struct {
		name, fields, eval, branch, want string
	}{
		{"then", `{"check":"$a","then":{"count":2},"else":{"count":1}}`, yes, "then", `{"branch":"then","value":true,"output":"done"}`},
		{"else", `{"check":"$a","then":{"count":2},"else":{"count":1}}`, no, "else", `{"branch":"else","value":false,"output":"done"}`},
		{"no then", `{"check":"$a","else":{"count":1}}`, yes, "", `{"branch":"none","value":true,"output":null}`},
		{"empty then", `{"check":"$a","then":{"count":0}}`, yes, "", `{"branch":"none","value":true,"output":null}`},
		{"no else", `{"check":"$a","then":{"count":1}}`, no, "", `{"branch":"none","value":false,"output":null}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := sdktest.New(t).OK("sentinel_eval", tt.eval)
			if tt.branch != "" {
				h.OK("sentinel_block", `{"blocks":[{"success":true,"output":"done"}]}`)
			}
			out, fault := sdktest.Run(t, sdktest.Only(condition.Step()), "condition", tt.fields, h)
			if fault != nil || out.String() != tt.want {
				t.Errorf("got %s %v, want %s", out, fault, tt.want)
			}
			var want []string
			if tt.branch != "" {
				want = []string{`{"blocks":[{"field":"` + tt.branch + `"}]}`}
			}
			if diff := cmp.Diff(want, h.Requests("sentinel_block")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestBadCheck checks that an expression that does not parse is an error and
// executes no branch.
func TestBadCheck(t *testing.T) {
	h := sdktest.New(t).Fail("sentinel_eval", sdk.Fail(sdk.CodeBadFields, "check: unexpected token"))
	_, fault := sdktest.Run(t, sdktest.Only(condition.Step()), "condition", `{"check":"1 ==","then":{"count":1},"else":{"count":1}}`, h)
	if fault == nil || fault.Code != sdk.CodeBadFields {
		t.Errorf("got %v", fault)
	}
}

func TestErrorInBranch(t *testing.T) {
	h := sdktest.New(t).OK("sentinel_eval", `{"value":1,"truthy":true}`).
		OK("sentinel_block", `{"blocks":[{"success":false,"error":{"code":"unavailable","message":"503","retryAfterMs":9}}]}`)
	_, fault := sdktest.Run(t, sdktest.Only(condition.Step()), "condition", `{"check":"1","then":{"count":1}}`, h)
	if diff := cmp.Diff(&sdk.Error{Code: sdk.CodeUnavailable, Message: "503", RetryAfterMs: 9}, fault); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
