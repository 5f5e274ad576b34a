package openai

import (
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

// readFault reads the body of an error, of a response or of an event in a stream. The
// error is an object with OpenAI and a text with others.
func readFault(f *wire.Failure, body []byte) {
	var fields struct {
		Error json.RawMessage `json:"error"`
	}
	_ = strictjson.DecodeForeign(body, &fields)
	var detail struct {
		Type    wire.Text `json:"type"`
		Code    wire.Text `json:"code"`
		Message wire.Text `json:"message"`
	}
	_ = strictjson.DecodeForeign(fields.Error, &detail)
	f.Type, f.Code, f.Message = string(detail.Type), string(detail.Code), string(detail.Message)
	if f.Message == "" {
		f.Message = plainMessage(body)
	}
}

// plainMessage is the text of an error that is not in OpenAI's form.
func plainMessage(body []byte) string {
	var fields map[string]any
	if json.Unmarshal(body, &fields) == nil {
		for _, name := range []string{"message", "error", "detail"} {
			if text, ok := fields[name].(string); ok {
				return wire.Clip(text)
			}
		}
	}
	return wire.Clip(string(body))
}
