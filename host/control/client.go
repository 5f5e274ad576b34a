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

// ErrNoOwner is returned by [Dial] when no process answers for a state folder.
var ErrNoOwner = errors.New("no process answers for the store")

// maxResponse bounds the body of a response, in bytes.
const maxResponse = 256 << 20

// dialTimeout bounds a connection attempt and the first request of [Dial]. An
// owner that is alive answers both at once.
const dialTimeout = 2 * time.Second

// A Client sends requests to the owner of a store. It is safe for concurrent use.
type Client struct {
	http *http.Client
}

// Transport returns a transport that connects to the control socket in the
// folder state, whichever host a request names.
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

// Dial connects to the owner of the store in the folder state. It returns
// [ErrNoOwner] if no process answers, also when a dead process left its socket
// file behind.
func Dial(ctx context.Context, state string) (*Client, Info, error) {
	c := &Client{http: &http.Client{Transport: Transport(state)}}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var info Info
	if err := c.get(ctx, "/v1/owner", &info); err != nil {
		c.Close()
		return nil, Info{}, fmt.Errorf("%w in %q: %w", ErrNoOwner, state, err)
	}
	return c, info, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Info describes the owner.
func (c *Client) Info(ctx context.Context) (Info, error) {
	var info Info
	err := c.get(ctx, "/v1/owner", &info)
	return info, err
}

// Commands lists the owner's commands, sorted by name.
func (c *Client) Commands(ctx context.Context) ([]Command, error) {
	var list []Command
	err := c.get(ctx, "/v1/commands", &list)
	return list, err
}

// Call executes a command in the owner and returns its result. Errors are those
// of the command, or unavailable if the connection broke. Canceling ctx cancels
// the command.
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
		return nil, c.connectionError(req, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxResponse+1))
	if err != nil {
		return nil, c.connectionError(req, err)
	}
	if len(body) > maxResponse {
		return nil, abi.New(abi.Limit, fmt.Sprintf("the response has more than %d bytes", maxResponse))
	}
	if res.StatusCode != http.StatusOK {
		return nil, httpproblem.Read("the process that has the store", res.StatusCode, res.Header.Get("Content-Type"), body)
	}
	return bytes.TrimSpace(body), nil
}

// connectionError returns the error of a request whose connection broke: the
// cause of the request's context if that has ended, otherwise unavailable.
func (c *Client) connectionError(req *http.Request, err error) error {
	if cause := context.Cause(req.Context()); cause != nil {
		return cause
	}
	return &abi.Error{Code: abi.Unavailable, Message: fmt.Sprintf("lost the connection to the process that has the store: %v", err),
		Hint: "check with `sentinel status` whether the command was executed, then retry"}
}
