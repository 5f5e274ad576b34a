package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"

	"github.com/sentinel-runtime/sentinel/host/llm/wire"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// Options configure a Client.
type Options struct {
	BaseURL string            // with the version: "https://api.openai.com/v1"
	Key     string            // sent as a bearer token; empty sends none
	Headers map[string]string // sent with every request
	HTTP    *http.Client      // must not follow redirects
}

// A Client asks one server. It is safe for concurrent use.
type Client struct{ server wire.Server }

// New returns a client. It makes no request.
func New(o Options) *Client {
	header := http.Header{}
	if o.Key != "" {
		header.Set("Authorization", "Bearer "+o.Key)
	}
	for name, value := range o.Headers {
		header.Set(name, value)
	}
	base, query := wire.SplitBase(o.BaseURL)
	return &Client{wire.Server{Base: base, Query: query, Header: header, HTTP: o.HTTP, Fault: readFault}}
}

// Server returns the HTTP side, for the other protocol of the same servers.
func (c *Client) Server() wire.Server { return c.server }

// Models returns the models the server offers.
func (c *Client) Models(ctx context.Context) ([]wire.Offer, error) {
	var page wire.Offers
	if err := c.server.Get(ctx, "/models", &page); err != nil {
		return nil, err
	}
	return page.List(), nil
}

// detail is an error as servers write it.
type detail struct {
	Type     wire.Text       `json:"type"`
	Code     wire.Text       `json:"code"`
	Message  json.RawMessage `json:"message"`
	Detail   json.RawMessage `json:"detail"`
	Metadata struct {
		Raw wire.Text `json:"raw"`
	} `json:"metadata"`
}

// readFault reads the body of an error, of a response or of an event in a stream. The
// error is an object with OpenAI, in a list with Gemini, a text with others, or the body itself;
// OpenRouter has that of the server behind it in its metadata.
func readFault(f *wire.Failure, body []byte) {
	if list, ok := wire.ReadList(body); ok && len(list) > 0 {
		body = list[0]
	}
	var fields struct {
		Error json.RawMessage `json:"error"`
	}
	_ = strictjson.DecodeForeign(body, &fields)
	var own, outer detail
	_ = strictjson.DecodeForeign(fields.Error, &own)
	_ = strictjson.DecodeForeign(body, &outer)
	f.Type, f.Code = string(cmp.Or(own.Type, outer.Type)), string(cmp.Or(own.Code, outer.Code))
	f.Message = cmp.Or(plain(own.Message), plain(fields.Error), plain(outer.Message), plain(outer.Detail), string(body))
	if raw := string(own.Metadata.Raw); raw != "" {
		var behind wire.Failure
		readFault(&behind, []byte(raw))
		f.Message += ": " + behind.Message
	}
	f.Message = wire.Clip(f.Message)
}

// plain returns a text, or those of a list of mistakes with their places, "" for anything else.
func plain(raw json.RawMessage) string {
	text, _ := wire.ReadText(raw)
	if o, ok := wire.ReadObject(raw); ok && o.Get("detail") != nil { // Mistral
		raw = o.Get("detail")
	}
	list, _ := wire.ReadList(raw)
	for i, item := range list {
		var mistake struct {
			At  []wire.Text `json:"loc"`
			Msg wire.Text   `json:"msg"`
		}
		_ = strictjson.DecodeForeign(item, &mistake)
		if i > 0 && mistake.Msg != "" {
			text += "; "
		}
		for j, part := range mistake.At {
			if j > 0 {
				text += "."
			}
			text += string(part)
		}
		if mistake.Msg != "" {
			text += ": " + string(mistake.Msg)
		}
	}
	return text
}
