package openai

import (
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/host/llm/wire"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// The body of a request. Fields that are empty are left to the server.
type (
	body struct {
		Model               string   `json:"model"`
		Messages            []any    `json:"messages"` // message, or wire.Object
		Tools               []tool   `json:"tools,omitempty"`
		ResponseFormat      *format  `json:"response_format,omitempty"`
		Temperature         *float64 `json:"temperature,omitempty"` // zero is a temperature
		MaxTokens           int64    `json:"max_tokens,omitempty"`
		MaxCompletionTokens int64    `json:"max_completion_tokens,omitempty"`
		Stream              bool     `json:"stream"`
		StreamOptions       *options `json:"stream_options,omitempty"`
	}
	message struct { // of the user or a tool
		Role       string  `json:"role"`
		Content    *string `json:"content"`
		ToolCallID string  `json:"tool_call_id,omitempty"`
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
	b := body{Model: r.Model, Messages: []any{}, Temperature: r.Temperature, Stream: true}
	if r.System != "" {
		b.Messages = append(b.Messages, message{Role: "system", Content: &r.System})
	}
	for _, m := range r.Messages {
		b.Messages = append(b.Messages, encodeMessage(m, r.Dialect))
	}
	for _, t := range r.Tools {
		b.Tools = append(b.Tools, tool{"function", offer{t.Name, t.Description, ObjectSchema(t.Schema)}})
	}
	if r.Schema != nil {
		b.ResponseFormat = &format{"json_schema", jsonSchema{"reply", StrictSchema(r.Schema), r.Schema}}
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
func encodeMessage(m sentinels.Message, d wire.Dialect) any {
	switch m.Role {
	case "tool":
		content := m.Content
		if m.IsError {
			content = "error: " + content // the protocol has no field for it
		}
		return message{Role: "tool", Content: &content, ToolCallID: m.ToolCallID}
	case "assistant":
		said := sayAgain(m)
		if said == nil {
			said = say(m, d.Call)
		}
		// Kimi refuses a text that is empty too.
		if d.Reasoning != "" && (said.Get(d.Reasoning) == nil || string(said.Get(d.Reasoning)) == "null") {
			said.Set(d.Reasoning, wire.Quote(" "))
		}
		return said.Without(d.Omit...)
	}
	return message{Role: "user", Content: &m.Content}
}

// say translates a message of another provider. more are members that the server wants of each
// call.
func say(m sentinels.Message, more json.RawMessage) wire.Object {
	content := json.RawMessage("null") // strict servers want the key
	if m.Content != "" || len(m.ToolCalls) == 0 {
		content = wire.Quote(m.Content)
	}
	out := wire.Object{{Name: "role", Value: wire.Quote("assistant")}, {Name: "content", Value: content}}
	members, _ := wire.ReadObject(more)
	var calls []json.RawMessage
	for _, call := range m.ToolCalls {
		calls = append(calls, append(encodeCall(call), members...).JSON())
	}
	if len(calls) > 0 {
		out.Set("tool_calls", wire.List(calls))
	}
	return out
}

func encodeCall(call sentinels.ToolCall) wire.Object {
	f := wire.Object{{Name: "name", Value: wire.Quote(call.Name)}, {Name: "arguments", Value: wire.Quote(ArgumentsText(call.Arguments))}}
	return wire.Object{
		{Name: "id", Value: wire.Quote(call.ID)}, {Name: "type", Value: wire.Quote("function")}, {Name: "function", Value: f.JSON()},
	}
}

// sayAgain returns a message as the provider wrote it, with the calls that the conversation
// has: an id that was missing or given twice is ours, and arguments that were too large are
// left out. It is nil for a message of another model.
func sayAgain(m sentinels.Message) wire.Object {
	if m.Said == nil {
		return nil
	}
	said, ok := wire.ReadObject([]byte(m.Said.Message))
	if !ok {
		return nil
	}
	calls, _ := wire.ReadList(said.Get("tool_calls"))
	if len(calls) != len(m.ToolCalls) {
		// Calls were read out of the text, or cut off.
		calls = nil
		for _, call := range m.ToolCalls {
			calls = append(calls, encodeCall(call).JSON())
		}
		said.Set("tool_calls", wire.List(calls))
		said.Set("content", wire.Quote(m.Content))
		if len(calls) == 0 {
			said = said.Without("tool_calls")
		} else if m.Content == "" {
			said.Set("content", json.RawMessage("null"))
		}
		return said
	}
	changed := false
	for i, call := range m.ToolCalls {
		o, ok := wire.ReadObject(calls[i])
		if !ok {
			return nil
		}
		if id, _ := wire.ReadText(o.Get("id")); id != call.ID {
			o.Set("id", wire.Quote(call.ID))
			changed = true
		}
		if call.Size > 0 {
			f, _ := wire.ReadObject(o.Get("function"))
			f.Set("arguments", wire.Quote(ArgumentsText(call.Arguments)))
			o.Set("function", f.JSON())
			changed = true
		}
		calls[i] = o.JSON()
	}
	if changed {
		said.Set("tool_calls", wire.List(calls))
	}
	if len(calls) > 0 && said.Get("content") == nil {
		said.Set("content", json.RawMessage("null"))
	}
	return said
}

// ArgumentsText returns arguments as the model sent them: a JSON string holds a
// text that was no JSON object.
func ArgumentsText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	if len(raw) == 0 {
		return "{}"
	}
	return string(raw)
}

// ObjectSchema returns a schema as an object. A tool without one takes nothing.
func ObjectSchema(schema json.RawMessage) map[string]any {
	var out map[string]any
	if json.Unmarshal(schema, &out) != nil || out == nil {
		return map[string]any{"type": "object", "properties": map[string]any{}}
	}
	return out
}

// StrictSchema reports whether a schema has the form for which the protocol promises
// to hold the model to it: every object closed and all its properties
// required. Other schemas are a hint to the model, and the host checks.
func StrictSchema(schema json.RawMessage) bool {
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
