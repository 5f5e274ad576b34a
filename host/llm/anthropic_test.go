package llm_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

func claude(events ...string) []string {
	out := []string{"message_start\n" + `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"claude-sonnet-5-5","content":[],"usage":{"input_tokens":10,"cache_read_input_tokens":100,"cache_creation_input_tokens":1000,"output_tokens":1}}}`, "ping\n" + `{"type":"ping"}`}
	return append(out, events...)
}

func claudeEnd(reason string) []string {
	return []string{
		"message_delta\n" + `{"type":"message_delta","delta":{"stop_reason":"` + reason + `"},"usage":{"output_tokens":30}}`,
		"message_stop\n" + `{"type":"message_stop"}`,
	}
}

func TestMessagesToolUse(t *testing.T) {
	events := claude(
		"content_block_start\n"+`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		"content_block_delta\n"+`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`,
		"content_block_start\n"+`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`,
		"content_block_delta\n"+`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"I look."}}`,
		"content_block_start\n"+`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t1","name":"code_read","input":{}}}`,
		"content_block_delta\n"+`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"path\":"}}`,
		"content_block_delta\n"+`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\"x\"}"}}`,
		"content_block_stop\n"+`{"type":"content_block_stop","index":2}`,
	)
	f := newFake(t, sse(append(events, claudeEnd("tool_use")...)...))
	m := anthropicModels(t, f)
	turn := withTools(ask("read x"), "code/read")
	turn.System = "be brief"
	temperature := 0.2
	turn.Temperature = &temperature // refused by this model, so not sent
	turn.Messages = append(turn.Messages,
		sentinels.Message{Role: "assistant", Content: "first  \n", ToolCalls: []sentinels.ToolCall{
			{ID: "call.1", Name: "code/read", Arguments: json.RawMessage(`{"path":"a"}`)},
			{ID: "call.2", Name: "code/read", Arguments: json.RawMessage(`"cut"`)},
		}},
		sentinels.Message{Role: "tool", ToolCallID: "call.1", Name: "code/read", Content: "A"},
		sentinels.Message{Role: "tool", ToolCallID: "call.2", Name: "code/read", Content: "bad", IsError: true},
		sentinels.Message{Role: "user", Content: "go on"})
	var streamed string
	reply, err := m.Turn(t.Context(), turn, func(text string) { streamed += text })
	if err != nil {
		t.Fatal(err)
	}
	want := sentinels.Reply{
		Text: "I look.", Reasoning: "hm", Finish: "tools", Provider: "anthropic", Model: "claude-sonnet-5-5",
		ToolCalls:  []sentinels.ToolCall{{ID: "t1", Name: "code/read", Arguments: json.RawMessage(`{"path":"x"}`)}},
		Usage:      sentinels.Usage{InputTokens: 1110, OutputTokens: 30, Calls: 1, CostUSD: (10*2 + 100*0.1 + 1000*2.5 + 30*10) / 1e6},
		InputLimit: 1_000_000 - 16_384,
		Said: &sentinels.Said{Provider: "anthropic", Model: "claude-sonnet-5-5", Protocol: "anthropic", Message: `{"role":"assistant","content":[` +
			`{"type":"thinking","thinking":"hm","signature":""},{"type":"text","text":"I look."},` +
			`{"type":"tool_use","id":"t1","name":"code_read","input":{"path":"x"}}]}`},
	}
	if diff := cmp.Diff(want, reply); diff != "" {
		t.Errorf("reply (-want +got):\n%s", diff)
	}
	if streamed != "I look." {
		t.Errorf("streamed %q", streamed)
	}
	r := f.seen()[0]
	if r.path != "/v1/messages" || r.header.Get("X-Api-Key") != key || r.header.Get("Authorization") != "" {
		t.Errorf("asked %s with %q, %q", r.path, r.header.Get("X-Api-Key"), r.header.Get("Authorization"))
	}
	text := func(s string) any { return map[string]any{"type": "text", "text": s} }
	wantBody := map[string]any{
		"model": "claude-sonnet-5-5", "max_tokens": 16384.0, "stream": true,
		"system": []any{text("be brief")},
		"tools": []any{map[string]any{
			"name": "code_read", "description": "does code/read",
			"input_schema": map[string]any{"type": "object", "properties": map[string]any{"path": map[string]any{"type": "string"}}, "required": []any{"path"}},
		}},
		"messages": []any{
			map[string]any{"role": "user", "content": []any{text("read x")}},
			map[string]any{"role": "assistant", "content": []any{
				text("first"),
				map[string]any{"type": "tool_use", "id": "call_1", "name": "code_read", "input": map[string]any{"path": "a"}},
				map[string]any{"type": "tool_use", "id": "call_2", "name": "code_read", "input": map[string]any{"arguments": "cut"}},
			}},
			map[string]any{"role": "user", "content": []any{
				map[string]any{"type": "tool_result", "tool_use_id": "call_1", "is_error": false, "content": []any{text("A")}},
				map[string]any{"type": "tool_result", "tool_use_id": "call_2", "is_error": true, "content": []any{text("bad")}},
				text("go on"),
			}},
		},
	}
	if diff := cmp.Diff(wantBody, r.body); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

func TestMessagesDeclarePastToolsWhenNoneAreOffered(t *testing.T) {
	f := newFake(t, sse(append(claude(), claudeEnd("end_turn")...)...))
	turn := ask("x")
	turn.Messages = append(turn.Messages,
		sentinels.Message{Role: "assistant", ToolCalls: []sentinels.ToolCall{{ID: "1", Name: "code/read"}}},
		sentinels.Message{Role: "tool", ToolCallID: "1", Content: "A"})
	if _, err := anthropicModels(t, f).Turn(t.Context(), turn, nil); err != nil {
		t.Fatal(err)
	}
	body := f.seen()[0].body
	tools, _ := body["tools"].([]any)
	if len(tools) != 1 || tools[0].(map[string]any)["name"] != "code_read" {
		t.Errorf("tools are %v", body["tools"])
	}
	if diff := cmp.Diff(map[string]any{"type": "none"}, body["tool_choice"]); diff != "" {
		t.Errorf("tool choice (-want +got):\n%s", diff)
	}
}

func TestMessagesFinish(t *testing.T) {
	block := []string{
		"content_block_start\n" + `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"cut"}}`,
	}
	f := newFake(t, sse(append(claude(block...), claudeEnd("max_tokens")...)...), sse(append(claude(block...), claudeEnd("refusal")...)...))
	m := anthropicModels(t, f)
	reply, err := m.Turn(t.Context(), ask("x"), nil)
	if err != nil || reply.Finish != "length" || reply.Text != "cut" {
		t.Errorf("got %+v, %v", reply, err)
	}
	reply, err = m.Turn(t.Context(), ask("x"), nil)
	if e := asError(t, err); e.Code != "denied" || !e.Permanent || reply.Usage.OutputTokens != 30 || reply.Text != "" {
		t.Errorf("got %+v, %+v", reply, e)
	}
}
