package responses

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/llm/openai"
	"github.com/sentinel-runtime/sentinel/host/llm/wire"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// Stream makes one turn. delta, if not nil, receives the text as it arrives; reasoning is not
// part of it. The error, if any, is a *wire.Failure.
func (c *Client) Stream(ctx context.Context, r wire.Request, delta func(string)) (wire.Answer, error) {
	http, whole, err := c.server.Post(ctx, "/responses", encode(r), r.Alive)
	if err != nil {
		return wire.Answer{}, err
	}
	if whole != nil {
		return readWhole(whole, http, delta)
	}
	defer func() { _ = http.Body.Close() }()
	a := answer{items: map[int64]json.RawMessage{}}
	events := wire.NewEvents(http.Body)
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
	if a.finish == "" {
		if wire.IsPage(http) {
			return wire.Answer{}, wire.Foreign(http.Header.Get("Content-Type"))
		}
		return wire.Answer{}, &wire.Failure{Kind: wire.Broken, Err: wire.Early(http), Usage: a.usage, Sent: a.size}
	}
	return a.result()
}

// readWhole reads an answer that came in one piece.
func readWhole(body []byte, http *http.Response, delta func(string)) (wire.Answer, error) {
	var r response
	if strictjson.DecodeForeign(body, &r) != nil || r.Object != "response" {
		if f := openai.ErrorOf(body); f != nil {
			return wire.Answer{}, f
		}
		return wire.Answer{}, wire.Foreign(http.Header.Get("Content-Type"))
	}
	var a answer
	if err := a.end(r); err != nil {
		return wire.Answer{}, err
	}
	out, err := a.result()
	if err == nil && out.Text != "" && delta != nil {
		delta(out.Text)
	}
	out.Note = wire.NoteWhole
	return out, err
}

// The events of a stream and the parts of a whole answer.
type (
	event struct {
		Type        string          `json:"type"`
		OutputIndex wire.Count      `json:"output_index"`
		Delta       json.RawMessage `json:"delta"`
		Item        json.RawMessage `json:"item"`
		Response    response        `json:"response"`
		Code        wire.Text       `json:"code"`    // of error
		Message     wire.Text       `json:"message"` // of error
	}
	response struct {
		Object string            `json:"object"`
		Model  wire.Text         `json:"model"`
		Status wire.Text         `json:"status"`
		Output []json.RawMessage `json:"output"`
		Usage  usage             `json:"usage"`
		Error  struct {
			Code    wire.Text `json:"code"`
			Message wire.Text `json:"message"`
		} `json:"error"`
		Incomplete struct {
			Reason wire.Text `json:"reason"`
		} `json:"incomplete_details"`
	}
	usage struct {
		InputTokens  wire.Count `json:"input_tokens"`
		OutputTokens wire.Count `json:"output_tokens"`
		Details      struct {
			CachedTokens wire.Count `json:"cached_tokens"`
		} `json:"input_tokens_details"`
		OutputDetails struct {
			ReasoningTokens wire.Count `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	}
)

// answer collects the events of one turn.
type answer struct {
	items  map[int64]json.RawMessage // finished, by their place
	output []json.RawMessage         // of the last event
	text   strings.Builder           // of deltas, for servers that repeat it nowhere
	finish string
	model  string
	usage  wire.Usage
	size   int
}

// read adds the data of one event.
func (a *answer) read(data []byte, show func(string)) error {
	var e event
	if err := strictjson.DecodeForeign(data, &e); err != nil {
		return &wire.Failure{Kind: wire.Broken, Err: fmt.Errorf("an event of the stream: %w", err), Usage: a.usage, Sent: a.size}
	}
	switch {
	case e.Type == "error":
		f := &wire.Failure{Kind: wire.Event, Code: string(e.Code), Message: wire.Clip(string(e.Message)), Usage: a.usage, Sent: a.size}
		if f.Message == "" {
			if of := openai.ErrorOf(data); of != nil {
				f.Type, f.Code, f.Message = of.Type, of.Code, of.Message
			}
		}
		return f
	case strings.HasSuffix(e.Type, ".delta"):
		text, _ := wire.ReadText(e.Delta)
		if a.size += len(text); a.size > wire.MaxAnswer {
			return &wire.Failure{Kind: wire.TooLarge, Usage: a.usage, Sent: a.size}
		}
		if e.Type == "response.output_text.delta" && text != "" {
			a.text.WriteString(text)
			if show != nil {
				show(text)
			}
		}
	case e.Type == "response.output_item.done":
		if len(a.items) == wire.MaxCalls {
			return &wire.Failure{Kind: wire.TooMany, Usage: a.usage, Sent: a.size}
		}
		a.items[int64(e.OutputIndex)] = e.Item
	case e.Type == "response.completed", e.Type == "response.incomplete", e.Type == "response.failed", e.Type == "response.cancelled":
		return a.end(e.Response)
	}
	return nil
}

// end adds the end of an answer.
func (a *answer) end(r response) error {
	a.model, a.output, a.finish = string(r.Model), r.Output, string(r.Status)
	if u := r.Usage; u != (usage{}) {
		a.usage = wire.Usage{Known: true, Input: int64(u.InputTokens), Output: int64(u.OutputTokens), CacheRead: int64(u.Details.CachedTokens)}
		if thinking := int64(u.OutputDetails.ReasoningTokens); thinking > a.usage.Output {
			a.usage.Output += thinking
		}
	}
	switch r.Status {
	case "failed", "cancelled":
		message := string(r.Error.Message)
		if message == "" {
			message = "the server ended the response as " + string(r.Status)
		}
		return &wire.Failure{Kind: wire.Event, Code: string(r.Error.Code), Message: wire.Clip(message), Usage: a.usage, Sent: a.size}
	case "incomplete":
		a.finish = string(r.Incomplete.Reason)
	case "completed":
		a.finish = "stop"
	}
	if a.finish == "" {
		return &wire.Failure{Kind: wire.NotReply, Usage: a.usage, Sent: a.size}
	}
	size := 0
	for _, item := range r.Output {
		size += len(item)
	}
	a.size = max(a.size, size)
	switch {
	case len(r.Output) > wire.MaxCalls:
		return &wire.Failure{Kind: wire.TooMany, Usage: a.usage, Sent: a.size}
	case size > wire.MaxAnswer:
		return &wire.Failure{Kind: wire.TooLarge, Usage: a.usage, Sent: a.size}
	}
	return nil
}

// result joins the items.
func (a *answer) result() (wire.Answer, error) {
	list := a.output
	if len(list) == 0 { // some servers have the items in events of their own only
		for _, i := range slices.Sorted(maps.Keys(a.items)) {
			list = append(list, a.items[i])
		}
	}
	out := wire.Answer{Model: a.model, Usage: a.usage, Finish: a.finish, Plain: true}
	var texts, thoughts, refusals []string
	for i, raw := range list {
		var it item
		if strictjson.DecodeForeign(raw, &it) != nil {
			return wire.Answer{}, &wire.Failure{Kind: wire.NotReply, Usage: a.usage, Sent: a.size}
		}
		switch it.Type {
		case "function_call":
			out.Calls = append(out.Calls, wire.Call{ID: string(it.CallID), Name: string(it.Name), Arguments: string(it.Arguments)})
		case "reasoning":
			thoughts = append(thoughts, it.thoughts()...)
		case "message":
			for _, c := range it.Content {
				texts, refusals = append(texts, string(c.Text)), append(refusals, string(c.Refusal))
			}
		}
		out.Plain = out.Plain && it.plain(raw, i == 0)
	}
	out.Text, out.Reasoning = strings.Join(texts, ""), strings.Join(thoughts, "\n\n")
	if len(list) == 0 {
		out.Text = a.text.String()
		return out, nil
	}
	// A refusal has a part of its own, and the status says completed.
	if refusal := strings.Join(refusals, ""); out.Text == "" && refusal != "" {
		out.Text, out.Finish = refusal, "refused"
	}
	out.Said = wire.Object{{Name: "output", Value: wire.List(list)}}.JSON()
	return out, nil
}

// An item is one item of the output: a message, a call, reasoning, or what the provider
// executes itself.
type item struct {
	Type      string    `json:"type"`
	CallID    wire.Text `json:"call_id"`
	Name      wire.Text `json:"name"`
	Arguments wire.Text `json:"arguments"`
	Content   []struct {
		Type        string            `json:"type"`
		Text        wire.Text         `json:"text"`
		Refusal     wire.Text         `json:"refusal"`
		Annotations []json.RawMessage `json:"annotations"`
	} `json:"content"`
	Summary []struct {
		Text wire.Text `json:"text"`
	} `json:"summary"`
}

// thoughts returns the texts of an item of reasoning: its content if the server shows it,
// else the summary.
func (it item) thoughts() (list []string) {
	for _, c := range it.Content {
		list = append(list, string(c.Text))
	}
	if len(list) > 0 {
		return list
	}
	for _, s := range it.Summary {
		list = append(list, string(s.Text))
	}
	return list
}

// plain reports whether an item is a text at the begin of the answer or a call, with nothing
// else that would be lost.
func (it item) plain(raw json.RawMessage, first bool) bool {
	o, _ := wire.ReadObject(raw)
	switch it.Type {
	case "message":
		one := len(it.Content) == 1 && it.Content[0].Type == "output_text" && len(it.Content[0].Annotations) == 0
		return first && one && len(o.Without("type", "id", "status", "role", "content")) == 0
	case "function_call":
		return len(o.Without("type", "id", "status", "call_id", "name", "arguments")) == 0
	}
	return false
}
