package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/llm"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

const schema = `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}`

// TestRefusedPartsAreLeftOut has servers refuse one part each, in their own
// words; the same turn is asked again without it, and never with it again.
func TestRefusedPartsAreLeftOut(t *testing.T) {
	temperature := 0.1
	full := withTools(ask("x"), "code/read")
	full.Temperature = &temperature
	data := ask("x")
	data.Schema = json.RawMessage(schema)
	refusal := func(message string) string {
		raw, _ := json.Marshal(map[string]any{"error": map[string]any{"message": message, "type": "invalid_request_error"}})
		return string(raw)
	}
	tests := []struct {
		name, message string
		turn          sentinels.Turn
		gone, instead string
	}{
		{"usage", "Unknown parameter: 'stream_options'.", full, "stream_options", ""},
		{"limit", "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", full, "max_tokens", "max_completion_tokens"},
		{"temperature", "Unsupported value: 'temperature' does not support 0.1 with this model.", full, "temperature", ""},
		{"tools", "registry.ollama.ai/library/gemma:2b does not support tools", full, "tools", ""},
		{"schema", "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.", data, "response_format", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(t, status(400, refusal(tt.message)), chat(`{"a":1}`))
			var notes []string
			m := openAI(t, f, func(c *llm.Config) { c.Observe = func(_ context.Context, r llm.Report) { notes = r.Notes } })
			for range 2 {
				if _, err := m.Turn(t.Context(), tt.turn, nil); err != nil {
					t.Fatal(err)
				}
			}
			seen := f.seen()
			if len(seen) != 3 {
				t.Fatalf("%d requests, want a refused one and two good ones", len(seen))
			}
			if seen[0].body[tt.gone] == nil {
				t.Errorf("the first request had no %s", tt.gone)
			}
			for _, r := range seen[1:] {
				if r.body[tt.gone] != nil {
					t.Errorf("%s was sent again", tt.gone)
				}
				if tt.instead != "" && r.body[tt.instead] == nil {
					t.Errorf("%s was not sent", tt.instead)
				}
			}
			if tt.name == "temperature" && len(notes) == 0 {
				t.Error("the report of the second turn does not say that temperature was left out")
			}
		})
	}
}

func TestARefusalOfSomethingElseIsNotRepeated(t *testing.T) {
	f := newFake(t, status(400, `{"error":{"message":"temperature is fine, the messages are not; tools too"}}`))
	if _, err := openAI(t, f).Turn(t.Context(), ask("x"), nil); err == nil {
		t.Error("no error")
	}
	if n := len(f.seen()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

func TestStructuredOutput(t *testing.T) {
	validate := func(_, value json.RawMessage) error {
		if !strings.Contains(string(value), `"a"`) {
			return errors.New("a is missing")
		}
		return nil
	}
	tests := []struct{ name, text, want, problem string }{
		{"plain", `{"a":1}`, `{"a":1}`, ""},
		{"fenced", "```json\n{\"a\":1}\n```", `{"a":1}`, ""},
		{"in prose", "Here:\n```json\n{\"a\":1}\n```\nDone.", `{"a":1}`, ""},
		{"invalid", `{"b":1}`, `{"b":1}`, "a is missing"},
		{"no JSON", `a is 1`, "", "the reply is not JSON"},
		{"duplicate key", `{"a":1,"a":2}`, "", `the reply is not JSON: line 1, column 8: a: duplicate key "a", first at line 1, column 2`},
		{"lone surrogate", `{"a":"\ud800"}`, "", "the reply is not JSON: line 1, column 7: a: text that is not UTF-8"},
		{"two blocks", "```json\n{\"a\":1}\n```\n```json\n{\"a\":2}\n```", "", "not JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(t, chat(tt.text))
			m := openAI(t, f, func(c *llm.Config) { c.Validate = validate })
			turn := ask("x")
			turn.Schema = json.RawMessage(schema)
			reply, err := m.Turn(t.Context(), turn, nil)
			if string(reply.JSON) != tt.want {
				t.Errorf("JSON is %s", reply.JSON)
			}
			if err != nil {
				t.Fatal(err) // a misfit is a result: the turn is paid for
			}
			if got := strings.Join(reply.Problems, "; "); (got == "") != (tt.problem == "") || !strings.Contains(got, tt.problem) || reply.Usage.OutputTokens != 20 {
				t.Errorf("problems %q with usage %+v, want %q", got, reply.Usage, tt.problem)
			}
			want := map[string]any{"type": "json_schema", "json_schema": map[string]any{"name": "reply", "strict": true, "schema": decode(t, schema)}}
			if diff := cmp.Diff(want, f.seen()[0].body["response_format"]); diff != "" {
				t.Errorf("response_format (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSchemaWithToolsGoesIntoTheSystemText(t *testing.T) {
	f := newFake(t, chat(`{"a":1}`))
	turn := withTools(ask("x"), "code/read")
	turn.Schema = json.RawMessage(schema)
	reply, err := openAI(t, f).Turn(t.Context(), turn, nil)
	if err != nil || string(reply.JSON) != `{"a":1}` {
		t.Errorf("got %s, %v", reply.JSON, err)
	}
	body := f.seen()[0].body
	system := body["messages"].([]any)[0].(map[string]any)
	if body["response_format"] != nil || system["role"] != "system" || !strings.Contains(system["content"].(string), `"additionalProperties":false`) {
		t.Errorf("sent %v", body)
	}
}

func decode(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}
