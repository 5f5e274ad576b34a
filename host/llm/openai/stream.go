package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/llm/wire"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// Stream makes one turn. delta, if not nil, receives the text as it arrives. The
// error, if any, is a *wire.Failure.
func (c *Client) Stream(ctx context.Context, r wire.Request, delta func(string)) (wire.Answer, error) {
	response, whole, err := c.server.Post(ctx, "/chat/completions", encode(r), r.Alive)
	if err != nil {
		return wire.Answer{}, err
	}
	if whole != nil {
		return readWhole(whole, response, delta)
	}
	defer func() { _ = response.Body.Close() }()
	var a answer
	events := wire.NewEvents(response.Body)
	for events.Next() {
		if r.Alive != nil {
			r.Alive()
		}
		if bytes.HasPrefix(events.Data(), []byte("[DONE]")) {
			continue // what servers send after it does not count, but is read
		}
		if err := a.read(events.Data(), delta); err != nil {
			return wire.Answer{}, err
		}
	}
	if err := events.Err(); err != nil {
		return wire.Answer{}, &wire.Failure{Kind: wire.Broken, Err: err, Usage: a.usage}
	}
	if a.finish == "" {
		if wire.IsPage(response) {
			return wire.Answer{}, wire.Foreign(response.Header.Get("Content-Type"))
		}
		return wire.Answer{}, &wire.Failure{Kind: wire.Broken, Err: wire.Early(response), Usage: a.usage}
	}
	return a.result(), nil
}

// The pieces of an answer. A whole answer has a message where a chunk has a delta.
type (
	chunk struct {
		Model   wire.Text `json:"model"`
		Usage   *usage    `json:"usage"`
		Choices []choice  `json:"choices"`
	}
	choice struct {
		Index        wire.Count `json:"index"`
		Delta        delta      `json:"delta"`
		Message      *delta     `json:"message"`
		FinishReason wire.Text  `json:"finish_reason"`
	}
	delta struct {
		Content   wire.Text  `json:"content"`
		Refusal   wire.Text  `json:"refusal"`
		ToolCalls []callPart `json:"tool_calls"`
	}
	callPart struct {
		Index    wire.Count `json:"index"`
		ID       wire.Text  `json:"id"`
		Function struct {
			Name      wire.Text `json:"name"`
			Arguments wire.Text `json:"arguments"`
		} `json:"function"`
	}
	usage struct {
		PromptTokens     wire.Count `json:"prompt_tokens"`
		CompletionTokens wire.Count `json:"completion_tokens"`
		Details          struct {
			CachedTokens     wire.Count `json:"cached_tokens"`
			CacheWriteTokens wire.Count `json:"cache_write_tokens"`
		} `json:"prompt_tokens_details"`
	}
)

// answer collects the chunks of one turn.
type answer struct {
	text, refusal strings.Builder
	calls         []wire.Call
	index         map[int64]int // the protocol's index to ours
	finish        string
	model         string
	usage         wire.Usage
	size          int
}

// read adds the data of one event: a chunk or an error.
func (a *answer) read(data []byte, delta func(string)) error {
	if f := errorOf(data); f != nil {
		f.Usage = a.usage
		return f
	}
	var c chunk
	if err := strictjson.DecodeForeign(data, &c); err != nil {
		return &wire.Failure{Kind: wire.Broken, Err: fmt.Errorf("an event of the stream: %w", err), Usage: a.usage}
	}
	return a.add(c, delta)
}

// add adds a chunk and passes its text on.
func (a *answer) add(c chunk, delta func(string)) error {
	if c.Model != "" {
		a.model = string(c.Model)
	}
	// Usage comes in a chunk of its own at the end, or with every chunk as a
	// running total; the last one counts.
	if u := c.Usage; u != nil {
		a.usage = wire.Usage{
			Known: true, Input: int64(u.PromptTokens), Output: int64(u.CompletionTokens),
			CacheRead: int64(u.Details.CachedTokens), CacheWrite: int64(u.Details.CacheWriteTokens),
		}
	}
	for _, choice := range c.Choices {
		// Some servers send more choices than were asked for.
		if choice.Index != 0 {
			continue
		}
		d := choice.Delta
		a.size += len(d.Content) + len(d.Refusal)
		a.text.WriteString(string(d.Content))
		a.refusal.WriteString(string(d.Refusal))
		for _, part := range d.ToolCalls {
			if !a.call(part) {
				return &wire.Failure{Kind: wire.TooMany, Usage: a.usage}
			}
		}
		if a.size > wire.MaxAnswer {
			return &wire.Failure{Kind: wire.TooLarge, Usage: a.usage}
		}
		if d.Content != "" && delta != nil {
			delta(string(d.Content))
		}
		if choice.FinishReason != "" {
			a.finish = string(choice.FinishReason)
		}
	}
	return nil
}

// call adds a piece of a tool call and reports whether there may be as many. Pieces
// belong to a call by their index; some servers reuse an index with another id.
func (a *answer) call(part callPart) bool {
	if a.index == nil {
		a.index = map[int64]int{}
	}
	id, name, arguments := string(part.ID), string(part.Function.Name), string(part.Function.Arguments)
	at, ok := a.index[int64(part.Index)]
	if !ok || id != "" && a.calls[at].ID != "" && id != a.calls[at].ID {
		if at = len(a.calls); at == wire.MaxCalls {
			return false
		}
		a.index[int64(part.Index)] = at
		a.calls = append(a.calls, wire.Call{})
	}
	call := &a.calls[at]
	if id != "" {
		call.ID = id
	}
	if call.Name != name { // repeated in each piece by some
		call.Name += name
	}
	call.Arguments += arguments
	a.size += len(name) + len(arguments)
	return true
}

// result maps the finish reason. Servers disagree on it where there are calls,
// so the calls themselves decide.
func (a *answer) result() wire.Answer {
	out := wire.Answer{Text: a.text.String(), Calls: a.calls, Model: a.model, Usage: a.usage}
	switch a.finish {
	case "length":
		out.Finish = "length"
	case "content_filter":
		out.Finish = "refused"
	default: // stop, tool_calls, function_call, and what servers invent
		out.Finish = "stop"
		if len(a.calls) > 0 {
			out.Finish = "tools"
		}
	}
	// A refusal has a field of its own, and the finish reason says stop.
	if out.Text == "" && a.refusal.Len() > 0 {
		out.Text, out.Finish = a.refusal.String(), "refused"
	}
	return out
}

// errorOf returns the failure that data with an error is, nil for any other.
func errorOf(data []byte) *wire.Failure {
	var fields struct {
		Error json.RawMessage `json:"error"`
	}
	if strictjson.DecodeForeign(data, &fields) != nil || len(fields.Error) == 0 || string(fields.Error) == "null" {
		return nil
	}
	f := &wire.Failure{Kind: wire.Event}
	readFault(f, data)
	return f
}
