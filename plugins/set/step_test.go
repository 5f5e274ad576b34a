package set_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/plugins/set"
	"github.com/sentinel-runtime/sentinel/sdk"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

func TestSet(t *testing.T) {
	h := sdktest.New(t).OK("sentinel_eval", `{"value":3,"truthy":true}`).OK("sentinel_var", `{}`)
	out, fault := sdktest.Run(t, sdktest.Only(set.Step()), "set", `{"values":{"n":{"expr":"1+2"},"who":{"value":{"expr":"not code"}},"none":{"value":null}}}`, h)
	want := `{"n":3,"who":{"expr":"not code"},"none":null}`
	if fault != nil || out.String() != want {
		t.Errorf("%s %v, want %s", out, fault, want)
	}
	if diff := cmp.Diff([]string{`{"expression":"1+2","strict":true}`}, h.Requests("sentinel_eval")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{`{"set":{"n":3,"none":null,"who":{"expr":"not code"}}}`}, h.Requests("sentinel_var")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNothingIsSetAfterAnError: all values are computed before the first is set.
func TestNothingIsSetAfterAnError(t *testing.T) {
	h := sdktest.New(t).Fail("sentinel_eval", &sdk.Error{Code: sdk.CodeBadFields, Message: "the expression is NaN"})
	_, fault := sdktest.Run(t, sdktest.Only(set.Step()), "set", `{"values":{"a":{"value":1},"n":{"expr":"0/0"}}}`, h)
	if fault == nil || fault.Message != "values.n: the expression is NaN" || len(h.Requests("sentinel_var")) != 0 {
		t.Errorf("%v %q", fault, h.Requests("sentinel_var"))
	}
}

// TestAThrownErrorIsTheAuthors: an Error that an expression throws fails the step with its own
// text; an error of the expression is one of the variable.
func TestAThrownErrorIsTheAuthors(t *testing.T) {
	for message, want := range map[string]string{
		"no model answered":                "no model answered",
		"expression at 1:3: TypeError: no": "values.n: expression at 1:3: TypeError: no",
	} {
		h := sdktest.New(t).Fail("sentinel_eval", &sdk.Error{Code: sdk.CodePlugin, Message: message})
		if _, fault := sdktest.Run(t, sdktest.Only(set.Step()), "set", `{"values":{"n":{"expr":"f()"}}}`, h); fault == nil || fault.Message != want {
			t.Errorf("%q: %v", message, fault)
		}
	}
}
