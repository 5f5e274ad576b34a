package openai

import (
	"net/http"

	"github.com/sentinel-runtime/sentinel/host/llm/wire"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// readWhole reads an answer that came in one piece.
func readWhole(body []byte, response *http.Response, delta func(string)) (wire.Answer, error) {
	c, ok := chunkOf(body)
	if !ok {
		if f := errorOf(body); f != nil {
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
	out.Note = wire.NoteWhole
	return out, nil
}

// chunkOf returns a whole answer as the only chunk of a stream.
func chunkOf(body []byte) (c chunk, ok bool) {
	if strictjson.DecodeForeign(body, &c) != nil || len(c.Choices) == 0 {
		return c, false
	}
	for i := range c.Choices {
		message := c.Choices[i].Message
		if message == nil {
			return c, false
		}
		for j := range message.ToolCalls { // each is whole, so its place is its index
			message.ToolCalls[j].Index = wire.Count(j)
		}
		c.Choices[i].Delta = *message
	}
	return c, true
}
