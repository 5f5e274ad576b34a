package sdktest

import (
	"testing"

	"github.com/sentinel-runtime/sentinel/sdk"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Run executes one step of a plugin with the given fields, a JSON object,
// and returns its output or its error. The fields are those that a guest gets: with
// references resolved and nested steps as counts.
func Run(t testing.TB, p sdk.Plugin, step, fields string, h *Host) (sdk.Value, *sdk.Error) {
	t.Helper()
	input := runInput(t, step, fields, h)
	first := len(h.calls)
	out, fault := p.Run(input, h.call)
	replay(t, p, input, h.calls[first:], out, fault)
	if fault != nil {
		return sdk.Value{}, fault
	}
	return parse(t, out).Get("output"), nil
}

// Only returns a plugin that provides one step type, for tests of that type.
func Only(step sdk.Step) sdk.Plugin {
	return sdk.Plugin{Name: "only", Version: "1", Steps: []sdk.Step{step}}
}

// Problems returns the problems of a step's fields from the plugin's validate export.
func Problems(t testing.TB, p sdk.Plugin, step, fields string) []string {
	t.Helper()
	input := sdk.Object(sdk.F("type", sdk.String(step)), sdk.F("fields", parse(t, fields)))
	out, fault := p.Check(input.String())
	if fault != nil {
		t.Fatalf("validate %s: %v", step, fault)
	}
	var list []string
	for _, problem := range parse(t, out).Get("problems").Items() {
		list = append(list, problem.Get("field").StringOr("")+": "+problem.Get("message").StringOr(""))
	}
	return list
}

func runInput(t testing.TB, step, fields string, h *Host) string {
	t.Helper()
	return sdk.Object(
		sdk.F("abi", sdk.Int(abi.Version)),
		sdk.F("step", sdk.Object(
			sdk.F("type", sdk.String(step)),
			sdk.F("address", sdk.String("0")),
			sdk.F("path", sdk.String("0")),
			sdk.F("fields", parse(t, fields)),
		)),
		sdk.F("run", sdk.Object(
			sdk.F("id", sdk.String("01890000-0000-7000-8000-000000000000")),
			sdk.F("sentinel", sdk.String("test")),
			sdk.F("iteration", sdk.Int(1)),
			sdk.F("workspace", sdk.String("/workspace")),
			sdk.F("key", sdk.String("key")),
		)),
		sdk.F("attempt", sdk.Int(h.attempt)),
		sdk.F("retry", h.retry),
		sdk.F("state", h.state),
	).String()
}

// replay executes the step again with the recorded answers, and fails the test if a call
// or the result differs.
func replay(t testing.TB, p sdk.Plugin, input string, calls []Call, out string, fault *sdk.Error) {
	t.Helper()
	next := 0
	out2, fault2 := p.Run(input, func(function, request string) string {
		if next >= len(calls) {
			t.Fatalf("replay: an additional call: %s %s", function, request)
		}
		c := calls[next]
		next++
		if v := parse(t, request); c.Function != function || c.Request.Canonical() != v.Canonical() {
			t.Fatalf("replay: call %d was %s %s and now is %s %s", next, c.Function, c.Request.Canonical(), function, v.Canonical())
		}
		return c.Answer
	})
	if next < len(calls) {
		t.Fatalf("replay: %d calls, want %d", next, len(calls))
	}
	if out != out2 || sdk.ErrorValue(fault).String() != sdk.ErrorValue(fault2).String() {
		t.Fatalf("replay: ended with %s %v, want %s %v", out2, fault2, out, fault)
	}
}
