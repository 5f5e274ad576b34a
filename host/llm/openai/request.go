package openai

import (
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/host/llm/wire"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// The body of a request. Fields that are empty are left to the server.
type (
	body struct {
		Model               string    `json:"model"`
		Messages            []message `json:"messages"`
		Tools               []tool    `json:"tools,omitempty"`
		ResponseFormat      *format   `json:"response_format,omitempty"`
		Temperature         *float64  `json:"temperature,omitempty"` // zero is a temperature
		MaxTokens           int64     `json:"max_tokens,omitempty"`
		MaxCompletionTokens int64     `json:"max_completion_tokens,omitempty"`
		Stream              bool      `json:"stream"`
		StreamOptions       *options  `json:"stream_options,omitempty"`
	}
	message struct {
		Role       string     `json:"role"`
		Content    *string    `json:"content,omitempty"`
		ToolCalls  []toolCall `json:"tool_calls,omitempty"`
		ToolCallID string     `json:"tool_call_id,omitempty"`
	}
	toolCall struct {
		ID       string   `json:"id"`
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	tool struct {
		Type     string `json:"type"`
		Function offer  `json:"function"`
	}
	offer struct {
		Name        string         `json:"name"`
		Description string         `json:"description"`
		Parameters  map[string]any `json:"parameters"`
	}
	format struct {
		Type       string     `json:"type"`
		JSONSchema jsonSchema `json:"json_schema"`
	}
	jsonSchema struct {
		Name   string          `json:"name"`
		Strict bool            `json:"strict"`
		Schema json.RawMessage `json:"schema"`
	}
	options struct {
		IncludeUsage bool `json:"include_usage"`
	}
)

// encode translates a request.
func encode(r wire.Request) body {
	b := body{Model: r.Model, Messages: []message{}, Temperature: r.Temperature, Stream: true}
	if r.System != "" {
		b.Messages = append(b.Messages, message{Role: "system", Content: &r.System})
	}
	for _, m := range r.Messages {
		b.Messages = append(b.Messages, encodeMessage(m))
	}
	for _, t := range r.Tools {
		b.Tools = append(b.Tools, tool{"function", offer{t.Name, t.Description, object(t.Schema)}})
	}
	if r.Schema != nil {
		b.ResponseFormat = &format{"json_schema", jsonSchema{"reply", strict(r.Schema), r.Schema}}
	}
	if r.Dialect.CompletionTokens {
		b.MaxCompletionTokens = max(r.MaxTokens, 0)
	} else {
		b.MaxTokens = max(r.MaxTokens, 0)
	}
	if !r.Dialect.NoUsage {
		b.StreamOptions = &options{IncludeUsage: true}
	}
	return b
}

// encodeMessage translates one entry of a conversation.
func encodeMessage(m sentinels.Message) message {
	switch m.Role {
	case "tool":
		content := m.Content
		if m.IsError {
			content = "error: " + content // the protocol has no field for it
		}
		return message{Role: "tool", Content: &content, ToolCallID: m.ToolCallID}
	case "assistant":
		out := message{Role: "assistant"}
		if m.Content != "" || len(m.ToolCalls) == 0 {
			out.Content = &m.Content
		}
		for _, call := range m.ToolCalls {
			out.ToolCalls = append(out.ToolCalls, toolCall{call.ID, "function", function{call.Name, arguments(call.Arguments)}})
		}
		return out
	}
	return message{Role: "user", Content: &m.Content}
}

// arguments writes arguments as the model sent them: a JSON string holds a
// text that was no JSON object.
func arguments(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	if len(raw) == 0 {
		return "{}"
	}
	return string(raw)
}

// object is a schema as an object. A tool without one takes nothing.
func object(schema json.RawMessage) map[string]any {
	var out map[string]any
	if json.Unmarshal(schema, &out) != nil || out == nil {
		return map[string]any{"type": "object", "properties": map[string]any{}}
	}
	return out
}

// strict reports whether a schema has the form for which the protocol promises
// to hold the model to it: every object closed and all its properties
// required. Other schemas are a hint to the model, and the host checks.
func strict(schema json.RawMessage) bool {
	var root map[string]any
	return json.Unmarshal(schema, &root) == nil && root["type"] == "object" && closed(root)
}

// closed walks the whole schema, its definitions too.
func closed(v any) bool {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if !closed(item) {
				return false
			}
		}
	case map[string]any:
		properties, isObject := v["properties"].(map[string]any)
		if v["type"] == "object" && !isObject {
			return false
		}
		if isObject {
			required, _ := v["required"].([]any)
			if v["additionalProperties"] != false || len(required) != len(properties) {
				return false
			}
		}
		for _, item := range v {
			if !closed(item) {
				return false
			}
		}
	}
	return true
}
