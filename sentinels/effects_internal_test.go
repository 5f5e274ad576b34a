package sentinels

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestFieldsHaveEffects: a field of a step, of safety or of the budget that has no effect
// beside the others is an error or a warning, and every field is looked at here.
func TestFieldsHaveEffects(t *testing.T) {
	fields := json.RawMessage(`{"type":"object","additionalProperties":false}`)
	types, err := NewTypeSet([]TypeSpec{{Type: "x", Plugin: builtIn, Fields: fields}})
	if err != nil {
		t.Fatal(err)
	}
	const count, continuous = `"loop":{"type":"count","max":3}`, `"loop":{"type":"continuous"},"timeoutMs":9`
	// with are members of the definition and the step beside which the field has an effect,
	// without those beside which it has none.
	type effect struct{ with, without []string }
	always := effect{with: []string{""}}
	effects := map[string]effect{
		"step.type": always, "step.id": always, "step.name": always, "step.comment": always, "step.condition": always, "step.outputTo": always,
		"step.parse":   {with: []string{`"outputTo":"v"`}, without: []string{"", `"id":"i"`}},
		"step.onError": always, "step.timeoutMs": {with: []string{"", `"onError":{"retry":{"maxRetries":2}}`}}, "step.onInterrupt": always,
		"safety.maxIterations":    {with: []string{count, continuous}, without: []string{"", `"loop":{"type":"once"}`, `"timeoutMs":5`}},
		"safety.timeoutMs":        {with: []string{"", count}},
		"safety.maxStepTimeoutMs": always, "safety.maxMemoryMb": always, "safety.maxSteps": always,
		"safety.onTimeout": {with: []string{`"timeoutMs":5`, `"budget":{"calls":1}`, `"maxIterations":2,` + count, continuous},
			without: []string{"", count, `"loop":{"type":"event","event":"a:b"},"maxIterations":2`}},
		"safety.finallyTimeoutMs": {with: []string{`"finally":[{"type":"x"}]`, `"onFailure":[{"type":"x"}]`}, without: []string{"", count}},
		"safety.onInterrupt":      always,
		"budget.tokens":           {with: []string{"", `"budget":{"calls":1,"costUsd":2}`}},
		"budget.costUsd":          {with: []string{"", `"budget":{"calls":1,"tokens":2}`}},
		"budget.calls":            {with: []string{"", `"budget":{"tokens":1,"costUsd":2}`}},
	}
	for _, o := range objects {
		if !slices.Contains([]string{"step", "safety", "budget"}, o.name) {
			continue
		}
		for _, r := range o.rows() {
			name := o.name + "." + r.name
			e, known := effects[name]
			if !known {
				t.Errorf("the effect of %s is not known", name)
				continue
			}
			delete(effects, name)
			for i, beside := range append(slices.Clone(e.with), e.without...) {
				text := effectText(t, o.name, r, beside)
				report := Inspect([]byte(text), DecodeOptions{Types: types})
				if report.Definition == nil || len(report.Problems) > 0 {
					t.Errorf("%s: %v", text, report.Problems)
					continue
				}
				got := Check(t.Context(), report.Definition, types)
				silent := !slices.ContainsFunc(got, func(p Problem) bool {
					return strings.HasSuffix(p.Path, "."+r.name) && strings.Contains(p.Message, "has no effect")
				})
				if silent != (i < len(e.with)) {
					t.Errorf("%s: %s: %v", text, name, got)
				}
			}
		}
	}
	for name := range effects {
		t.Errorf("there is no field %s", name)
	}
}

// effectText returns a definition with the example of a field. beside are members of its
// step for a field of steps, of the definition otherwise.
func effectText(t *testing.T, object string, r row, beside string) string {
	t.Helper()
	read := func(text string) map[string]any {
		var m map[string]any
		if err := json.Unmarshal([]byte("{"+text+"}"), &m); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return m
	}
	step, def := map[string]any{"type": "x"}, map[string]any{"name": "n"}
	own := read(fmt.Sprintf("%q:%s", r.name, r.example))
	if object == "step" {
		maps.Copy(step, read(beside))
		if r.name != "type" {
			maps.Copy(step, own)
		}
	} else {
		maps.Copy(def, read(beside))
		if in, ok := def[object].(map[string]any); ok {
			maps.Copy(in, own)
		} else {
			def[object] = own
		}
	}
	def["steps"] = []any{step}
	text, err := json.Marshal(def)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
