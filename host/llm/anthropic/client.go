package anthropic

import (
	"context"
	"net/http"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/llm/wire"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// version is that of the protocol, a header of every request.
const version = "2023-06-01"

// Options configure a Client.
type Options struct {
	BaseURL string            // without the version: "https://api.anthropic.com"
	Key     string            // sent as x-api-key
	Headers map[string]string // sent with every request
	HTTP    *http.Client      // must not follow redirects: Go would keep x-api-key across hosts
}

// A Client asks one server. It is safe for concurrent use.
type Client struct{ server wire.Server }

// New returns a client. It makes no request.
func New(o Options) *Client {
	// Users write the base URL with and without the version.
	base, query := wire.SplitBase(o.BaseURL)
	base = strings.TrimSuffix(base, "/v1")
	header := http.Header{}
	header.Set("Anthropic-Version", version)
	if o.Key != "" {
		header.Set("X-Api-Key", o.Key)
	}
	for name, value := range o.Headers {
		header.Set(name, value)
	}
	return &Client{wire.Server{Base: base, Query: query, Header: header, HTTP: o.HTTP, Fault: readFault}}
}

// Models returns the models the server offers.
func (c *Client) Models(ctx context.Context) ([]wire.Offer, error) {
	var page wire.Offers
	if err := c.server.Get(ctx, "/v1/models", &page); err != nil {
		return nil, err
	}
	return page.List(), nil
}

// readFault reads the body of an error, of a response or of an event in a stream.
func readFault(f *wire.Failure, body []byte) {
	var fields struct {
		Error struct {
			Type    wire.Text `json:"type"`
			Message wire.Text `json:"message"`
		} `json:"error"`
	}
	_ = strictjson.DecodeForeign(body, &fields)
	f.Type, f.Message = string(fields.Error.Type), wire.Clip(string(fields.Error.Message))
	if f.Message == "" {
		f.Message = wire.Clip(string(body))
	}
}
