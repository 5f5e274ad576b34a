package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

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
	chat   sdk.ChatCompletionService
	models sdk.ModelService
}

// New returns a client. It makes no request.
func New(o Options) *Client {
	options := []option.RequestOption{
		option.WithBaseURL(o.BaseURL),
		option.WithHTTPClient(o.HTTP),
		option.WithMaxRetries(0),
	}
	if o.Key != "" {
		options = append(options, option.WithAPIKey(o.Key))
	}
	for name, value := range o.Headers {
		options = append(options, option.WithHeader(name, value))
	}
	// The services are made without NewClient, which would read the process's
	// environment.
	return &Client{
		chat:   sdk.NewChatCompletionService(options...),
		models: sdk.NewModelService(options...),
	}
}

// Models returns the names of the models the server offers.
func (c *Client) Models(ctx context.Context) ([]string, error) {
	page, err := c.models.List(ctx)
	if err != nil {
		return nil, failure(err)
	}
	var names []string
	for _, model := range page.Data {
		names = append(names, model.ID)
	}
	return names, nil
}

// failure turns an error of the SDK into ours.
func failure(err error) error {
	if own, ok := errors.AsType[*wire.Failure](err); ok { // of our middleware
		return own
	}
	if api, ok := errors.AsType[*sdk.Error](err); ok {
		f := &wire.Failure{
			Kind: wire.Status, Status: api.StatusCode,
			Type: api.Type, Code: api.Code, Message: api.Message,
		}
		if api.Response != nil {
			f.Header = api.Response.Header
		}
		if f.Message == "" {
			f.Message = plainMessage(cmp.Or(api.RawJSON(), textOf(api.Response)))
		}
		return f
	}
	return &wire.Failure{Kind: wire.Transport, Err: err}
}

// textOf returns the beginning of a body that is no JSON. The SDK has read it and
// put it back.
func textOf(response *http.Response) string {
	if response == nil || response.Body == nil {
		return ""
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	if err != nil || !utf8.Valid(text) {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// plainMessage reads the error bodies of servers that do not nest it as OpenAI
// does: {"error": "text"}, {"message": "text"}, {"detail": ...}.
func plainMessage(body string) string {
	var fields map[string]any
	if json.Unmarshal([]byte(body), &fields) != nil {
		return clip(body)
	}
	for _, name := range []string{"message", "error", "detail"} {
		if text, ok := fields[name].(string); ok {
			return clip(text)
		}
	}
	return clip(body)
}

// clip bounds the text of an error; a gateway may answer with a whole page.
func clip(text string) string {
	const most = 500
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}
