package llm_test

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/llm"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

func TestChatText(t *testing.T) {
	f := newFake(t, sse(append(append(chatText("Hel", "")[:1], chatText("lo", "stop")...), chatUsage, "[DONE]")...))
	var report llm.Report
	m := openAI(t, f, func(c *llm.Config) { c.Observe = func(_ context.Context, r llm.Report) { report = r } })
	temperature := 0.5
	turn := ask("hi")
	turn.System, turn.Temperature, turn.MaxTokens = "be brief", &temperature, 50
	var deltas []string
	reply, err := m.Turn(t.Context(), turn, func(text string) { deltas = append(deltas, text) })
	if err != nil {
		t.Fatal(err)
	}
	// 60 fresh tokens at 2.50, 40 cached at 1.25, 20 out at 10 a million.
	wantCost := (60*2.5 + 40*1.25 + 20*10) / 1e6
	want := sentinels.Reply{
		Text: "Hello", ToolCalls: []sentinels.ToolCall{}, Finish: "stop", Provider: "openai", Model: "gpt-4o",
		Usage:      sentinels.Usage{InputTokens: 100, OutputTokens: 20, Calls: 1, CostUSD: reply.Usage.CostUSD},
		InputLimit: 128_000 - 50,
	}
	if diff := cmp.Diff(want, reply); diff != "" {
		t.Errorf("reply (-want +got):\n%s", diff)
	}
	if math.Abs(reply.Usage.CostUSD-wantCost) > 1e-12 {
		t.Errorf("cost is %v, want %v", reply.Usage.CostUSD, wantCost)
	}
	if diff := cmp.Diff([]string{"Hel", "lo"}, deltas); diff != "" {
		t.Errorf("deltas (-want +got):\n%s", diff)
	}
	r := f.seen()[0]
	if r.path != "/v1/chat/completions" || r.header.Get("Authorization") != "Bearer "+key {
		t.Errorf("asked %s with %q", r.path, r.header.Get("Authorization"))
	}
	wantBody := map[string]any{
		"model": "gpt-4o", "stream": true, "temperature": 0.5, "max_tokens": 50.0,
		"stream_options": map[string]any{"include_usage": true},
		"messages": []any{
			map[string]any{"role": "system", "content": "be brief"},
			map[string]any{"role": "user", "content": "hi"},
		},
	}
	if diff := cmp.Diff(wantBody, r.body); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
	if report.Served != "gpt-4o-2024-08-06" || report.Estimated || report.Usage != reply.Usage {
		t.Errorf("report is %+v", report)
	}
}

func TestChatToolCalls(t *testing.T) {
	f := newFake(t, sse(
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"code_read","arguments":""}}]}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":"}}]}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"x\"}"}},{"index":1,"id":"b","function":{"name":"Code.Shell.Execute","arguments":"not json"}}]}}]}`,
		`{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`, "[DONE]"))
	m := openAI(t, f)
	turn := withTools(ask("read x"), "code/read", "code/shell/execute")
	turn.Messages = append(turn.Messages,
		sentinels.Message{Role: "assistant", ToolCalls: []sentinels.ToolCall{{ID: "z", Name: "gone/tool", Arguments: json.RawMessage(`{"q":1}`)}}},
		sentinels.Message{Role: "tool", ToolCallID: "z", Name: "gone/tool", Content: "no such tool", IsError: true})
	reply, err := m.Turn(t.Context(), turn, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []sentinels.ToolCall{
		{ID: "a", Name: "code/read", Arguments: json.RawMessage(`{"path":"x"}`)},
		{ID: "b", Name: "code/shell/execute", Arguments: json.RawMessage(`"not json"`)},
	}
	if diff := cmp.Diff(want, reply.ToolCalls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if reply.Finish != "tools" {
		t.Errorf("finish is %q", reply.Finish)
	}
	if reply.Usage.InputTokens == 0 || reply.Usage.OutputTokens == 0 {
		t.Errorf("no usage was estimated: %+v", reply.Usage)
	}
	body := f.seen()[0].body
	first := body["tools"].([]any)[0].(map[string]any)["function"].(map[string]any)
	if first["name"] != "code_read" {
		t.Errorf("the tool was offered as %v", first["name"])
	}
	messages := body["messages"].([]any)
	past := messages[1].(map[string]any)["tool_calls"].([]any)[0].(map[string]any)["function"].(map[string]any)
	if past["name"] != "gone_tool" || past["arguments"] != `{"q":1}` {
		t.Errorf("the past call was sent as %v", past)
	}
	if got := messages[2].(map[string]any)["content"]; got != "error: no such tool" {
		t.Errorf("the failed result was sent as %v", got)
	}
}

// Arguments that readers disagree about are handed on as text, for the command to
// refuse with the place; see host/command.
func TestArgumentsAreReadStrictly(t *testing.T) {
	for name, arguments := range map[string]string{
		"duplicate key":  `{"path":"a","path":"b"}`,
		"nested":         `{"path":{"x":1,"\u0078":2}}`,
		"lone surrogate": `{"path":"\ud800"}`,
		"number":         `{"path":1e999}`,
		"depth":          strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65),
	} {
		t.Run(name, func(t *testing.T) {
			quoted, err := json.Marshal(arguments)
			if err != nil {
				t.Fatal(err)
			}
			native := sse(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"code_read","arguments":`+string(quoted)+`}}]}}]}`,
				`{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`, "[DONE]")
			text := chat("<tool_call>{\"name\":\"code_read\",\"arguments\":" + arguments + "}</tool_call>")
			for form, answer := range map[string]http.HandlerFunc{"native": native, "text": text} {
				reply, err := openAI(t, newFake(t, answer)).Turn(t.Context(), withTools(ask("read"), "code/read"), nil)
				if err != nil || len(reply.ToolCalls) != 1 {
					t.Fatalf("%s: %d calls, %v", form, len(reply.ToolCalls), err)
				}
				if got := string(reply.ToolCalls[0].Arguments); got != string(quoted) {
					t.Errorf("%s: arguments %s, want the string %s", form, got, quoted)
				}
			}
		})
	}
}

func TestCallsWithOneIndexAreToldApartByID(t *testing.T) {
	f := newFake(t, sse(
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"code_read","arguments":"{\"path\":\"1\"}"}}]}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"code_read","arguments":"{\"path\":\"2\"}"}}]}}]}`,
		`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, "[DONE]"))
	reply, err := openAI(t, f).Turn(t.Context(), withTools(ask("x"), "code/read"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(reply.ToolCalls) != 2 || string(reply.ToolCalls[1].Arguments) != `{"path":"2"}` || reply.Finish != "tools" {
		t.Errorf("got %+v", reply)
	}
}

func TestTextCallsWithToolsOffered(t *testing.T) {
	text := "I look.\n<tool_call>{\"name\":\"code/read\",\"arguments\":{\"path\":\"x\"}}</tool_call>"
	m := openAI(t, newFake(t, chat(text)))
	reply, err := m.Turn(t.Context(), withTools(ask("x"), "code/read"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if reply.Text != "I look." || reply.Finish != "tools" || len(reply.ToolCalls) != 1 || reply.ToolCalls[0].ID == "" {
		t.Errorf("got %+v", reply)
	}
	if reply, err = m.Turn(t.Context(), ask("x"), nil); err != nil || reply.Text != text || len(reply.ToolCalls) != 0 {
		t.Errorf("without tools: %+v, %v", reply, err)
	}
}

func TestThoughtsAreNotPartOfTheReply(t *testing.T) {
	m := openAI(t, newFake(t, chat("<think>\nhm {\n</think>\n\n{\"a\":1}")))
	reply, err := m.Turn(t.Context(), ask("x"), nil)
	if err != nil || reply.Text != `{"a":1}` || string(reply.JSON) != `{"a":1}` {
		t.Errorf("got %+v, %v", reply, err)
	}
}

func TestTextModeDescribesToolsInTheSystemText(t *testing.T) {
	f := newFake(t, chat("done"))
	m := openAI(t, f, func(c *llm.Config) { c.Providers = []llm.Provider{{Name: "openai", Tools: llm.ToolsText}} })
	turn := withTools(ask("x"), "code/read")
	turn.Messages = append(turn.Messages,
		sentinels.Message{Role: "assistant", ToolCalls: []sentinels.ToolCall{{ID: "z", Name: "code/read", Arguments: json.RawMessage(`{}`)}}},
		sentinels.Message{Role: "tool", ToolCallID: "z", Name: "code/read", Content: "text"})
	if _, err := m.Turn(t.Context(), turn, nil); err != nil {
		t.Fatal(err)
	}
	body := f.seen()[0].body
	if body["tools"] != nil {
		t.Error("the tools were offered natively too")
	}
	raw, _ := json.Marshal(body["messages"])
	for _, want := range []string{"code/read: does code/read", "tool_call", "tool_result"} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("no %q in %s", want, raw)
		}
	}
	for _, m := range body["messages"].([]any) {
		if role := m.(map[string]any)["role"]; role == "tool" {
			t.Error("a message has the role tool")
		}
	}
}
