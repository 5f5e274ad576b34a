package wire

import (
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// MaxAnswer bounds what a provider may stream in one answer, text and
// arguments together, in bytes.
const MaxAnswer = 16 << 20

// MaxCalls bounds the tool calls of one answer, which is as many as providers
// accept tools, and its content blocks where the protocol has them.
const MaxCalls = 128

// A Request is one turn, ready to send. Names of tools are already such that
// every provider accepts them.
type Request struct {
	Model       string
	System      string
	Messages    []sentinels.Message
	Tools       []sentinels.ToolSpec
	Schema      json.RawMessage // ask the provider to hold the reply to it; nil for free text
	Temperature *float64
	MaxTokens   int64

	// Dialect says which optional parts of the protocol to leave out, because
	// the server refused them or is known to.
	Dialect Dialect
	// Alive, if not nil, is called for every event that arrives, text or not.
	Alive func()
}

// Dialect is how one server and model differ from the reference.
type Dialect struct {
	NoUsage          bool // does not know stream_options
	CompletionTokens bool // wants max_completion_tokens for max_tokens
	NoEncrypted      bool // of Responses: has no encrypted reasoning
	// Omit are members of messages of the model that the server sends and refuses.
	Omit []string
	// Reasoning is a member that messages of the model must have, also those of another one.
	Reasoning string
	// Call are members that tool calls must have, also those of another model.
	Call json.RawMessage
}

// An Answer is what the provider sent.
type Answer struct {
	Text      string
	Reasoning string          // what the model thought
	Said      json.RawMessage // the message as the provider wrote it, an object; nil if there is none to send back
	Plain     bool            // Said has nothing beside the text and the calls
	Calls     []Call
	Finish    string // as the server names it, see package providers
	Model     string // as the server names it, often with a date
	Usage     Usage
	Note      string // what was read differently than asked, "" for nothing
}

// A Call is a native tool call. Arguments is the text as it came: it may be
// empty or no JSON at all.
type Call struct {
	ID        string
	Name      string
	Arguments string
}

// Usage is what the server counted. Input is all input tokens, those of the
// cache included; CacheRead and CacheWrite say how many of them those were.
type Usage struct {
	Known      bool
	Input      int64
	Output     int64
	CacheRead  int64
	CacheWrite int64
}
