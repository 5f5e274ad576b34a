package anthropic

import (
	"encoding/json"
	"net/http"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/sentinel-runtime/sentinel/host/llm/wire"
)

// readWhole reads an answer that came in one piece.
func readWhole(body []byte, response *http.Response, delta func(string)) (wire.Answer, error) {
	if f := errorOf(body); f != nil {
		return wire.Answer{}, f
	}
	var m sdk.Message
	if json.Unmarshal(body, &m) != nil || m.Type != "message" || m.StopReason == "" {
		return wire.Answer{}, wire.Foreign(response.Header.Get("Content-Type"))
	}
	u := m.Usage
	a := answer{finish: m.StopReason, model: m.Model, usage: wire.Usage{
		Known: true, Output: u.OutputTokens,
		Input:     u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens,
		CacheRead: u.CacheReadInputTokens, CacheWrite: u.CacheCreationInputTokens,
	}}
	for _, content := range m.Content {
		b := &block{}
		switch content.Type {
		case "tool_use":
			b.call = &wire.Call{ID: content.ID, Name: content.Name}
			b.input.Write(content.Input)
		case "text":
			b.text.WriteString(content.Text)
			if content.Text != "" && delta != nil {
				delta(content.Text)
			}
		}
		if a.order = append(a.order, b); len(a.order) > wire.MaxCalls {
			return wire.Answer{}, &wire.Failure{Kind: wire.TooMany, Usage: a.usage}
		}
		if a.size += b.text.Len() + b.input.Len(); a.size > wire.MaxAnswer {
			return wire.Answer{}, &wire.Failure{Kind: wire.TooLarge, Usage: a.usage}
		}
	}
	out, err := a.result()
	out.Note = wire.NoteWhole
	return out, err
}

// errorOf returns the failure that a body with an error is, nil for any other.
func errorOf(body []byte) *wire.Failure {
	var fault struct {
		Type  string `json:"type"`
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &fault) != nil || fault.Type != "error" {
		return nil
	}
	return &wire.Failure{Kind: wire.Event, Type: fault.Error.Type, Message: clip(fault.Error.Message)}
}
