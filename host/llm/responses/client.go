package responses

import (
	"github.com/sentinel-runtime/sentinel/host/llm/openai"
	"github.com/sentinel-runtime/sentinel/host/llm/wire"
)

// A Client asks one server, whose list of models is that of the other protocol. It is safe for
// concurrent use.
type Client struct {
	*openai.Client
	server wire.Server
}

// New returns a client of the server that c asks. It makes no request.
func New(c *openai.Client) *Client { return &Client{c, c.Server()} }
