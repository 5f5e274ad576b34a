package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

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
		return wire.Answer{}, &wire.Failure{Kind: wire.Broken, Err: err, Usage: a.usage, Sent: a.size}
	}
	if a.finish == "" {
		if wire.IsPage(response) {
			return wire.Answer{}, wire.Foreign(response.Header.Get("Content-Type"))
		}
		return wire.Answer{}, &wire.Failure{Kind: wire.Broken, Err: wire.Early(response), Usage: a.usage, Sent: a.size}
	}
	return a.result(), nil
}

// The pieces of an answer. A whole answer has a message where a chunk has a delta.
type (
	chunk struct {
		Model   wire.Text `json:"model"`
		Usage   usage     `json:"usage"`
		Choices []choice  `json:"choices"`
		Groq    struct {
			Usage usage `json:"usage"`
		} `json:"x_groq"`
	}
	choice struct {
		Index        wire.Count `json:"index"`
		Delta        delta      `json:"delta"`
		FinishReason wire.Text  `json:"finish_reason"`
		Usage        usage      `json:"usage"` // Kimi
	}
	delta struct {
		Role      wire.Text       `json:"role"`
		Content   json.RawMessage `json:"content"` // a text, or a list of its parts
		Refusal   wire.Text       `json:"refusal"`
		ToolCalls []callPart      `json:"tool_calls"`
		Rest      rest            `json:",embed"`
	}
	callPart struct {
		Index    wire.Count `json:"index"`
		ID       wire.Text  `json:"id"`
		Type     wire.Text  `json:"type"`
		Function struct {
			Name      wire.Text `json:"name"`
			Arguments wire.Text `json:"arguments"`
			Rest      rest      `json:",embed"`
		} `json:"function"`
		Rest rest `json:",embed"`
	}
	// rest are the members that the protocol does not have, or that we do not know.
	rest  map[string]json.RawMessage
	usage struct {
		PromptTokens     wire.Count `json:"prompt_tokens"`
		CompletionTokens wire.Count `json:"completion_tokens"`
		TotalTokens      wire.Count `json:"total_tokens"`
		Details          struct {
			CachedTokens     wire.Count `json:"cached_tokens"`
			CacheWriteTokens wire.Count `json:"cache_write_tokens"`
		} `json:"prompt_tokens_details"`
		OutputDetails struct {
			ReasoningTokens wire.Count `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	}
)

// count takes the largest of what a server has reported: it reports in a chunk of its own at
// the end, or a running total with each chunk. With some servers completion_tokens has no
// thinking in it; the total has it, or the thinking is larger than what it should be a part of.
func (a *answer) count(u usage) {
	if u == (usage{}) {
		return
	}
	output := max(u.CompletionTokens, u.TotalTokens-max(u.PromptTokens, 0))
	if thinking := u.OutputDetails.ReasoningTokens; thinking > output {
		output += thinking
	}
	have := &a.usage
	have.Known = true
	have.Input, have.Output = max(have.Input, int64(u.PromptTokens)), max(have.Output, int64(output))
	have.CacheRead = max(have.CacheRead, int64(u.Details.CachedTokens))
	have.CacheWrite = max(have.CacheWrite, int64(u.Details.CacheWriteTokens))
}

// answer collects the chunks of one turn.
type answer struct {
	received
	finish string
	model  string
	usage  wire.Usage
}

// read adds the data of one event: a chunk or an error.
func (a *answer) read(data []byte, delta func(string)) error {
	if f := ErrorOf(data); f != nil {
		f.Usage, f.Sent = a.usage, a.size
		return f
	}
	var c chunk
	if err := strictjson.DecodeForeign(data, &c); err != nil {
		return &wire.Failure{Kind: wire.Broken, Err: fmt.Errorf("an event of the stream: %w", err), Usage: a.usage, Sent: a.size}
	}
	return a.add(c, delta)
}

// add adds a chunk and passes its text on.
func (a *answer) add(c chunk, delta func(string)) error {
	if c.Model != "" {
		a.model = string(c.Model)
	}
	a.count(c.Usage)
	a.count(c.Groq.Usage)
	for _, choice := range c.Choices {
		// Some servers send more choices than were asked for.
		if choice.Index != 0 {
			continue
		}
		a.count(choice.Usage)
		if err := a.addDelta(choice.Delta, delta); err != nil {
			return err
		}
		if choice.FinishReason != "" {
			a.finish = string(choice.FinishReason)
		}
	}
	return nil
}

// addDelta adds a piece of the message, and passes its text on.
func (a *answer) addDelta(d delta, show func(string)) error {
	text, ok := a.received.add(d)
	switch {
	case !ok:
		return &wire.Failure{Kind: wire.TooMany, Usage: a.usage, Sent: a.size}
	case a.size > wire.MaxAnswer:
		return &wire.Failure{Kind: wire.TooLarge, Usage: a.usage, Sent: a.size}
	}
	if text != "" && show != nil {
		show(text)
	}
	return nil
}

// result returns the whole answer.
func (a *answer) result() wire.Answer {
	out := wire.Answer{Text: a.text.String(), Model: a.model, Usage: a.usage, Reasoning: a.reasoning(), Said: a.json(), Plain: a.plain()}
	for _, c := range a.calls {
		out.Calls = append(out.Calls, wire.Call{ID: c.id, Name: c.name, Arguments: c.arguments.String()})
	}
	out.Finish = a.finish
	// A refusal has a field of its own, and the finish reason says stop.
	if out.Text == "" && a.refusal.Len() > 0 {
		out.Text, out.Finish = a.refusal.String(), "refused"
	}
	return out
}

// ErrorOf returns the failure that data with an error is, nil for any other.
func ErrorOf(data []byte) *wire.Failure {
	var fields struct {
		Error json.RawMessage `json:"error"`
	}
	if list, ok := wire.ReadList(data); ok && len(list) > 0 {
		data = list[0]
	}
	if strictjson.DecodeForeign(data, &fields) != nil || len(fields.Error) == 0 || string(fields.Error) == "null" {
		return nil
	}
	f := &wire.Failure{Kind: wire.Event}
	readFault(f, data)
	return f
}
