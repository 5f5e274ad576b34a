package openai

import (
	"encoding/json"
	"net/http"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/sentinel-runtime/sentinel/host/llm/wire"
)

// readWhole reads an answer that came in one piece. It is the one chunk of a
// stream whose deltas are whole messages.
func readWhole(body []byte, response *http.Response, delta func(string)) (wire.Answer, error) {
	chunk, ok := chunkOf(body)
	if !ok {
		if f := errorOf(body); f != nil {
			return wire.Answer{}, f
		}
		return wire.Answer{}, wire.Foreign(response.Header.Get("Content-Type"))
	}
	var a answer
	if err := a.add(chunk, delta); err != nil {
		return wire.Answer{}, err
	}
	if a.finish == "" {
		return wire.Answer{}, wire.Foreign(response.Header.Get("Content-Type"))
	}
	out := a.result()
	out.Note = wire.NoteWhole
	return out, nil
}

// chunkOf turns a completion into a chunk; false if it is no completion.
func chunkOf(body []byte) (chunk sdk.ChatCompletionChunk, ok bool) {
	var completion map[string]json.RawMessage
	var choices []map[string]json.RawMessage
	if json.Unmarshal(body, &completion) != nil || json.Unmarshal(completion["choices"], &choices) != nil || len(choices) == 0 {
		return chunk, false
	}
	for _, choice := range choices {
		var message map[string]json.RawMessage
		if json.Unmarshal(choice["message"], &message) != nil || message == nil {
			return chunk, false
		}
		var calls []map[string]any
		if json.Unmarshal(message["tool_calls"], &calls) == nil {
			for i := range calls { // each is whole, so its place is its index
				calls[i]["index"] = i
			}
			message["tool_calls"] = encode(calls)
		}
		choice["delta"] = encode(message)
		delete(choice, "message")
	}
	completion["choices"] = encode(choices)
	return chunk, json.Unmarshal(encode(completion), &chunk) == nil
}

// encode encodes what was decoded from JSON, which cannot fail.
func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

// errorOf returns the failure that a body with an error is, nil for any other.
func errorOf(body []byte) *wire.Failure {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil || len(fields["error"]) == 0 || string(fields["error"]) == "null" {
		return nil
	}
	return new(answer).broken(&ssestream.StreamError{Event: ssestream.Event{Data: body}})
}
