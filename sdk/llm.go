package sdk

import "github.com/sentinel-runtime/sentinel/sdk/abi"

// A Turn is one request to a language model. The host stores the conversation: the
// first turn has no Conversation, later ones append only the new messages.
type Turn struct {
	Conversation string // from the [Reply] before; empty starts one
	Append       []Message

	System  string // only in the first turn
	Context bool   // only in the first turn: the host adds $ragContext and the accumulated variables
	Sources bool   // only in the first turn: the host adds $ragContext alone

	Model       string // "provider/name", "auto", or empty for the configured one
	Temperature Value  // a number, or absent for the default of the model
	MaxTokens   int64  // 0 is the default of the model
	Tools       []string
	Schema      Value // JSON Schema of the reply, or absent

	Replace []Replacement // of messages that the conversation has, in their order
	Aside   bool          // answer without a change of the conversation
}

// A Replacement puts other messages in the place of those from From up to To, counted from 0,
// so that a conversation stays within the window of its model. The result of a tool stays
// behind the call that it belongs to.
type Replacement struct {
	From, To int
	With     []Message
}

// A Message is an entry that a turn adds to a conversation.
type Message struct {
	Role       string // user, assistant, tool
	Content    string
	ToolCallID string // of a tool's result
	Name       string // of a tool's result: the command
	IsError    bool   // of a tool's result
}

// A Reply is the response of the model.
type Reply struct {
	Conversation string
	Text         string // without the text of tool calls
	JSON         Value  // the text read as JSON, absent if it is not JSON
	Problems     []string
	ToolCalls    []ToolCall
	Finish       string // stop, tools, length
	MaxTokens    int64  // limit of the reply, if the run's budget lowered it; else 0
	Usage        Usage
	Provider     string
	Model        string
	InputLimit   int64 // tokens that a turn may have beside its reply; 0 if unknown
}

// A ToolCall is a model's request to run a command.
type ToolCall struct {
	ID        string
	Name      string
	Arguments Value
	Size      int64 // of arguments that were too large and are left out, in bytes; else 0
}

// Usage is the tokens and the cost of turns.
type Usage struct {
	InputTokens  int64
	OutputTokens int64
	CostUSD      float64
	Calls        int64
}

// LLM sends one turn.
func (c *Context) LLM(turn Turn) (Reply, error) {
	request := Object(
		F("conversation", Text(turn.Conversation)),
		F("append", messageList(turn.Append)),
		F("system", Text(turn.System)),
		F("model", Text(turn.Model)),
		F("temperature", turn.Temperature),
		F("tools", Strings(turn.Tools)),
		F("schema", turn.Schema),
	)
	if turn.MaxTokens > 0 {
		request = request.With("maxTokens", Int(turn.MaxTokens))
	}
	if len(turn.Replace) > 0 {
		var list []Value
		for _, r := range turn.Replace {
			list = append(list, Object(F("from", Int(int64(r.From))), F("to", Int(int64(r.To))), F("with", messageList(r.With))))
		}
		request = request.With("replace", List(list...))
	}
	if turn.Aside {
		request = request.With("aside", Bool(true))
	}
	if turn.Context {
		request = request.With("context", Bool(true))
	}
	if turn.Sources {
		request = request.With("sources", Bool(true))
	}
	answer, err := c.call(abi.FuncLLM, importLLM, request)
	if err != nil {
		return Reply{}, err
	}
	return replyFrom(answer), nil
}

func messageList(messages []Message) Value {
	list := make([]Value, len(messages))
	for i, m := range messages {
		list[i] = m.value()
	}
	return List(list...)
}

func (m Message) value() Value {
	v := Object(
		F("role", String(m.Role)),
		F("content", String(m.Content)),
		F("toolCallId", Text(m.ToolCallID)),
		F("name", Text(m.Name)),
	)
	if m.IsError {
		v = v.With("isError", Bool(true))
	}
	return v
}

func replyFrom(v Value) Reply {
	r := Reply{
		Conversation: v.Get("conversation").StringOr(""),
		Text:         v.Get("text").StringOr(""),
		JSON:         v.Get("json"),
		Finish:       v.Get("finish").StringOr("stop"),
		MaxTokens:    v.Get("maxTokens").IntOr(0),
		Usage:        UsageFrom(v.Get("usage")),
		Provider:     v.Get("provider").StringOr(""),
		Model:        v.Get("model").StringOr(""),
		InputLimit:   v.Get("inputLimit").IntOr(0),
	}
	r.Problems, _ = v.Get("problems").AsStrings()
	for _, call := range v.Get("toolCalls").Items() {
		r.ToolCalls = append(r.ToolCalls, ToolCall{
			ID:        call.Get("id").StringOr(""),
			Name:      call.Get("name").StringOr(""),
			Arguments: call.Get("arguments"),
			Size:      call.Get("size").IntOr(0),
		})
	}
	return r
}

// UsageFrom reads a usage object. Missing keys are 0, except that a missing calls
// is 1.
func UsageFrom(v Value) Usage {
	cost, _ := v.Get("costUsd").AsFloat()
	return Usage{
		InputTokens:  v.Get("inputTokens").IntOr(0),
		OutputTokens: v.Get("outputTokens").IntOr(0),
		CostUSD:      cost,
		Calls:        v.Get("calls").IntOr(1),
	}
}

// Add adds o to u.
func (u *Usage) Add(o Usage) {
	u.InputTokens += o.InputTokens
	u.OutputTokens += o.OutputTokens
	u.CostUSD += o.CostUSD
	u.Calls += o.Calls
}

// Value returns u as JSON.
func (u Usage) Value() Value {
	return Object(
		F("inputTokens", Int(u.InputTokens)),
		F("outputTokens", Int(u.OutputTokens)),
		F("costUsd", Float(u.CostUSD)),
		F("calls", Int(u.Calls)),
	)
}
