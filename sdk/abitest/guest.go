package abitest

import (
	"context"
	"slices"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/internal/jsondiff"
)

// Check loads a module and tests the clauses that apply to guests. The conformance guest
// of an SDK, as specified in GUEST.md, is tested against all of them; other modules
// against those that can be checked for every step type. Unless the load fails, a check
// that finds a fault does not end the others. With clauses ("A6.3"), only their checks
// are executed.
func Check(ctx context.Context, host Host, module []byte, clauses ...string) Report {
	guest, err := host.Load(ctx, module)
	if err != nil {
		return Report{{Clause: "A1", Name: "the module loads", Faults: []string{"it is refused: " + errorText(err)}}}
	}
	defer guest.Close()
	checks := slices.Clone(generalChecks)
	if isConformance(ctx, guest) {
		checks = slices.Concat(checks, manifestChecks, echoChecks, failChecks, callChecks(), blockChecks, pageChecks, validateChecks)
	}
	slices.SortStableFunc(checks, byClause)
	report := Report{{Clause: "A1", Name: "the module loads"}}
	for _, c := range checks {
		if len(clauses) > 0 && !slices.Contains(clauses, c.clause) {
			continue
		}
		if ctx.Err() != nil {
			report = append(report, Outcome{Clause: c.clause, Name: c.name, Skipped: "deadline exceeded"})
			continue
		}
		report = append(report, runCheck(ctx, host, module, guest, c))
	}
	return report
}

// TestGuest tests the conformance guest of an SDK, with one subtest for each check. T is
// *testing.T.
func TestGuest[T Test[T]](t T, host Host, module []byte) {
	t.Helper()
	guest, err := host.Load(t.Context(), module)
	if err != nil {
		t.Fatal("load the conformance guest: " + errorText(err))
	}
	conforming := isConformance(t.Context(), guest)
	if err := guest.Close(); err != nil {
		t.Error(err)
	}
	if !conforming {
		t.Fatal("the module is not a conformance guest: the name in its manifest is not \"conformance\"")
	}
	reportTo(t, Check(t.Context(), host, module))
}

// isConformance compares the name with the one in GUEST.md.
func isConformance(ctx context.Context, guest Guest) bool {
	text, err := guest.Describe(ctx)
	if err != nil {
		return false
	}
	v, err := jsondiff.Decode(text)
	if err != nil {
		return false
	}
	m, _ := v.(map[string]any)
	return m["name"] == "conformance"
}

// generalChecks apply to every plugin.
var generalChecks = []check{
	{"A1.1", "describe is deterministic", func(j *judge) {
		text, err := j.guest.Describe(j.ctx)
		if err != nil {
			j.fatalf("describe: %s", errorText(err))
		}
		other, err := j.host.Load(j.ctx, j.module)
		if err != nil {
			j.fatalf("load the module again: %s", errorText(err))
		}
		defer other.Close()
		again, err := other.Describe(j.ctx)
		if err != nil {
			j.fatalf("describe again: %s", errorText(err))
		}
		j.want("the second manifest", j.read("the manifest", text), j.read("the manifest", again), nil)
	}},
	{"A1.3", "validate accepts every step type", func(j *judge) {
		for _, typ := range j.types() {
			for _, fields := range []string{`{}`, `{"no_such_field":1}`} {
				answer, err := j.guest.Validate(j.ctx, []byte(`{"type":"`+typ+`","fields":`+fields+`}`))
				if err != nil {
					j.faultf("validate %s with %s: %s", typ, fields, errorText(err))
					continue
				}
				j.problems(answer)
			}
		}
	}},
	{"A5.1", "a step ends in an output or in an error object, also when every call is denied", func(j *judge) {
		for _, typ := range j.types() {
			t := j.run(step{typ: typ, fields: map[string]any{}}, denied)
			switch code := abi.CodeOf(t.err); code {
			case abi.Trap, abi.Memory, abi.Output, abi.Timeout, abi.Internal:
				j.faultf("step type %s without fields ends with %s", typ, errorText(t.err))
			}
		}
	}},
	{"A5.1", "a step type that the plugin does not have is an error object", func(j *judge) {
		t := j.run(step{typ: "kit_no_such_type", fields: map[string]any{}}, denied)
		switch code := abi.CodeOf(t.err); code {
		case "", abi.Trap, abi.Memory, abi.Output, abi.Timeout, abi.Internal:
			j.faultf("it ends with %s", errorText(t.err))
		}
	}},
}

// types returns the step types of the guest.
func (j *judge) types() []string {
	text, err := j.guest.Describe(j.ctx)
	if err != nil {
		j.fatalf("describe: %s", errorText(err))
	}
	var types []string
	m, _ := j.read("the manifest", text).(map[string]any)
	steps, _ := m["steps"].([]any)
	for _, s := range steps {
		s, _ := s.(map[string]any)
		if typ, ok := s["type"].(string); ok {
			types = append(types, typ)
		}
	}
	return types
}

// problems reads the answer of validate and checks its form.
func (j *judge) problems(answer []byte) []any {
	m, ok := j.read("the answer of validate", answer).(map[string]any)
	if !ok {
		j.fatalf("the answer of validate is not an object: %s", brief(string(answer), 200))
	}
	list, ok := m["problems"].([]any)
	if !ok && m["problems"] != nil {
		j.fatalf("problems is not a list: %s", brief(string(answer), 200))
	}
	for i, p := range list {
		p, _ := p.(map[string]any)
		if text, ok := p["message"].(string); !ok || text == "" {
			j.faultf("problem %d has no message: %s", i, brief(string(answer), 200))
		}
	}
	return list
}
