package anthropic

import (
	"net/http"

	"github.com/sentinel-runtime/sentinel/host/llm/wire"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// readWhole reads an answer that came in one piece.
func readWhole(body []byte, response *http.Response, delta func(string)) (wire.Answer, error) {
	if f := errorOf(body); f != nil {
		return wire.Answer{}, f
	}
	var m reply
	if strictjson.DecodeForeign(body, &m) != nil || m.Type != "message" || m.StopReason == "" {
		return wire.Answer{}, wire.Foreign(response.Header.Get("Content-Type"))
	}
	a := answer{finish: string(m.StopReason), model: string(m.Model)}
	a.count(m.Usage)
	for _, content := range m.Content {
		b := newBlock(content)
		if text := b.text.String(); text != "" && delta != nil {
			delta(text)
		}
		if a.order = append(a.order, b); len(a.order) > wire.MaxCalls {
			return wire.Answer{}, &wire.Failure{Kind: wire.TooMany, Usage: a.usage}
		}
		if a.size += len(content); a.size > wire.MaxAnswer {
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
		Type string `json:"type"`
	}
	if strictjson.DecodeForeign(body, &fault) != nil || fault.Type != "error" {
		return nil
	}
	f := &wire.Failure{Kind: wire.Event}
	readFault(f, body)
	return f
}
