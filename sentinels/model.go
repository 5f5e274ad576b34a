package sentinels

import "encoding/json"

// A Turn is one request to a language model: the whole conversation so far, the tools
// that are offered, and the form of the reply.
type Turn struct {
	Model       string          `json:"model,omitempty"` // "provider/name", "auto" or empty for the configured one
	System      string          `json:"system,omitempty"`
	Messages    []Message       `json:"messages"`
	Tools       []ToolSpec      `json:"tools,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"` // JSON Schema of the reply
	Temperature *float64        `json:"temperature,omitempty"`
	MaxTokens   int64           `json:"maxTokens,omitempty"` // 0 is the model's configured default
}

// A Message is one entry of a conversation.
type Message struct {
	Role       string     `json:"role"` // user, assistant, tool
	Content    string     `json:"content"`
	ToolCalls  []ToolCall `json:"toolCalls,omitempty"`  // of an assistant
	ToolCallID string     `json:"toolCallId,omitempty"` // of a tool's result
	Name       string     `json:"name,omitempty"`       // of a tool's result: the command
	IsError    bool       `json:"isError,omitempty"`
	Said       *Said      `json:"said,omitempty"` // of an assistant
}

// Said is a message of a model as its provider wrote it, with parts that no other field has:
// thinking, signatures, the order of blocks, what a provider adds. The same model gets it
// back unchanged, because several providers refuse a conversation without such parts. Another model
// does not, because signatures and encrypted parts are those of one.
type Said struct {
	Provider string `json:"provider"` // its name in the configuration
	Model    string `json:"model"`
	Protocol string `json:"protocol"` // openai, responses or anthropic
	Message  string `json:"message"`  // a JSON object, as a text, so that its members keep their order
}

// A ToolSpec offers one command to a model.
type ToolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"` // JSON Schema of the parameters
}

// A ToolCall is a model's request to run a command.
type ToolCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Size      int             `json:"size,omitempty"` // of arguments that were too large and are left out, in bytes; see sdk/ABI.md A6.4
}

// A Reply is a model's response to a Turn.
type Reply struct {
	Text      string          `json:"text"`
	Reasoning string          `json:"reasoning,omitempty"` // what it thought, which is never part of Text
	JSON      json.RawMessage `json:"json,omitempty"`      // the text read as JSON, see sdk/ABI.md A6.4
	Problems  []string        `json:"problems,omitempty"`  // violations of the turn's schema
	ToolCalls []ToolCall      `json:"toolCalls"`
	Finish    string          `json:"finish"` // stop, tools, length
	Usage     Usage           `json:"usage"`
	Provider  string          `json:"provider"`
	Model     string          `json:"model"`
	// InputLimit is how many tokens a turn of the model may have beside its reply, 0 if
	// that is not known.
	InputLimit int64 `json:"inputLimit,omitempty"`
	Said       *Said `json:"said,omitempty"`
}
