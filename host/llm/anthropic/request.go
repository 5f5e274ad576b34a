package anthropic

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/llm/wire"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// The body of a request. Fields that are empty are left to the server.
type (
	body struct {
		Model        string        `json:"model"`
		MaxTokens    int64         `json:"max_tokens"`
		System       []content     `json:"system,omitempty"`
		Messages     []message     `json:"messages"`
		Tools        []tool        `json:"tools,omitempty"`
		ToolChoice   *toolChoice   `json:"tool_choice,omitempty"`
		OutputConfig *outputConfig `json:"output_config,omitempty"`
		Temperature  *float64      `json:"temperature,omitempty"` // zero is a temperature
		Stream       bool          `json:"stream"`
	}
	message struct {
		Role    string `json:"role"`
		Content []any  `json:"content"` // content, or json.RawMessage
	}
	// A content is a block: text, tool_use or tool_result.
	content struct {
		Type      string    `json:"type"`
		Text      string    `json:"text,omitempty"`
		ID        string    `json:"id,omitempty"`
		Name      string    `json:"name,omitempty"`
		Input     any       `json:"input,omitempty"`
		ToolUseID string    `json:"tool_use_id,omitempty"`
		Content   []content `json:"content,omitempty"`
		IsError   *bool     `json:"is_error,omitempty"`
	}
	tool struct {
		Name        string         `json:"name"`
		Description string         `json:"description,omitempty"`
		InputSchema map[string]any `json:"input_schema"`
	}
	toolChoice struct {
		Type string `json:"type"`
	}
	outputConfig struct {
		Format outputFormat `json:"format"`
	}
	outputFormat struct {
		Type   string         `json:"type"`
		Schema map[string]any `json:"schema"`
	}
)

func textBlock(text string) content { return content{Type: "text", Text: text} }

// encode translates a request. The protocol wants user and assistant to take
// turns, no empty text, and the tools of every call that is part of the
// conversation.
func encode(r wire.Request) body {
	b := body{Model: r.Model, MaxTokens: r.MaxTokens, Messages: messages(r.Messages, r.Dialect), Temperature: r.Temperature, Stream: true}
	if r.System != "" {
		b.System = []content{textBlock(r.System)}
	}
	for _, t := range r.Tools {
		b.Tools = append(b.Tools, offer(t))
	}
	// Declared but not to be used.
	if len(r.Tools) == 0 {
		if past := pastTools(r.Messages); len(past) > 0 {
			b.Tools, b.ToolChoice = past, &toolChoice{"none"}
		}
	}
	if r.Schema != nil {
		var schema map[string]any
		if json.Unmarshal(r.Schema, &schema) == nil {
			b.OutputConfig = &outputConfig{outputFormat{"json_schema", schema}}
		}
	}
	return b
}

// messages joins neighbours of one role, and the results of tools with what the
// user said after them: results are the user's words here. A
// server may want a block of thinking before the calls of another model.
func messages(in []sentinels.Message, d wire.Dialect) []message {
	out := []message{}
	add := func(role string, blocks ...any) {
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Content = append(out[n-1].Content, blocks...)
			return
		}
		out = append(out, message{role, blocks})
	}
	for _, m := range in {
		switch m.Role {
		case "tool":
			result := content{Type: "tool_result", ToolUseID: callID(m.ToolCallID), IsError: &m.IsError}
			if m.Content != "" {
				result.Content = []content{textBlock(m.Content)}
			}
			add("user", result)
		case "assistant":
			if said := sayAgain(m, d.Omit); said != nil {
				add("assistant", said...)
				continue
			}
			var blocks []any
			// White space at the end of the assistant's text is refused.
			if text := strings.TrimRight(m.Content, " \t\r\n"); text != "" {
				blocks = append(blocks, textBlock(text))
			}
			if d.Reasoning != "" && len(m.ToolCalls) > 0 {
				blocks = append([]any{json.RawMessage(`{"type":"thinking","thinking":" ","signature":""}`)}, blocks...)
			}
			for _, call := range m.ToolCalls {
				blocks = append(blocks, content{Type: "tool_use", ID: callID(call.ID), Name: call.Name, Input: input(call.Arguments)})
			}
			if len(blocks) > 0 {
				add("assistant", blocks...)
			}
		default:
			if strings.TrimSpace(m.Content) != "" {
				add("user", textBlock(m.Content))
			}
		}
	}
	return out
}

// sayAgain returns the blocks of a message as the provider wrote them, with the calls that the
// conversation has: ids that were missing or given twice are ours, and arguments that were too
// large are left out. So are blocks of the types in omit. It is nil for a message of another model.
func sayAgain(m sentinels.Message, omit []string) (out []any) {
	if m.Said == nil {
		return nil
	}
	said, _ := wire.ReadObject([]byte(m.Said.Message))
	blocks, _ := wire.ReadList(said.Get("content"))
	n := 0
	for _, raw := range blocks {
		block, ok := wire.ReadObject(raw)
		switch kind, _ := wire.ReadText(block.Get("type")); {
		case !ok:
			return nil
		case slices.Contains(omit, strings.TrimPrefix(kind, "redacted_")):
			continue
		case kind == "text":
			if text, _ := wire.ReadText(block.Get("text")); strings.TrimSpace(text) == "" {
				continue // refused in a request
			}
		case kind == "tool_use":
			if n == len(m.ToolCalls) {
				return nil
			}
			call := m.ToolCalls[n]
			n++
			if id, _ := wire.ReadText(block.Get("id")); id != callID(call.ID) {
				block.Set("id", wire.Quote(callID(call.ID)))
				raw = block.JSON()
			}
			if call.Size > 0 {
				text, _ := wire.ReadText(call.Arguments)
				block.Set("input", inputOf(text))
				raw = block.JSON()
			}
		}
		out = append(out, raw)
	}
	if n != len(m.ToolCalls) {
		return nil
	}
	return out
}

// pastTools declares the tools of earlier calls when none are offered now; the
// protocol refuses a conversation that uses undeclared ones.
func pastTools(in []sentinels.Message) []tool {
	var out []tool
	seen := map[string]bool{}
	for _, m := range in {
		for _, call := range m.ToolCalls {
			if !seen[call.Name] {
				seen[call.Name] = true
				out = append(out, offer(sentinels.ToolSpec{Name: call.Name}))
			}
		}
	}
	return out
}

// offer declares a tool. Its schema is always that of an object with properties.
func offer(spec sentinels.ToolSpec) tool {
	var schema map[string]any
	if json.Unmarshal(spec.Schema, &schema) != nil || schema == nil {
		schema = map[string]any{}
	}
	schema["type"] = "object"
	if schema["properties"] == nil {
		schema["properties"] = map[string]any{}
	}
	return tool{spec.Name, spec.Description, schema}
}

// input is a call's arguments as the object the protocol wants. A text that
// was no object is kept under a name of its own.
func input(raw json.RawMessage) any {
	var fields map[string]any
	if json.Unmarshal(raw, &fields) == nil && fields != nil {
		return raw
	}
	if len(raw) == 0 {
		return map[string]any{}
	}
	return map[string]any{"arguments": raw}
}

var notID = lazyregexp.New(`[^a-zA-Z0-9_-]`)

// callID makes an id of another provider acceptable. Both sides of a call go
// through it, so they still agree.
func callID(id string) string { return notID.ReplaceAllString(id, "_") }
