package llm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/llm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// typed answers 200 with a body of a content type.
func typed(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, body)
	}
}

// A server that does not know the parameter "stream" answers in one piece. That
// is read as the reply, and the report says so.
func TestWholeReply(t *testing.T) {
	const chatBody = ` {"id":"1","object":"chat.completion","model":"m-1","choices":[{"index":0,"message":{"role":"assistant","content":"Hello",
		"tool_calls":[{"id":"a","type":"function","function":{"name":"code_read","arguments":"{\"path\":\"1\"}"}},
		              {"id":"b","type":"function","function":{"name":"code_read","arguments":"{\"path\":\"2\"}"}}]},"finish_reason":"tool_calls"}],
		"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120}}`
	const message = `{"id":"m","type":"message","role":"assistant","model":"m-1","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"Hello"},
		{"type":"tool_use","id":"a","name":"code_read","input":{"path":"1"}},{"type":"tool_use","id":"b","name":"code_read","input":{"path":"2"}}],
		"stop_reason":"tool_use","usage":{"input_tokens":100,"output_tokens":20}}`
	for _, tt := range []struct{ kind, contentType, body string }{
		{"openai", "application/json", chatBody},
		{"openai", "application/json; charset=utf-8", chatBody},
		{"openai", "application/problem+json", "\n" + chatBody + "\n"},
		{"anthropic", "application/json", message},
	} {
		var report llm.Report
		m := open(t, llm.Config{
			Default: "p/m", Env: env(), Observe: func(_ context.Context, r llm.Report) { report = r },
			Providers: []llm.Provider{{Name: "p", Kind: tt.kind, BaseURL: newFake(t, typed(tt.contentType, tt.body)).URL + "/v1"}},
		})
		var deltas []string
		reply, err := m.Turn(t.Context(), withTools(ask("hi"), "code/read"), func(text string) { deltas = append(deltas, text) })
		if err != nil {
			t.Errorf("%s %s: %v", tt.kind, tt.contentType, err)
			continue
		}
		want := []sentinels.ToolCall{
			{ID: "a", Name: "code/read", Arguments: json.RawMessage(`{"path":"1"}`)},
			{ID: "b", Name: "code/read", Arguments: json.RawMessage(`{"path":"2"}`)},
		}
		if diff := cmp.Diff(want, reply.ToolCalls); diff != "" || reply.Text != "Hello" || reply.Finish != "tools" || reply.Usage.InputTokens != 100 || reply.Usage.OutputTokens != 20 {
			t.Errorf("%s: %+v\n%s", tt.kind, reply, diff)
		}
		if strings.Join(deltas, "|") != "Hello" || report.Served != "m-1" || !slices.ContainsFunc(report.Notes, func(n string) bool { return strings.Contains(n, "whole reply at once") }) {
			t.Errorf("%s: deltas %q, report %+v", tt.kind, deltas, report)
		}
	}
}

// Some servers label their stream as JSON; it is a stream all the same.
func TestStreamLabelledAsJSON(t *testing.T) {
	body := ""
	for _, event := range append(chatText("Hello", "stop"), chatUsage, "[DONE]") {
		body += "data: " + event + "\n\n"
	}
	reply, err := openAI(t, newFake(t, typed("application/json", body))).Turn(t.Context(), ask("hi"), nil)
	if err != nil || reply.Text != "Hello" {
		t.Errorf("%+v, %v", reply, err)
	}
}

// An answer of something else is refused for good: it would come again.
func TestAnswersThatAreNoReply(t *testing.T) {
	for name, tt := range map[string]struct {
		kind, contentType, body string
		code                    abi.Code
		permanent               bool
		says                    string
	}{
		"other JSON":             {"openai", "application/json", `{"status":"ok"}`, abi.Unavailable, true, "neither a stream nor a reply"},
		"no choice":              {"openai", "application/json", `{"choices":[]}`, abi.Unavailable, true, "neither a stream nor a reply"},
		"no message":             {"openai", "application/json", `{"choices":[{"text":"x","finish_reason":"stop"}]}`, abi.Unavailable, true, "neither a stream nor a reply"},
		"no finish":              {"openai", "application/json", `{"choices":[{"message":{"content":"x"}}]}`, abi.Unavailable, true, "neither a stream nor a reply"},
		"an error":               {"openai", "application/json", `{"error":{"type":"server_error","message":"exploded"}}`, abi.Unavailable, false, "exploded"},
		"an error text":          {"openai", "application/json", `{"error":"model not loaded"}`, abi.Unavailable, false, "model not loaded"},
		"a duplicate key":        {"openai", "application/json", `{"choices":[],"choices":[]}`, abi.Unavailable, false, `line 1, column 15: choices: duplicate key "choices"`},
		"cut off":                {"openai", "application/json", `{"choices":[`, abi.Unavailable, false, "the text ends before the value does"},
		"a page":                 {"openai", "text/html; charset=utf-8", "<html>Welcome</html>", abi.Unavailable, true, `"text/html; charset=utf-8"`},
		"anthropic: other JSON":  {"anthropic", "application/json", `{"status":"ok"}`, abi.Unavailable, true, "neither a stream nor a reply"},
		"anthropic: a page":      {"anthropic", "text/html", "<html>Welcome</html>", abi.Unavailable, true, `"text/html"`},
		"anthropic: an error":    {"anthropic", "application/json", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, abi.Unavailable, false, "Overloaded"},
		"anthropic: no such key": {"anthropic", "application/json", `{"type":"error","error":{"type":"authentication_error","message":"no"}}`, abi.Denied, true, "no"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, typed(tt.contentType, tt.body))
			m := open(t, llm.Config{Default: "p/m", Env: env(), Providers: []llm.Provider{{Name: "p", Kind: tt.kind, BaseURL: f.URL + "/v1"}}})
			_, err := m.Turn(t.Context(), ask("hi"), nil)
			e := asError(t, err)
			if e.Code != tt.code || e.Permanent != tt.permanent || !strings.Contains(e.Message, tt.says) {
				t.Errorf("got %+v", e)
			}
			if tt.permanent && tt.code == abi.Unavailable && !strings.Contains(e.Hint, f.URL) {
				t.Errorf("hint %q does not name the base URL", e.Hint)
			}
		})
	}
}

// However many calls a server names, and however sparse their indices are, the
// answer is bounded.
func TestManyToolCalls(t *testing.T) {
	piece := func(index int) string {
		return fmt.Sprintf(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"function":{"name":"code_read","arguments":"{}"}}]}}]}`, index)
	}
	end := []string{`{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`, "[DONE]"}
	var allowed, sparse, whole, blocks []string
	for i := range 128 {
		allowed = append(allowed, piece(i*1_000_003))
	}
	for i := range 100_000 {
		sparse = append(sparse, piece(i*7919))
	}
	for range 129 {
		whole = append(whole, `{"id":"x","type":"function","function":{"name":"code_read","arguments":"{}"}}`)
	}
	start := "message_start\n" + `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"claude","content":[],"usage":{"input_tokens":10,"output_tokens":1}}}`
	blocks = append(blocks, start)
	for i := range 100_000 {
		blocks = append(blocks, fmt.Sprintf("content_block_start\n"+`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":"t%d","name":"code_read","input":{}}}`, i*7919, i))
	}
	turn := withTools(ask("hi"), "code/read")
	reply, err := openAI(t, newFake(t, sse(append(allowed, end...)...))).Turn(t.Context(), turn, nil)
	if err != nil || len(reply.ToolCalls) != 128 {
		t.Errorf("128 calls: %d, %v", len(reply.ToolCalls), err)
	}
	for name, m := range map[string]*llm.Models{
		"sparse indices": openAI(t, newFake(t, sse(append(sparse, end...)...))),
		"whole reply": openAI(t, newFake(t, typed("application/json",
			`{"choices":[{"index":0,"message":{"tool_calls":[`+strings.Join(whole, ",")+`]},"finish_reason":"tool_calls"}]}`))),
		"anthropic": anthropicModels(t, newFake(t, sse(blocks...))),
	} {
		_, err := m.Turn(t.Context(), turn, nil)
		if e := asError(t, err); e.Code != abi.Limit || !e.Permanent || !strings.Contains(e.Message, "more than 128 tool calls") {
			t.Errorf("%s: %+v", name, e)
		}
	}
}
