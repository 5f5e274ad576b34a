package sdktest

import (
	"encoding/json"
	"fmt"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/role"
)

// A RoleTarget is a [Target] that knows the roles of its step types. The output of a case is
// then checked against the contract of the role, clause A9, whatever the case says.
type RoleTarget interface {
	Target
	// Role returns the role of a step type, "" for none.
	Role(step string) abi.Role
	// CheckOutput returns why an output does not match the schema of the step type's output.
	CheckOutput(step string, output json.RawMessage) error
}

// roleProblems returns what an outcome has that a host would not accept of a role.
func roleProblems(target Target, in Input, out Outcome) []string {
	t, ok := target.(RoleTarget)
	if !ok {
		return nil
	}
	as := t.Role(in.Step.Type)
	if as == "" {
		return nil
	}
	var problems []string
	if as.Pure() && len(out.Calls) > 0 {
		problems = append(problems, fmt.Sprintf("it called %s, and host calls of a role %s are denied (A9.8)", out.Calls[0].Function, as))
	}
	if out.Error != nil {
		return problems
	}
	fields, err := target.Fields(in.Step.Type, in.Step.Fields)
	if err == nil {
		err = role.CheckOutput(as, fields, out.Output)
	}
	if err == nil && as == abi.RoleCommand {
		if bad := t.CheckOutput(in.Step.Type, out.Output); bad != nil {
			err = fmt.Errorf("the output of a command must match the schema of the manifest (A9.2): %w", bad)
		}
	}
	if err != nil {
		problems = append(problems, err.Error())
	}
	return problems
}
