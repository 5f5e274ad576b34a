package anthropic

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/llm/wire"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// Stream makes one turn. delta, if not nil, receives the text as it arrives;
// thinking is not part of it. The error, if any, is a *wire.Failure.
func (c *Client) Stream(ctx context.Context, r wire.Request, delta func(string)) (wire.Answer, error) {
	response, whole, err := c.server.Post(ctx, "/v1/messages", encode(r), r.Alive)
	if err != nil {
		return wire.Answer{}, err
	}
	if whole != nil {
		return readWhole(whole, response, delta)
	}
	defer func() { _ = response.Body.Close() }()
	a := answer{blocks: map[int64]*block{}}
	events := wire.NewEvents(response.Body)
	for events.Next() {
		if r.Alive != nil {
			r.Alive()
		}
		if err := a.read(events.Data(), delta); err != nil {
			return wire.Answer{}, err
		}
	}
	if err := events.Err(); err != nil {
		return wire.Answer{}, &wire.Failure{Kind: wire.Broken, Err: err, Usage: a.usage, Sent: a.size}
	}
	if !a.stopped || a.finish == "" {
		if wire.IsPage(response) {
			return wire.Answer{}, wire.Foreign(response.Header.Get("Content-Type"))
		}
		return wire.Answer{}, &wire.Failure{Kind: wire.Broken, Err: wire.Early(response), Usage: a.usage, Sent: a.size}
	}
	return a.result()
}

// The events of a stream and the parts of a whole answer.
type (
	event struct {
		Type         string          `json:"type"`
		Index        wire.Count      `json:"index"`
		Message      reply           `json:"message"`       // message_start
		ContentBlock json.RawMessage `json:"content_block"` // content_block_start
		Delta        struct {
			Type        wire.Text                  `json:"type"`         // content_block_delta
			Text        wire.Text                  `json:"text"`         // content_block_delta
			PartialJSON wire.Text                  `json:"partial_json"` // content_block_delta
			StopReason  wire.Text                  `json:"stop_reason"`  // message_delta
			Rest        map[string]json.RawMessage `json:",embed"`
		} `json:"delta"`
		Usage usage `json:"usage"` // message_delta
	}
	reply struct {
		Type       string            `json:"type"`
		Model      wire.Text         `json:"model"`
		Content    []json.RawMessage `json:"content"`
		StopReason wire.Text         `json:"stop_reason"`
		Usage      usage             `json:"usage"`
	}
	usage struct {
		InputTokens              wire.Count `json:"input_tokens"`
		OutputTokens             wire.Count `json:"output_tokens"`
		CacheReadInputTokens     wire.Count `json:"cache_read_input_tokens"`
		CacheCreationInputTokens wire.Count `json:"cache_creation_input_tokens"`
	}
)

// count takes the largest of what a server has reported: the input at the start or, as GLM
// does, only at the end, and the output as a running total.
func (a *answer) count(u usage) {
	if u == (usage{}) {
		return
	}
	have := &a.usage
	have.Known = true
	have.Output = max(have.Output, int64(u.OutputTokens))
	have.Input = max(have.Input, int64(u.InputTokens+u.CacheReadInputTokens+u.CacheCreationInputTokens))
	have.CacheRead = max(have.CacheRead, int64(u.CacheReadInputTokens))
	have.CacheWrite = max(have.CacheWrite, int64(u.CacheCreationInputTokens))
}

// answer collects the events of one turn.
type answer struct {
	order   []*block
	blocks  map[int64]*block
	finish  string
	stopped bool
	model   string
	usage   wire.Usage
	size    int
}

// read adds the data of one event.
func (a *answer) read(data []byte, delta func(string)) error {
	var e event
	if err := strictjson.DecodeForeign(data, &e); err != nil {
		return &wire.Failure{Kind: wire.Broken, Err: fmt.Errorf("an event of the stream: %w", err), Usage: a.usage, Sent: a.size}
	}
	if e.Type == "error" {
		f := &wire.Failure{Kind: wire.Event, Usage: a.usage, Sent: a.size}
		readFault(f, data)
		return f
	}
	return a.add(e, delta)
}

// add adds one event and passes its text on. Blocks may interleave, so each
// is kept by its index and joined in the order in which they began. Events of other
// types, such as ping, have nothing to add.
func (a *answer) add(e event, delta func(string)) error {
	switch e.Type {
	case "message_start":
		a.model = string(e.Message.Model)
		a.count(e.Message.Usage)
	case "content_block_start":
		if len(a.order) == wire.MaxCalls {
			return &wire.Failure{Kind: wire.TooMany, Usage: a.usage, Sent: a.size}
		}
		b := newBlock(e.ContentBlock)
		a.blocks[int64(e.Index)] = b
		a.order = append(a.order, b)
		a.size += len(e.ContentBlock)
	case "content_block_delta":
		b := a.blocks[int64(e.Index)]
		if b == nil {
			return &wire.Failure{
				Kind: wire.Broken, Usage: a.usage, Sent: a.size,
				Err: fmt.Errorf("the stream continues block %d, which it did not start", e.Index),
			}
		}
		text := string(e.Delta.Text)
		if a.size += b.add(text, string(e.Delta.PartialJSON), e.Delta.Rest); a.size > wire.MaxAnswer {
			return &wire.Failure{Kind: wire.TooLarge, Usage: a.usage, Sent: a.size}
		}
		if text != "" && delta != nil {
			delta(text)
		}
	case "message_delta":
		a.finish = string(e.Delta.StopReason)
		a.count(e.Usage)
	case "message_stop":
		a.stopped = true
	}
	return nil
}

// result joins the blocks.
func (a *answer) result() (wire.Answer, error) {
	out := wire.Answer{Model: a.model, Usage: a.usage, Finish: a.finish}
	var text strings.Builder
	var thinking []string
	out.Plain = true
	var said []json.RawMessage
	for i, b := range a.order {
		out.Plain = out.Plain && b.plain(i == 0)
		switch b.kind {
		case "tool_use":
			out.Calls = append(out.Calls, b.call())
		case "thinking":
			thinking = append(thinking, b.thinking())
		case "text":
			text.WriteString(b.text.String())
		}
		said = append(said, b.json())
	}
	out.Text, out.Reasoning = text.String(), strings.Join(thinking, "\n\n")
	out.Said = wire.Object{{Name: "role", Value: wire.Quote("assistant")}, {Name: "content", Value: wire.List(said)}}.JSON()
	return out, nil
}
