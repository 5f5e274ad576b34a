package role

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// A Turn is the fields of a model, clause A9.6.
type Turn struct {
	Model       string          `json:"model"` // behind the provider's name: "small" of "own/small"
	System      string          `json:"system,omitempty"`
	Messages    []Message       `json:"messages"`
	Tools       []Tool          `json:"tools,omitempty"`
	Temperature *float64        `json:"temperature,omitempty"`
	MaxTokens   int64           `json:"maxTokens,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"` // JSON Schema of the reply
}

// A Message is one message of a [Turn].
type Message struct {
	Role       string     `json:"role"` // user, assistant or tool
	Content    string     `json:"content"`
	ToolCalls  []ToolCall `json:"toolCalls,omitempty"`  // of an assistant
	ToolCallID string     `json:"toolCallId,omitempty"` // of the result of a tool
	Name       string     `json:"name,omitempty"`       // of the result of a tool: the tool
	IsError    bool       `json:"isError,omitempty"`
}

// A Tool is what the model may call. Its name has letters, digits, _ and - only.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"` // JSON Schema of the arguments
}

// A ToolCall is a call of a tool by the model. Arguments is an object, or a text with the
// JSON that the model wrote.
type ToolCall struct {
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// A Reply is the output of a model.
type Reply struct {
	Text      string     `json:"text"`
	ToolCalls []ToolCall `json:"toolCalls,omitempty"`
	Finish    string     `json:"finish"` // stop, tools or length
	Usage     *Usage     `json:"usage"`
}

// Usage is what a turn used, in tokens.
type Usage struct {
	InputTokens  int64 `json:"inputTokens"`
	OutputTokens int64 `json:"outputTokens"`
}

// The limits of a [Reply].
const (
	MaxToolCalls = 128
	maxTokens    = 1 << 40 // of a usage, far above every context
)

// ReadReply decodes the output of a model.
func ReadReply(output json.RawMessage) (Reply, error) {
	var r *Reply
	if err := json.Unmarshal(output, &r); err != nil {
		return Reply{}, fmt.Errorf("want an object with text, finish and usage: %w", err)
	}
	switch {
	case r == nil:
		return Reply{}, fmt.Errorf("want an object with text, finish and usage, not null")
	case r.Finish != "stop" && r.Finish != "tools" && r.Finish != "length":
		return Reply{}, fmt.Errorf("finish %.40q: want stop, tools or length", r.Finish)
	case (r.Finish == "tools") != (len(r.ToolCalls) > 0):
		return Reply{}, fmt.Errorf("finish is %s with %d tool calls", r.Finish, len(r.ToolCalls))
	case len(r.ToolCalls) > MaxToolCalls:
		return Reply{}, fmt.Errorf("%d tool calls, at most %d are read", len(r.ToolCalls), MaxToolCalls)
	case r.Usage == nil:
		return Reply{}, fmt.Errorf("usage is missing: want inputTokens and outputTokens")
	case r.Usage.InputTokens < 0 || r.Usage.OutputTokens < 0 || r.Usage.InputTokens > maxTokens || r.Usage.OutputTokens > maxTokens:
		return Reply{}, fmt.Errorf("usage of %d and %d tokens", r.Usage.InputTokens, r.Usage.OutputTokens)
	}
	for i, c := range r.ToolCalls {
		args := bytes.TrimSpace(c.Arguments)
		switch {
		case c.Name == "" || len(c.Name) > 256 || len(c.ID) > 256:
			return Reply{}, fmt.Errorf("toolCalls[%d]: want a name, and name and id of at most 256 bytes", i)
		case len(args) > 0 && args[0] != '{' && args[0] != '"':
			return Reply{}, fmt.Errorf("toolCalls[%d].arguments: want an object, or a text with one", i)
		}
	}
	return *r, nil
}
