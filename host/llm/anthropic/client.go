package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/sentinel-runtime/sentinel/host/llm/wire"
)

// Options configure a Client.
type Options struct {
	BaseURL string            // without the version: "https://api.anthropic.com"
	Key     string            // sent as x-api-key
	Headers map[string]string // sent with every request
	HTTP    *http.Client      // must not follow redirects: Go would keep x-api-key across hosts
}

// A Client asks one server. It is safe for concurrent use.
type Client struct {
	messages sdk.MessageService
	models   sdk.ModelService
}

// New returns a client. It makes no request.
func New(o Options) *Client {
	// People write the base URL with and without the version; the SDK adds it.
	base := strings.TrimSuffix(strings.TrimSuffix(o.BaseURL, "/"), "/v1")
	options := []option.RequestOption{
		option.WithBaseURL(base + "/"),
		option.WithHTTPClient(o.HTTP),
		option.WithMaxRetries(0),
		option.WithoutOpenTelemetry(),
		option.WithAPIKey(o.Key),
	}
	for name, value := range o.Headers {
		options = append(options, option.WithHeader(name, value))
	}
	// The services are made without NewClient, which would read the process's
	// environment and its configuration files.
	return &Client{
		messages: sdk.NewMessageService(options...),
		models:   sdk.NewModelService(options...),
	}
}

// Models returns the names of the models the server offers.
func (c *Client) Models(ctx context.Context) ([]string, error) {
	page, err := c.models.List(ctx, sdk.ModelListParams{})
	if err != nil {
		return nil, failure(err)
	}
	var names []string
	for _, model := range page.Data {
		names = append(names, model.ID)
	}
	return names, nil
}

// failure turns an error of the SDK into ours. The SDK reports an error event
// inside a stream as an error with the status of the stream, 200.
func failure(err error) *wire.Failure {
	if own, ok := errors.AsType[*wire.Failure](err); ok { // of our middleware
		return own
	}
	api, ok := errors.AsType[*sdk.Error](err)
	if !ok {
		return &wire.Failure{Kind: wire.Transport, Err: err}
	}
	f := &wire.Failure{Kind: wire.Status, Status: api.StatusCode, Type: string(api.Type())}
	// Errors inside a stream carry the status the stream began with.
	if api.StatusCode < 300 {
		f.Kind = wire.Event
	}
	if api.Response != nil {
		f.Header = api.Response.Header
	}
	var body struct {
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal([]byte(api.RawJSON()), &body) == nil {
		f.Message = body.Error.Message
		if f.Type == "" {
			f.Type = body.Error.Type
		}
	}
	if f.Message == "" {
		f.Message = clip(api.RawJSON())
	}
	return f
}

// clip bounds the text of an error; a gateway may answer with a whole page.
func clip(text string) string {
	const most = 500
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}
