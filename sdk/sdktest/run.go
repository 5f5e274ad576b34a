package sdktest

import (
	"context"
	"encoding/json"
	"os"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Run executes one step of a plugin natively with the given fields, a JSON object,
// and returns its output or its error. Fields may have nested steps as in a definition;
// references are not resolved. It then replays the step, see [Replay].
func Run(t T, p sdk.Plugin, step, fields string, h *Host) (sdk.Value, *sdk.Error) {
	t.Helper()
	in, target := h.input, Native(p)
	in.Step.Type, in.Step.Fields = step, json.RawMessage(fields)
	out, err := Execute(context.Background(), target, in, h.script)
	if err != nil {
		t.Fatalf("%v", err)
	}
	h.calls = append(h.calls, out.Calls...)
	h.logs = append(h.logs, out.Logs...)
	again, err := Replay(context.Background(), target, in, out)
	if err != nil {
		t.Fatalf("replay: %v", err)
	}
	if len(again.Problems) > 0 {
		t.Fatalf("%s", strings.Join(again.Problems, "\n"))
	}
	if out.Error != nil {
		return sdk.Value{}, out.Error
	}
	return parse(t, string(out.Output)), nil
}

// Cases executes the cases of a file such as [CasesFile] natively, with one subtest for
// each. X is *testing.T. A case that expects bad_fields is skipped if the step does not
// refuse the fields itself: then their schema must, which only the sandbox checks.
func Cases[X interface {
	T
	Run(name string, f func(X)) bool
	Skipf(format string, args ...any)
}](t X, p sdk.Plugin, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v", err)
	}
	cases, err := ReadCases(text)
	if err != nil {
		t.Fatalf("%v", err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t X) {
			problems := Try(context.Background(), Native(p), c).Problems
			if len(problems) > 0 && c.Error != nil && c.Error.Code == abi.BadFields && len(c.Calls) == 0 {
				t.Skipf("the step does not refuse the fields; `sentinel plugin test` checks whether their schema does")
			}
			for _, problem := range problems {
				t.Errorf("%s", problem)
			}
		})
	}
}

// Only returns a plugin that provides one step type, for tests of that type.
func Only(step sdk.Step) sdk.Plugin {
	return sdk.Plugin{Name: "only", Version: "1", Steps: []sdk.Step{step}}
}

// Problems returns the problems of a step's fields from the plugin's validate export.
func Problems(t T, p sdk.Plugin, step, fields string) []string {
	t.Helper()
	out, err := Native(p).Validate(context.Background(), step, json.RawMessage(fields))
	if err != nil {
		t.Fatalf("validate %s: %v", step, err)
	}
	var list []string
	for _, problem := range parse(t, string(out)).Items() {
		list = append(list, problem.Get("field").StringOr("")+": "+problem.Get("message").StringOr(""))
	}
	return list
}
