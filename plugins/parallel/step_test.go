package parallel_test

import (
	"fmt"
	"strings"
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
		{"one bad", `{"branches":{"counts":[1,2]},"maxConcurrent":1,"allowFailure":true}`,
			`{"blocks":[{"field":"branches.0"},{"field":"branches.1"}],"concurrency":1}`,
			bad + `,` + good, `{"success":false,"branches":[` + bad + `,` + good + `]}`},
		{"by name", `{"branches":{"counts":{"__proto__":1,"constructor":1}},"allowFailure":["constructor"]}`,
			`{"blocks":[{"field":"branches.__proto__"},{"field":"branches.constructor"}]}`,
			good + `,` + bad, `{"success":false,"branches":{"__proto__":` + good + `,"constructor":` + bad + `}}`},
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

// A failed branch fails the step with the list of what failed, unless it may fail.
func TestFailure(t *testing.T) {
	for _, tt := range []struct{ name, allow, answer, message string }{
		{"one", `false`, good + `,` + bad, "1 of 2 branches failed; branch 1: 503"},
		{"two", `false`, bad + `,` + bad, "2 of 2 branches failed; branch 0: 503; branch 1: 503"},
		{"another one may", `[0]`, bad + `,` + bad, "1 of 2 branches failed; branch 1: 503"},
		{"it may", `[1]`, good + `,` + bad, ""},
		{"all may", `true`, bad + `,` + bad, ""},
		{"no branch of that name", `["lint"]`, good + `,` + bad, `field "allowFailure" no branch "lint": the branches are 0 to 1`},
		{"no such branch", `[2]`, good + `,` + bad, `field "allowFailure" no branch 2: the branches are 0 to 1`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := sdktest.New(t)
			if !strings.HasPrefix(tt.name, "no ") {
				h.OK("sentinel_block", `{"blocks":[`+tt.answer+`]}`)
			}
			_, fault := sdktest.Run(t, sdktest.Only(parallel.Step()), "parallel", `{"branches":{"counts":[1,1]},"allowFailure":`+tt.allow+`}`, h)
			switch {
			case tt.message == "" && fault != nil, tt.message != "" && fault == nil:
				t.Errorf("got %v", fault)
			case fault != nil && fault.Message != tt.message && fault.Field == "":
				t.Errorf("got %q, want %q", fault.Message, tt.message)
			}
		})
	}
	many := make([]string, 40)
	for i := range many {
		many[i] = bad
	}
	h := sdktest.New(t).OK("sentinel_block", `{"blocks":[`+strings.Join(many, ",")+`]}`)
	counts := strings.Repeat("1,", 39) + "1"
	_, fault := sdktest.Run(t, sdktest.Only(parallel.Step()), "parallel", `{"branches":{"counts":[`+counts+`]}}`, h)
	if fault == nil || !strings.HasPrefix(fault.Message, "40 of 40 branches failed; branch 0: 503;") || !strings.HasSuffix(fault.Message, "branch 9: 503; and 30 more") {
		t.Errorf("got %v", fault)
	}
}

func TestProblems(t *testing.T) {
	for fields, want := range map[string]string{
		`{"branches":{"counts":[1]},"failFast":true,"allowFailure":true}`: "has no effect with failFast",
		`{"branches":{"counts":[1,1]},"allowFailure":[0,2]}`:              "no branch 2: the branches are 0 to 1",
		`{"branches":{"counts":{"lint":1}},"allowFailure":["test"]}`:      `no branch "test": the branches are lint`,
		`{"branches":{"counts":[]},"allowFailure":[0]}`:                   "no branch 0: the step has none",
		`{"branches":{"counts":[1,1]},"allowFailure":["$n",1]}`:           "",
	} {
		problems := sdktest.Problems(t, sdktest.Only(parallel.Step()), "parallel", fields)
		if want == "" && len(problems) > 0 || want != "" && (len(problems) != 1 || !strings.Contains(fmt.Sprint(problems[0]), want)) {
			t.Errorf("%s: %q, want %q", fields, problems, want)
		}
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
