package anthropic

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/sentinel-runtime/sentinel/host/llm/wire"
)

// Stream makes one turn. delta, if not nil, receives the text as it arrives;
// thinking is not part of it. The error, if any, is a *wire.Failure.
func (c *Client) Stream(ctx context.Context, r wire.Request, delta func(string)) (wire.Answer, error) {
	var response *http.Response
	var whole []byte
	stream := c.messages.NewStreaming(ctx, params(r), option.WithResponseInto(&response), option.WithMiddleware(wire.WholeTaker(&whole, r.Alive)))
	defer stream.Close()
	if err := stream.Err(); err != nil {
		return wire.Answer{}, failure(err)
	}
	if whole != nil {
		return readWhole(whole, response, delta)
	}
	if response != nil && response.StatusCode >= 300 {
		return wire.Answer{}, &wire.Failure{
			Kind: wire.Status, Status: response.StatusCode, Header: response.Header,
			Message: "the server redirects to " + response.Header.Get("Location"),
		}
	}
	a := answer{blocks: map[int64]*block{}}
	for stream.Next() {
		if r.Alive != nil {
			r.Alive()
		}
		if err := a.add(stream.Current(), delta); err != nil {
			return wire.Answer{}, err
		}
	}
	if err := stream.Err(); err != nil {
		f := failure(err)
		if f.Kind == wire.Transport {
			f.Kind = wire.Broken
		}
		f.Usage = a.usage
		return wire.Answer{}, f
	}
	if !a.stopped || a.finish == "" {
		if wire.IsPage(response) {
			return wire.Answer{}, wire.Foreign(response.Header.Get("Content-Type"))
		}
		return wire.Answer{}, &wire.Failure{Kind: wire.Broken, Err: early(response), Usage: a.usage}
	}
	return a.result()
}

// answer collects the events of one turn.
type answer struct {
	order   []*block
	blocks  map[int64]*block
	finish  sdk.StopReason
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

// add takes one event in and passes its text on. Blocks may interleave, so each
// is kept by its index and joined in the order in which they began.
func (a *answer) add(event sdk.MessageStreamEventUnion, delta func(string)) error {
	switch event.Type {
	case "message_start":
		a.model = event.Message.Model
		u := event.Message.Usage
		a.usage = wire.Usage{
			Known: true, Output: u.OutputTokens,
			Input:     u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens,
			CacheRead: u.CacheReadInputTokens, CacheWrite: u.CacheCreationInputTokens,
		}
	case "content_block_start":
		b := &block{}
		switch event.ContentBlock.Type {
		// Thinking and what the provider runs itself are neither text nor calls.
		case "tool_use":
			b.call = &wire.Call{ID: event.ContentBlock.ID, Name: event.ContentBlock.Name}
		case "text":
			b.text.WriteString(event.ContentBlock.Text)
		}
		if len(a.order) == wire.MaxCalls {
			return &wire.Failure{Kind: wire.TooMany, Usage: a.usage}
		}
		a.blocks[event.Index] = b
		a.order = append(a.order, b)
	case "content_block_delta":
		b := a.blocks[event.Index]
		if b == nil {
			return &wire.Failure{
				Kind: wire.Broken, Usage: a.usage,
				Err: fmt.Errorf("the stream continues block %d, which it did not start", event.Index),
			}
		}
		a.size += len(event.Delta.Text) + len(event.Delta.PartialJSON)
		if a.size > wire.MaxAnswer {
			return &wire.Failure{Kind: wire.TooLarge, Usage: a.usage}
		}
		// Only one of the two is set, by the kind of the delta.
		b.text.WriteString(event.Delta.Text)
		b.input.WriteString(event.Delta.PartialJSON)
		if event.Delta.Text != "" && delta != nil {
			delta(event.Delta.Text)
		}
	case "message_delta":
		// The input was counted at the start and is not repeated by all servers.
		a.finish = event.Delta.StopReason
		a.usage.Known = true
		a.usage.Output = event.Usage.OutputTokens // a running total
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
	case sdk.StopReasonMaxTokens:
		out.Finish = "length"
	// The rest of an answer that filled the window is lost; sending the same
	// again would fill it again.
	case sdk.StopReasonModelContextWindowExceeded:
		return wire.Answer{}, &wire.Failure{
			Kind: wire.Event, Type: "invalid_request_error", Usage: a.usage,
			Message: "the model's context window was exceeded",
		}
	case sdk.StopReasonRefusal:
		out.Finish = "refused"
	}
	return out, nil
}

// early is the cause of a stream that ended without an error and without its
// last event.
func early(response *http.Response) error {
	if response != nil {
		if kind := response.Header.Get("Content-Type"); kind != "" && !strings.HasPrefix(kind, "text/event-stream") {
			return fmt.Errorf("the server answered with %q where a stream of events was asked for", kind)
		}
	}
	return fmt.Errorf("the stream ended before the answer was complete: %w", io.ErrUnexpectedEOF)
}
