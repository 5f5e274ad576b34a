package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/httpproblem"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// ErrNobody is returned by [Dial] when no process answers for a state folder.
var ErrNobody = errors.New("no process answers for the store")

// maxAnswer bounds what one answer may hold, in bytes.
const maxAnswer = 256 << 20

// dialTimeout bounds how long a process may take to accept; one that is alive
// does at once.
const dialTimeout = 2 * time.Second

// A Client asks the process that has a store. It is safe for concurrent use.
type Client struct {
	http *http.Client
}

// Transport returns a transport whose every connection goes to the process that
// has the store of a state folder, whatever host a request names.
func Transport(state string) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			address, release, err := socketAddress(state)
			if err != nil {
				return nil, err
			}
			defer release()
			d := net.Dialer{Timeout: dialTimeout}
			return d.DialContext(ctx, "unix", address)
		},
		MaxIdleConnsPerHost: 2,
		IdleConnTimeout:     time.Minute,
	}
}

// Dial finds the process that has the store of a state folder, or returns
// [ErrNobody]. A socket that a dead process left behind is nobody.
func Dial(ctx context.Context, state string) (*Client, Info, error) {
	c := &Client{http: &http.Client{Transport: Transport(state)}}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var info Info
	if err := c.get(ctx, "/v1/owner", &info); err != nil {
		c.Close()
		return nil, Info{}, fmt.Errorf("%w in %q: %w", ErrNobody, state, err)
	}
	return c, info, nil
}

// Close lets go of the connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Info asks who has the store.
func (c *Client) Info(ctx context.Context) (Info, error) {
	var info Info
	err := c.get(ctx, "/v1/owner", &info)
	return info, err
}

// Commands asks what can be called, sorted by name.
func (c *Client) Commands(ctx context.Context) ([]Command, error) {
	var list []Command
	err := c.get(ctx, "/v1/commands", &list)
	return list, err
}

// Call carries out a command in the other process. Its errors are those of the
// command; a process that goes away meanwhile is the error unavailable. Ending
// ctx cancels the command.
func (c *Client) Call(ctx context.Context, name string, params json.RawMessage) (json.RawMessage, error) {
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	u := url.URL{Scheme: "http", Host: "sentinel", Path: "/v1/commands/" + name}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(params))
	if err != nil {
		return nil, fmt.Errorf("call %q: %w", name, err)
	}
	req.Header.Set("Content-Type", "application/json")
	return c.do(req)
}

func (c *Client) get(ctx context.Context, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://sentinel"+path, nil)
	if err != nil {
		return err
	}
	body, err := c.do(req)
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}

func (c *Client) do(req *http.Request) (json.RawMessage, error) {
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.lost(req, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return nil, c.lost(req, err)
	}
	if len(body) > maxAnswer {
		return nil, abi.New(abi.Limit, fmt.Sprintf("the answer has more than %d bytes", maxAnswer))
	}
	if res.StatusCode != http.StatusOK {
		return nil, httpproblem.Read("the process that has the store", res.StatusCode, res.Header.Get("Content-Type"), body)
	}
	return bytes.TrimSpace(body), nil
}

// lost says what a broken connection means to whoever asked.
func (c *Client) lost(req *http.Request, err error) error {
	if cause := context.Cause(req.Context()); cause != nil {
		return cause
	}
	return &abi.Error{Code: abi.Unavailable, Message: fmt.Sprintf("the process that has the store went away: %v", err),
		Hint: "look with `sentinel status` whether it was done, then try again"}
}
