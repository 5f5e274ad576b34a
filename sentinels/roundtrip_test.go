package sentinels_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A maker generates random valid definitions, in the form that Decode returns.
type maker struct {
	*rand.Rand
	steps int // ids so far
}

func pick[T any](m *maker, from ...T) T { return from[m.IntN(len(from))] }

func (m *maker) text() string {
	return pick(m, "a", "ä😀", "\"\\\n\t\u0001", "$x and $$", "<&>\u2028", "")
}

func (m *maker) raw(depth int) json.RawMessage {
	switch m.IntN(7 - min(depth, 2)*2) {
	case 0:
		return json.RawMessage(pick(m, "null", "true", "false"))
	case 1:
		return json.RawMessage(pick(m, "0", "-1.50", "1e3", strconv.Itoa(m.IntN(1000))))
	case 2:
		return canonical(m.text())
	case 3, 4:
		list := make([]json.RawMessage, m.IntN(3))
		for i := range list {
			list[i] = m.raw(depth + 1)
		}
		return canonical(list)
	}
	object := make(map[string]json.RawMessage)
	for range m.IntN(3) {
		object[m.text()] = m.raw(depth + 1)
	}
	return canonical(object)
}

func canonical(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	if raw, err = sentinels.Canonical(raw); err != nil {
		panic(err)
	}
	return raw
}

func (m *maker) stepList(depth int) []sentinels.Step {
	steps := make([]sentinels.Step, m.IntN(4))
	for i := range steps {
		steps[i] = m.step(depth)
	}
	return steps
}

func (m *maker) step(depth int) sentinels.Step {
	s := sentinels.Step{
		Name: m.text(), Condition: pick(m, "", "$a === 1"), TimeoutMs: int64(m.IntN(3)),
		OnInterrupt: pick(m, "", sentinels.InterruptAsk, sentinels.InterruptRetry),
		OnError: pick(m, sentinels.OnError{}, sentinels.OnError{Action: "skip"}, sentinels.OnError{Action: "retry"},
			sentinels.OnError{Action: "retry", Retry: sentinels.RetryPolicy{MaxRetries: 2, BackoffType: "none", MaxDelayMs: 4}}),
	}
	m.steps++
	if m.IntN(2) == 0 {
		s.ID = fmt.Sprintf("s%d", m.steps)
	}
	if m.IntN(2) == 0 {
		s.OutputTo = fmt.Sprintf("v%d", m.steps)
	}
	fields := make(map[string]json.RawMessage)
	switch kind := m.IntN(6); {
	case kind == 0 && depth < 3:
		s.Type, fields["check"] = "condition", canonical("$x")
		s.Blocks = map[string][]sentinels.Step{"then": m.stepList(depth + 1)}
	case kind == 1 && depth < 3:
		s.Type, s.Blocks = "parallel", make(map[string][]sentinels.Step)
		for i := range 1 + m.IntN(3) {
			s.Blocks["branches."+strconv.Itoa(i)] = m.stepList(depth + 1)
		}
	case kind == 2 && depth < 3:
		s.Type, fields["count"] = "loop", canonical("$n")
		s.Blocks = map[string][]sentinels.Step{"steps": m.stepList(depth + 1)}
	case kind == 3 && depth < 3:
		inner := m.definition(depth + 1)
		own, err := inner.MarshalJSON() // json.Marshal would escape for HTML
		if err != nil {
			panic(err)
		}
		s.Type, fields["definition"] = "sentinel", own
	case kind == 4:
		s.Type, fields["event"], fields["data"] = "emit", canonical("a:b"), m.raw(0)
	default:
		s.Type, fields["command"] = "command", canonical("x/y")
		fields["params"] = canonical(map[string]json.RawMessage{m.text(): m.raw(0), "k": m.raw(0)})
	}
	if len(fields) > 0 {
		s.Fields = fields
	}
	return s
}

func (m *maker) definition(depth int) *sentinels.Definition {
	d := &sentinels.Definition{
		ID: "d-" + sentinels.ID(strconv.Itoa(m.IntN(9))), Name: "n" + m.text(), Description: m.text(), Version: m.IntN(3),
		Steps: m.stepList(depth), Workspace: m.text(), IsPublic: m.IntN(2) == 0, CreatedBy: m.text(),
		Loop: pick(m, sentinels.Loop{Type: "once"}, sentinels.Loop{Type: "count", Max: json.RawMessage("3")}, sentinels.Loop{Type: "while", Check: "$a"},
			sentinels.Loop{Type: "continuous", IntervalMs: 5}, sentinels.Loop{Type: "event", Event: "a:**"}),
		Safety:      sentinels.Safety{MaxIterations: 1 + m.IntN(9), TimeoutMs: int64(m.IntN(2)), OnTimeout: pick(m, "", sentinels.TimeoutPause)},
		Tags:        pick(m, nil, []string{"a", "ä"}),
		Notify:      pick(m, nil, []string{}, []string{"failed", "recovered"}),
		Concurrency: pick(m, "", sentinels.OverlapQueue),
		Budget:      pick(m, sentinels.Budget{}, sentinels.Budget{Tokens: 5, CostUSD: 0.1, Calls: 2}),
		Triggers: pick(m, nil, []sentinels.Trigger{{Type: "manual"}},
			[]sentinels.Trigger{{Type: "event", Event: "a", Options: json.RawMessage(`{"debounceMs":5}`)}, {Type: "schedule", CronExpression: "* * * * *"}}),
		Inputs: pick(m, nil, map[string]sentinels.Input{"a": {}, "b": {Type: "string", Default: json.RawMessage(`"x"`), Required: true}}),
		Extra:  pick(m, nil, map[string]json.RawMessage{"layout": m.raw(0)}),
	}
	return d
}

// TestRoundTrip checks that Decode(Encode(d)) is d for random definitions.
func TestRoundTrip(t *testing.T) {
	opt := options(t)
	for seed := range uint64(100) {
		m := &maker{Rand: rand.New(rand.NewPCG(seed, 1))}
		d := m.definition(0)
		text := sentinels.Encode(d)
		got, problems := sentinels.Decode(text, opt)
		if len(problems) > 0 {
			t.Fatalf("seed %d:\n%v\n%s", seed, problems, text)
		}
		if diff := cmp.Diff(d, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("seed %d (-before +after):\n%s\n%s", seed, diff, text)
		}
		if string(sentinels.Encode(got)) != string(text) {
			t.Fatalf("seed %d: two encodings differ", seed)
		}
	}
}

// TestOptionalInputIsKept: "required": false is stored, although it is the default: it says that
// the input may be empty.
func TestOptionalInputIsKept(t *testing.T) {
	d := decode(t, `{"name": "n", "inputs": {"a": {"required": false}, "b": "string"}, "steps": [{"type": "shell", "command": "echo $a $b"}]}`)
	again := decode(t, string(sentinels.Encode(d)))
	for name, optional := range map[string]bool{"a": true, "b": false} {
		if in := again.Inputs[name]; in.Optional != optional || in.Required {
			t.Errorf("input %q: %+v, want Optional %v", name, in, optional)
		}
	}
	found := sentinels.Check(t.Context(), again, types(t))
	if len(found) != 1 || found[0].Path != "inputs.b" {
		t.Errorf("%v, want a warning of inputs.b alone", found)
	}
}
