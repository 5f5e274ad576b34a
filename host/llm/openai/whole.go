package openai

import (
	"encoding/json"
	"net/http"

	"github.com/sentinel-runtime/sentinel/host/llm/wire"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// readWhole reads an answer that came in one piece.
func readWhole(body []byte, response *http.Response, delta func(string)) (wire.Answer, error) {
	c, said, ok := chunkOf(body)
	if !ok {
		if f := ErrorOf(body); f != nil {
			return wire.Answer{}, f
		}
		return wire.Answer{}, wire.Foreign(response.Header.Get("Content-Type"))
	}
	var a answer
	if err := a.add(c, delta); err != nil {
		return wire.Answer{}, err
	}
	if a.finish == "" {
		return wire.Answer{}, wire.Foreign(response.Header.Get("Content-Type"))
	}
	out := a.result()
	out.Note, out.Said, out.Plain = wire.NoteWhole, said, false
	return out, nil
}

// chunkOf returns a whole answer as the only chunk of a stream, and the text of its message.
func chunkOf(body []byte) (c chunk, said json.RawMessage, ok bool) {
	var whole struct {
		Choices []struct {
			Message json.RawMessage `json:"message"`
		} `json:"choices"`
	}
	if strictjson.DecodeForeign(body, &c) != nil || strictjson.DecodeForeign(body, &whole) != nil || len(c.Choices) == 0 {
		return c, nil, false
	}
	for i, choice := range whole.Choices {
		m := &c.Choices[i].Delta
		if _, ok := wire.ReadObject(choice.Message); !ok || strictjson.DecodeForeign(choice.Message, m) != nil {
			return c, nil, false
		}
		for j := range m.ToolCalls { // each is whole, so its place is its index
			m.ToolCalls[j].Index = wire.Count(j)
		}
		if c.Choices[i].Index == 0 && said == nil {
			said = choice.Message
		}
	}
	return c, said, true
}
