package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/sentinel-runtime/sentinel/host/llm/wire"
)

// Stream makes one turn. delta, if not nil, receives the text as it arrives.
// The error, if any, is a *wire.Failure.
func (c *Client) Stream(ctx context.Context, r wire.Request, delta func(string)) (wire.Answer, error) {
	var response *http.Response
	var whole []byte
	stream := c.chat.NewStreaming(ctx, params(r), option.WithResponseInto(&response), option.WithMiddleware(wire.WholeTaker(&whole, r.Alive)))
	defer stream.Close()
	if err := stream.Err(); err != nil {
		return wire.Answer{}, failure(err)
	}
	if whole != nil {
		return readWhole(whole, response, delta)
	}
	// The SDK takes any status below 400 for an answer. Redirects are not
	// followed, so one would otherwise look like an empty stream.
	if response != nil && response.StatusCode >= 300 {
		return wire.Answer{}, &wire.Failure{
			Kind: wire.Status, Status: response.StatusCode, Header: response.Header,
			Message: "the server redirects to " + response.Header.Get("Location"),
		}
	}
	var a answer
	for stream.Next() {
		if r.Alive != nil {
			r.Alive()
		}
		if err := a.add(stream.Current(), delta); err != nil {
			return wire.Answer{}, err
		}
	}
	if err := stream.Err(); err != nil {
		return wire.Answer{}, a.broken(err)
	}
	if a.finish == "" {
		if wire.IsPage(response) {
			return wire.Answer{}, wire.Foreign(response.Header.Get("Content-Type"))
		}
		return wire.Answer{}, a.broken(early(response))
	}
	return a.result(), nil
}

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

// add takes one chunk in and passes its text on.
func (a *answer) add(chunk sdk.ChatCompletionChunk, delta func(string)) error {
	if chunk.Model != "" {
		a.model = chunk.Model
	}
	// Usage comes in a chunk of its own at the end, or with every chunk as a
	// running total; the last one counts.
	if chunk.JSON.Usage.Valid() {
		a.usage = wire.Usage{
			Known:      true,
			Input:      chunk.Usage.PromptTokens,
			Output:     chunk.Usage.CompletionTokens,
			CacheRead:  chunk.Usage.PromptTokensDetails.CachedTokens,
			CacheWrite: chunk.Usage.PromptTokensDetails.CacheWriteTokens,
		}
	}
	for _, choice := range chunk.Choices {
		// Some servers send more choices than were asked for.
		if choice.Index != 0 {
			continue // one answer was asked for
		}
		d := choice.Delta
		a.size += len(d.Content) + len(d.Refusal)
		a.text.WriteString(d.Content)
		a.refusal.WriteString(d.Refusal)
		for _, call := range d.ToolCalls {
			if !a.call(call) {
				return &wire.Failure{Kind: wire.TooMany, Usage: a.usage}
			}
		}
		if a.size > wire.MaxAnswer {
			return &wire.Failure{Kind: wire.TooLarge, Usage: a.usage}
		}
		if d.Content != "" && delta != nil {
			delta(d.Content)
		}
		if choice.FinishReason != "" {
			a.finish = choice.FinishReason
		}
	}
	return nil
}

// call adds a piece of a tool call, and reports false if that would be one call
// too many. Some servers give every call the index 0 and tell them apart by id
// alone.
func (a *answer) call(piece sdk.ChatCompletionChunkChoiceDeltaToolCall) bool {
	if a.index == nil {
		a.index = map[int64]int{}
	}
	at, ok := a.index[piece.Index]
	if !ok || piece.ID != "" && a.calls[at].ID != "" && piece.ID != a.calls[at].ID {
		if at = len(a.calls); at == wire.MaxCalls {
			return false
		}
		a.index[piece.Index] = at
		a.calls = append(a.calls, wire.Call{})
	}
	call := &a.calls[at]
	if piece.ID != "" {
		call.ID = piece.ID
	}
	if call.Name != piece.Function.Name { // repeated in each piece by some
		call.Name += piece.Function.Name
	}
	call.Arguments += piece.Function.Arguments
	a.size += len(piece.Function.Name) + len(piece.Function.Arguments)
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

// broken names what ended a stream before its finish reason came.
func (a *answer) broken(err error) *wire.Failure {
	f := &wire.Failure{Kind: wire.Broken, Err: err, Usage: a.usage}
	if event, ok := errors.AsType[*ssestream.StreamError](err); ok {
		// The error is an object with OpenAI and a plain text with others.
		var body struct {
			Error json.RawMessage `json:"error"`
		}
		_ = json.Unmarshal(event.Event.Data, &body)
		var detail struct {
			Type    string `json:"type"`
			Code    any    `json:"code"`
			Message string `json:"message"`
		}
		if json.Unmarshal(body.Error, &detail) != nil || detail.Message == "" {
			detail.Message = plainMessage(string(event.Event.Data))
		}
		f.Kind, f.Type, f.Message = wire.Event, detail.Type, detail.Message
		if detail.Code != nil {
			f.Code = fmt.Sprint(detail.Code)
		}
	}
	return f
}

// early is the cause of a stream that ended without an error and without a
// finish reason.
func early(response *http.Response) error {
	if response != nil {
		if kind := response.Header.Get("Content-Type"); kind != "" && !strings.HasPrefix(kind, "text/event-stream") {
			return fmt.Errorf("the server answered with %q where a stream of events was asked for", kind)
		}
	}
	return fmt.Errorf("the stream ended before the answer was complete: %w", io.ErrUnexpectedEOF)
}
