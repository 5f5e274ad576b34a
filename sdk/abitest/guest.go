package abitest

import (
	"context"
	"slices"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Check loads a module and holds it to the clauses that a guest can keep or
// break. A module that is the conformance guest of an SDK, as GUEST.md describes
// it, is held to all of them; any other to what can be told without knowing what
// its steps are for. Unless the load fails, a check that finds a fault does not
// end the others. With clauses ("A6.3") only their checks are made.
func Check(ctx context.Context, host Host, module []byte, clauses ...string) Report {
	guest, err := host.Load(ctx, module)
	if err != nil {
		return Report{{Clause: "A1", Name: "the module loads", Faults: []string{"it is refused: " + said(err)}}}
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
			report = append(report, Outcome{Clause: c.clause, Name: c.name, Skipped: "the time is up"})
			continue
		}
		report = append(report, sit(ctx, host, module, guest, c))
	}
	return report
}

// TestGuest holds the conformance guest of an SDK to each clause, one subtest a
// check. T is *testing.T.
func TestGuest[T Test[T]](t T, host Host, module []byte) {
	t.Helper()
	guest, err := host.Load(t.Context(), module)
	if err != nil {
		t.Fatal("load the conformance guest: " + said(err))
	}
	conforming := isConformance(t.Context(), guest)
	if err := guest.Close(); err != nil {
		t.Error(err)
	}
	if !conforming {
		t.Fatal("the module is no conformance guest: its manifest's name is not \"conformance\"")
	}
	tell(t, Check(t.Context(), host, module))
}

// isConformance goes by the name that GUEST.md gives the guest.
func isConformance(ctx context.Context, guest Guest) bool {
	text, err := guest.Describe(ctx)
	if err != nil {
		return false
	}
	v, err := decode(text)
	if err != nil {
		return false
	}
	m, _ := v.(map[string]any)
	return m["name"] == "conformance"
}

// generalChecks hold for every plugin.
var generalChecks = []check{
	{"A1.1", "describe depends on nothing", func(j *judge) {
		text, err := j.guest.Describe(j.ctx)
		if err != nil {
			j.fatalf("describe: %s", said(err))
		}
		other, err := j.host.Load(j.ctx, j.module)
		if err != nil {
			j.fatalf("load the module again: %s", said(err))
		}
		defer other.Close()
		again, err := other.Describe(j.ctx)
		if err != nil {
			j.fatalf("describe again: %s", said(err))
		}
		j.want("the second manifest", j.read("the manifest", text), j.read("the manifest", again), nil)
	}},
	{"A1.3", "validate answers for every step type", func(j *judge) {
		for _, typ := range j.types() {
			for _, fields := range []string{`{}`, `{"no_such_field":1}`} {
				answer, err := j.guest.Validate(j.ctx, []byte(`{"type":"`+typ+`","fields":`+fields+`}`))
				if err != nil {
					j.faultf("validate %s with %s: %s", typ, fields, said(err))
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
				j.faultf("step type %s without fields ends with %s", typ, said(t.err))
			}
		}
	}},
	{"A5.1", "a step type that the plugin does not have is an error object", func(j *judge) {
		t := j.run(step{typ: "kit_no_such_type", fields: map[string]any{}}, denied)
		switch code := abi.CodeOf(t.err); code {
		case "", abi.Trap, abi.Memory, abi.Output, abi.Timeout, abi.Internal:
			j.faultf("it ends with %s", said(t.err))
		}
	}},
}

// types returns the step types of the guest at hand.
func (j *judge) types() []string {
	text, err := j.guest.Describe(j.ctx)
	if err != nil {
		j.fatalf("describe: %s", said(err))
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

// problems reads the answer of validate and checks its shape.
func (j *judge) problems(answer []byte) []any {
	m, ok := j.read("the answer of validate", answer).(map[string]any)
	if !ok {
		j.fatalf("the answer of validate is no object: %s", brief(string(answer), 200))
	}
	list, ok := m["problems"].([]any)
	if !ok && m["problems"] != nil {
		j.fatalf("problems is no list: %s", brief(string(answer), 200))
	}
	for i, p := range list {
		p, _ := p.(map[string]any)
		if text, ok := p["message"].(string); !ok || text == "" {
			j.faultf("problem %d has no message: %s", i, brief(string(answer), 200))
		}
	}
	return list
}
