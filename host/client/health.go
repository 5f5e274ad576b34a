package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Health asks how the server is, in one word, "ok" if it is well. A server that
// says it is not is the error unavailable beside its word; whether one answers
// at all needs no token.
func (c *Client) Health(ctx context.Context) (string, error) {
	r := request{path: []string{"health"}}
	req, err := c.make(ctx, r)
	if err != nil {
		return "", fmt.Errorf("request %q: %w", c.what(r), err)
	}
	// Not through do: a 503 is an answer here.
	res, err := c.http.Do(req)
	if err != nil {
		return "", c.connectionError(ctx, r, err)
	}
	defer res.Body.Close()
	body, err := readAll(res.Body)
	if err != nil {
		return "", c.connectionError(ctx, r, err)
	}
	var said struct {
		Status string `json:"status"`
	}
	// Whatever else listens there has no such word.
	if err := json.Unmarshal(body, &said); err != nil || said.Status == "" {
		return "", errors.Join(&abi.Error{Code: abi.Unavailable, Message: fmt.Sprintf("health of %s: what answers, with status %d, is no sentinel server", c.base.Host, res.StatusCode)}, err)
	}
	if res.StatusCode != http.StatusOK {
		return said.Status, &abi.Error{Code: abi.Unavailable, Message: fmt.Sprintf("the server at %s is %s", c.base.Host, said.Status),
			Hint: "its log says why"}
	}
	return said.Status, nil
}
