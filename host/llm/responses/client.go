package responses

import (
	"context"
	"net/http"

	"github.com/sentinel-runtime/sentinel/host/llm/openai"
	"github.com/sentinel-runtime/sentinel/host/llm/wire"
)

// Options configure a Client.
type Options struct {
	BaseURL string            // with the version: "https://api.openai.com/v1"
	Key     string            // sent as a bearer token; empty sends none
	Headers map[string]string // sent with every request
	HTTP    *http.Client      // must not follow redirects
}

// A Client asks one server. It is safe for concurrent use.
type Client struct {
	server wire.Server
	list   *openai.Client // the list of models is the same in both protocols
}

// New returns a client. It makes no request.
func New(o Options) *Client {
	list := openai.New(openai.Options(o))
	return &Client{server: list.Server(), list: list}
}

// Models returns the models the server offers.
func (c *Client) Models(ctx context.Context) ([]wire.Offer, error) { return c.list.Models(ctx) }
