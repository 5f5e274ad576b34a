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
		return wire.Answer{}, &wire.Failure{Kind: wire.Broken, Err: err, Usage: a.usage}
	}
	if !a.stopped || a.finish == "" {
		if wire.IsPage(response) {
			return wire.Answer{}, wire.Foreign(response.Header.Get("Content-Type"))
		}
		return wire.Answer{}, &wire.Failure{Kind: wire.Broken, Err: wire.Early(response), Usage: a.usage}
	}
	return a.result()
}

// The events of a stream and the parts of a whole answer.
type (
	event struct {
		Type         string     `json:"type"`
		Index        wire.Count `json:"index"`
		Message      reply      `json:"message"`       // message_start
		ContentBlock replyBlock `json:"content_block"` // content_block_start
		Delta        struct {
			Text        wire.Text `json:"text"`         // content_block_delta
			PartialJSON wire.Text `json:"partial_json"` // content_block_delta
			StopReason  wire.Text `json:"stop_reason"`  // message_delta
		} `json:"delta"`
		Usage usage `json:"usage"` // message_delta
	}
	reply struct {
		Type       string       `json:"type"`
		Model      wire.Text    `json:"model"`
		Content    []replyBlock `json:"content"`
		StopReason wire.Text    `json:"stop_reason"`
		Usage      usage        `json:"usage"`
	}
	replyBlock struct {
		Type  string          `json:"type"`
		Text  wire.Text       `json:"text"`
		ID    wire.Text       `json:"id"`
		Name  wire.Text       `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	usage struct {
		InputTokens              wire.Count `json:"input_tokens"`
		OutputTokens             wire.Count `json:"output_tokens"`
		CacheReadInputTokens     wire.Count `json:"cache_read_input_tokens"`
		CacheCreationInputTokens wire.Count `json:"cache_creation_input_tokens"`
	}
)

// counted is the usage of a whole message, or of its beginning.
func (u usage) counted() wire.Usage {
	return wire.Usage{
		Known: true, Output: int64(u.OutputTokens),
		Input:     int64(u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens),
		CacheRead: int64(u.CacheReadInputTokens), CacheWrite: int64(u.CacheCreationInputTokens),
	}
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

// block is one content block: text, or a tool call with its input so far.
type block struct {
	text  strings.Builder
	call  *wire.Call
	input strings.Builder
}

// read adds the data of one event.
func (a *answer) read(data []byte, delta func(string)) error {
	var e event
	if err := strictjson.DecodeForeign(data, &e); err != nil {
		return &wire.Failure{Kind: wire.Broken, Err: fmt.Errorf("an event of the stream: %w", err), Usage: a.usage}
	}
	if e.Type == "error" {
		f := &wire.Failure{Kind: wire.Event, Usage: a.usage}
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
		a.model, a.usage = string(e.Message.Model), e.Message.Usage.counted()
	case "content_block_start":
		b := &block{}
		switch e.ContentBlock.Type {
		// Thinking and what the provider executes itself are neither text nor calls.
		case "tool_use":
			b.call = &wire.Call{ID: string(e.ContentBlock.ID), Name: string(e.ContentBlock.Name)}
		case "text":
			b.text.WriteString(string(e.ContentBlock.Text))
		}
		if len(a.order) == wire.MaxCalls {
			return &wire.Failure{Kind: wire.TooMany, Usage: a.usage}
		}
		a.blocks[int64(e.Index)] = b
		a.order = append(a.order, b)
	case "content_block_delta":
		b := a.blocks[int64(e.Index)]
		if b == nil {
			return &wire.Failure{
				Kind: wire.Broken, Usage: a.usage,
				Err: fmt.Errorf("the stream continues block %d, which it did not start", e.Index),
			}
		}
		text, input := string(e.Delta.Text), string(e.Delta.PartialJSON)
		if a.size += len(text) + len(input); a.size > wire.MaxAnswer {
			return &wire.Failure{Kind: wire.TooLarge, Usage: a.usage}
		}
		// Only one of the two is set, by the kind of the delta.
		b.text.WriteString(text)
		b.input.WriteString(input)
		if text != "" && delta != nil {
			delta(text)
		}
	case "message_delta":
		// The input was counted at the start and is not repeated by all servers.
		a.finish = string(e.Delta.StopReason)
		a.usage.Known = true
		a.usage.Output = int64(e.Usage.OutputTokens) // a running total
	case "message_stop":
		a.stopped = true
	}
	return nil
}

// result joins the blocks and maps the stop reason.
func (a *answer) result() (wire.Answer, error) {
	out := wire.Answer{Model: a.model, Usage: a.usage, Finish: "stop"}
	var text strings.Builder
	for _, b := range a.order {
		if b.call != nil {
			b.call.Arguments = b.input.String()
			out.Calls = append(out.Calls, *b.call)
		}
		text.WriteString(b.text.String())
	}
	out.Text = text.String()
	if len(out.Calls) > 0 {
		out.Finish = "tools"
	}
	switch a.finish {
	case "max_tokens":
		out.Finish = "length"
	// The rest of an answer that filled the window is lost; sending the same
	// again would fill it again.
	case "model_context_window_exceeded":
		return wire.Answer{}, &wire.Failure{
			Kind: wire.Event, Type: "invalid_request_error", Usage: a.usage,
			Message: "the model's context window was exceeded",
		}
	case "refusal":
		out.Finish = "refused"
	}
	return out, nil
}
