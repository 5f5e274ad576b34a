package parallel_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/plugins/parallel"
	"github.com/sentinel-runtime/sentinel/sdk"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

const (
	good      = `{"success":true,"output":1}`
	bad       = `{"success":false,"output":null,"error":{"code":"unavailable","message":"503"}}`
	cancelled = `{"success":false,"output":null,"error":{"code":"cancelled","message":"a sibling failed"}}`
)

func TestBranches(t *testing.T) {
	for _, tt := range []struct{ name, fields, request, answer, want string }{
		{"all good", `{"branches":{"counts":[1,2]}}`,
			`{"blocks":[{"field":"branches.0"},{"field":"branches.1"}]}`,
			good + `,` + good, `{"success":true,"branches":[` + good + `,` + good + `]}`},
		{"one bad", `{"branches":{"counts":[1,2]},"concurrency":1}`,
			`{"blocks":[{"field":"branches.0"},{"field":"branches.1"}],"concurrency":1}`,
			bad + `,` + good, `{"success":false,"branches":[` + bad + `,` + good + `]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := sdktest.New(t).OK("sentinel_block", `{"blocks":[`+tt.answer+`]}`)
			out, fault := sdktest.Run(t, sdktest.Only(parallel.Step()), "parallel", tt.fields, h)
			if fault != nil || out.String() != tt.want {
				t.Errorf("got  %s %v\nwant %s", out, fault, tt.want)
			}
			if diff := cmp.Diff([]string{tt.request}, h.Requests("sentinel_block")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	out, fault := sdktest.Run(t, sdktest.Only(parallel.Step()), "parallel", `{"branches":{"counts":[]}}`, sdktest.New(t))
	if fault != nil || out.String() != `{"success":true,"branches":[]}` {
		t.Errorf("no branches: %s %v", out, fault)
	}
}

// TestFailFast checks that the error is that of the branch that failed, not of the
// branches that were cancelled.
func TestFailFast(t *testing.T) {
	h := sdktest.New(t).OK("sentinel_block", `{"blocks":[`+cancelled+`,`+bad+`,`+good+`]}`)
	_, fault := sdktest.Run(t, sdktest.Only(parallel.Step()), "parallel", `{"branches":{"counts":[1,1,1]},"failFast":true}`, h)
	if diff := cmp.Diff(&sdk.Error{Code: sdk.CodeUnavailable, Message: "branch 1: 503"}, fault); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := h.Calls()[0].Value().Get("failFast").String(); got != "true" {
		t.Errorf("failFast of the request: %s", got)
	}
}
