package abitest

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A RoleHost is the adapter to a program that uses step types in pure roles. The module is
// allowed the roles that it asks for.
type RoleHost interface {
	// Evaluate executes a step type of a module in a pure role, clause A9.8. An output that
	// violates the contract is an *abi.Error, like every other fault of the guest.
	Evaluate(ctx context.Context, module []byte, as abi.Role, stepType string, fields json.RawMessage) (json.RawMessage, error)
}

// CheckRoles checks the clauses about pure roles that a host implements, with a guest of the
// kit.
func CheckRoles(ctx context.Context, host RoleHost) Report {
	checks := slices.Clone(roleChecks)
	var report Report
	for _, c := range checks {
		report = append(report, runCheck(ctx, nil, nil, nil, check{c.clause, c.name, func(j *judge) { c.run(j, host) }}))
	}
	return report
}

// TestRoles checks a host, with one subtest for each check. T is *testing.T.
func TestRoles[T Test[T]](t T, host RoleHost) {
	t.Helper()
	reportTo(t, CheckRoles(t.Context(), host))
}

type roleCheck struct {
	clause string
	name   string
	run    func(j *judge, host RoleHost)
}

// errorFields and lineFields let the guest do what a digit says.
func errorFields(digit string) json.RawMessage {
	return json.RawMessage(`{"message":"#` + digit + `","source":"step"}`)
}

func lineFields(digit string) json.RawMessage {
	return json.RawMessage(`{"lines":[{"text":"#` + digit + `","stream":"stdout"},{"text":"b","stream":"stderr"}]}`)
}

var roleChecks = []roleCheck{
	{"A9.3", "an error classifier answers a category, or null", func(j *judge, host RoleHost) {
		for digit, want := range map[string]string{"0": `null`, "1": `{"category":"api","subcategory":"rate","confidence":0.5}`} {
			output, err := host.Evaluate(j.ctx, module("guests/role"), abi.RoleErrorClassifier, "role_errors", errorFields(digit))
			if err != nil {
				j.faultf("with #%s: %s, want %s", digit, errorText(err), want)
				continue
			}
			j.want("output with #"+digit, must(want), j.read("output", output), nil)
		}
	}},
	{"A9.3", "an unknown category is the error output", func(j *judge, host RoleHost) { refusesOutput(j, host, "2", abi.Output) }},
	{"A9.4", "an output classifier answers an entry for each line", func(j *judge, host RoleHost) {
		output, err := host.Evaluate(j.ctx, module("guests/role"), abi.RoleOutputClassifier, "role_lines", lineFields("8"))
		if err != nil {
			j.fatalf("%s", errorText(err))
		}
		j.want("output", must(`{"lines":[null,{"classification":"error","action":"suppress"}]}`), j.read("output", output), nil)
		if _, err := host.Evaluate(j.ctx, module("guests/role"), abi.RoleOutputClassifier, "role_lines", lineFields("9")); abi.CodeOf(err) != abi.Output {
			j.faultf("one entry for two lines: %s, want the code output", errorText(err))
		}
	}},
	{"A9.8", "host calls are denied", func(j *judge, host RoleHost) {
		output, err := host.Evaluate(j.ctx, module("guests/role"), abi.RoleErrorClassifier, "role_errors", errorFields("3"))
		if err != nil {
			j.fatalf("%s", errorText(err))
		}
		j.want("what the guest says of the answer", must(`{"category":"api","subcategory":"denied"}`), j.read("output", output), nil)
	}},
	{"A9.8", "a call ends at its time limit", func(j *judge, host RoleHost) { refusesOutput(j, host, "4", abi.Timeout) }},
	{"A9.8", "an output of more than 256 KiB is the error output", func(j *judge, host RoleHost) { refusesOutput(j, host, "5", abi.Output) }},
	{"A9.8", "a trap is an error", func(j *judge, host RoleHost) { refusesOutput(j, host, "6", abi.Trap) }},
	{"A9.8", "equal fields have equal outputs, whatever the guest reads", func(j *judge, host RoleHost) {
		var first string
		for n := range 3 {
			output, err := host.Evaluate(j.ctx, module("guests/role"), abi.RoleErrorClassifier, "role_errors", errorFields("7"))
			if err != nil {
				j.fatalf("%s", errorText(err))
			}
			if n == 0 {
				first = string(output)
			} else if string(output) != first {
				j.faultf("%s after %s", output, first)
			}
		}
	}},
	{"A9.8", "a step type without the role is not found", func(j *judge, host RoleHost) {
		_, err := host.Evaluate(j.ctx, module("guests/role"), abi.RoleOutputClassifier, "role_errors", lineFields("8"))
		if e := abi.As(err); e == nil || e.Code != abi.NotFound || !strings.Contains(e.Message, "role_errors") {
			j.faultf("%s, want the code not_found and the name", errorText(err))
		}
	}},
}

// refusesOutput lets the guest do what a digit says and wants an error with a code.
func refusesOutput(j *judge, host RoleHost, digit string, want abi.Code) {
	output, err := host.Evaluate(j.ctx, module("guests/role"), abi.RoleErrorClassifier, "role_errors", errorFields(digit))
	if abi.CodeOf(err) != want {
		j.faultf("with #%s: %s, %s, want the code %s", digit, output, errorText(err), want)
	}
}
