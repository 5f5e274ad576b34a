package responses

import (
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/host/llm/openai"
	"github.com/sentinel-runtime/sentinel/host/llm/wire"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// The body of a request. Fields that are empty are left to the server.
type (
	body struct {
		Model           string   `json:"model"`
		Instructions    string   `json:"instructions,omitempty"`
		Input           []any    `json:"input"` // message, call, result, or json.RawMessage
		Tools           []tool   `json:"tools,omitempty"`
		Text            *text    `json:"text,omitempty"`
		Temperature     *float64 `json:"temperature,omitempty"` // zero is a temperature
		MaxOutputTokens int64    `json:"max_output_tokens,omitempty"`
		Stream          bool     `json:"stream"`
		Store           bool     `json:"store"` // false: nothing stays at the server
		Include         []string `json:"include,omitempty"`
	}
	message struct {
		Type    string `json:"type"`
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	call struct {
		Type      string `json:"type"`
		CallID    string `json:"call_id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	result struct {
		Type   string `json:"type"`
		CallID string `json:"call_id"`
		Output string `json:"output"`
	}
	tool struct {
		Type        string         `json:"type"`
		Name        string         `json:"name"`
		Description string         `json:"description,omitempty"`
		Parameters  map[string]any `json:"parameters"`
		Strict      bool           `json:"strict"` // the server's default is true, which refuses optional parameters
	}
	text struct {
		Format format `json:"format"`
	}
	format struct {
		Type   string          `json:"type"`
		Name   string          `json:"name"`
		Strict bool            `json:"strict"`
		Schema json.RawMessage `json:"schema"`
	}
)

// encryptedReasoning requests the reasoning in a form that can go back.
const encryptedReasoning = "reasoning.encrypted_content"

// encode translates a request.
func encode(r wire.Request) body {
	b := body{
		Model: r.Model, Instructions: r.System, Input: []any{}, Temperature: r.Temperature,
		MaxOutputTokens: max(r.MaxTokens, 0), Stream: true,
	}
	if !r.Dialect.NoEncrypted {
		b.Include = []string{encryptedReasoning}
	}
	for _, m := range r.Messages {
		b.Input = append(b.Input, items(m)...)
	}
	for _, t := range r.Tools {
		b.Tools = append(b.Tools, tool{"function", t.Name, t.Description, openai.ObjectSchema(t.Schema), false})
	}
	if r.Schema != nil {
		b.Text = &text{format{"json_schema", "reply", openai.StrictSchema(r.Schema), r.Schema}}
	}
	return b
}

// items translates one entry of a conversation.
func items(m sentinels.Message) []any {
	switch m.Role {
	case "tool":
		output := m.Content
		if m.IsError {
			output = "error: " + output // the protocol has no field for it
		}
		return []any{result{"function_call_output", m.ToolCallID, output}}
	case "assistant":
		if said := sayAgain(m); said != nil {
			return said
		}
		var out []any
		if m.Content != "" || len(m.ToolCalls) == 0 {
			out = append(out, message{"message", "assistant", m.Content})
		}
		for _, c := range m.ToolCalls {
			out = append(out, call{"function_call", c.ID, c.Name, openai.ArgumentsText(c.Arguments)})
		}
		return out
	}
	return []any{message{"message", "user", m.Content}}
}

// sayAgain returns the items of a message as the provider wrote them, with the calls that the
// conversation has: ids that were missing or given twice are ours, and arguments that were too
// large are left out. It is nil for a message of another model.
func sayAgain(m sentinels.Message) (out []any) {
	if m.Said == nil {
		return nil
	}
	said, _ := wire.ReadObject([]byte(m.Said.Message))
	list, _ := wire.ReadList(said.Get("output"))
	n := 0
	for _, raw := range list {
		item, ok := wire.ReadObject(raw)
		if !ok {
			return nil
		}
		switch kind, _ := wire.ReadText(item.Get("type")); kind {
		case "reasoning":
			// The server has no reasoning but what is in the request, and refuses the id of any other.
			encrypted, _ := wire.ReadText(item.Get("encrypted_content"))
			if shown, _ := wire.ReadList(item.Get("content")); encrypted == "" && len(shown) == 0 {
				continue
			}
		case "function_call":
			if n == len(m.ToolCalls) {
				return nil
			}
			c := m.ToolCalls[n]
			n++
			if id, _ := wire.ReadText(item.Get("call_id")); id != c.ID {
				item.Set("call_id", wire.Quote(c.ID))
				raw = item.JSON()
			}
			if c.Size > 0 {
				item.Set("arguments", wire.Quote(openai.ArgumentsText(c.Arguments)))
				raw = item.JSON()
			}
		}
		out = append(out, raw)
	}
	if n != len(m.ToolCalls) {
		return nil
	}
	return out
}
