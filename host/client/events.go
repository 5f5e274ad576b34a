package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Emit emits an event with any data and returns its id. A repetition with the
// same key is the same event; "" is no key.
func (c *Client) Emit(ctx context.Context, key, name string, data any) (id string, err error) {
	var out struct{ ID string }
	body := struct {
		Event string `json:"event"`
		Data  any    `json:"data,omitempty"`
	}{name, data}
	err = c.do(ctx, request{method: http.MethodPost, path: []string{"v1", "events"}, body: body, key: key}, &out)
	return out.ID, err
}

// Events returns the newest events that fit a pattern, "" for all, the newest
// last. limit 0 is the server's own.
func (c *Client) Events(ctx context.Context, pattern string, limit int) ([]sentinels.Event, error) {
	query := url.Values{}
	if pattern != "" {
		query.Set("pattern", pattern)
	}
	if limit != 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	var out struct{ Events []sentinels.Event }
	err := c.do(ctx, request{path: []string{"v1", "events"}, query: query}, &out)
	return out.Events, err
}
