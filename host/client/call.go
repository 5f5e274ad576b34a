package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/httpproblem"
	"github.com/sentinel-runtime/sentinel/host/principal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// maxAnswer bounds what one answer may hold, in bytes.
const maxAnswer = 256 << 20

// Call calls a command with params, any value that is a JSON object or nil, and
// decodes its result into the value that into points at, unless that is nil.
// Ending ctx cancels the command. A wait for the end of a run, sentinel/await,
// is repeated when it reaches the limit of one request.
func (c *Client) Call(ctx context.Context, name string, params, into any) error {
	return c.CallOnce(ctx, "", name, params, into)
}

// CallOnce is [Client.Call] with a key: a repetition with the same key acts no
// second time. A command that cannot promise that is an error; "" is no key.
func (c *Client) CallOnce(ctx context.Context, key, name string, params, into any) error {
	if params == nil {
		params = struct{}{}
	}
	call := func(params any) error {
		return c.do(ctx, request{method: http.MethodPost, path: append([]string{"v1", "commands"}, strings.Split(name, "/")...), body: params, key: key}, into)
	}
	if name == "sentinel/await" {
		return await(call, params)
	}
	return call(params)
}

// await repeats a call until the run has ended or the time of its parameters is
// over.
func await(call func(params any) error, params any) error {
	began := time.Now()
	err := call(params)
	if !again(err) {
		return err
	}
	text, bad := json.Marshal(params)
	if bad != nil {
		return bad
	}
	var wait struct{ TimeoutMs int64 }
	members := map[string]json.RawMessage{}
	if bad := errors.Join(json.Unmarshal(text, &wait), json.Unmarshal(text, &members)); bad != nil {
		return bad // the server has read them
	}
	for again(err) {
		if wait.TimeoutMs > 0 {
			left := wait.TimeoutMs - time.Since(began).Milliseconds()
			members["timeoutMs"] = strconv.AppendInt(nil, max(left, 1), 10)
		}
		err = call(members)
	}
	if abi.CodeOf(err) == abi.Timeout { // it names the time of the last request
		return &abi.Error{Code: abi.Timeout, Message: fmt.Sprintf("await: the run has not ended after %d ms", wait.TimeoutMs)}
	}
	return err
}

// again reports whether a wait has reached the limit of one request: the
// timeout of its parameters is not to be repeated.
func again(err error) bool {
	e := abi.As(err)
	return e != nil && e.Code == abi.Timeout && e.RetryAfterMs > 0
}

// A Command is what a server can be asked.
type Command struct {
	Name       string          `json:"name"`
	Summary    string          `json:"summary"`
	Input      json.RawMessage `json:"input"` // JSON Schema of the parameters
	Output     json.RawMessage `json:"output,omitempty"`
	Effect     string          `json:"effect"` // the most that a call does: reads, changes, executes, configures or decides
	ReadOnly   bool            `json:"readOnly"`
	Idempotent bool            `json:"idempotent"`
}

// Commands lists every command, sorted by name.
func (c *Client) Commands(ctx context.Context) ([]Command, error) {
	var list []Command
	err := c.do(ctx, request{path: []string{"v1", "commands"}}, &list)
	return list, err
}

// request is one request before it is made. The parts of path are escaped, so
// that no id can lead elsewhere.
type request struct {
	method   string // default GET
	path     []string
	query    url.Values
	body     any    // nil is none
	key      string // Idempotency-Key
	revision *int   // If-Match; 0 is whatever is there
}

func (c *Client) url(path []string, query url.Values) *url.URL {
	u := *c.base
	for _, part := range path {
		u.RawPath = u.EscapedPath() + "/" + url.PathEscape(part)
		u.Path += "/" + part
	}
	u.RawQuery = query.Encode()
	return &u
}

// make makes the request with everything that the server wants to see.
func (c *Client) make(ctx context.Context, r request) (*http.Request, error) {
	var body io.Reader
	if r.body != nil {
		text, err := json.Marshal(r.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	if r.method == "" {
		r.method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, r.method, c.url(r.path, r.query).String(), body)
	if err != nil {
		return nil, err
	}
	c.authorize(req.Header)
	if as := principal.From(ctx).Header(); as != "" {
		req.Header.Set(principal.Header, as)
	}
	if r.method != http.MethodGet {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.key != "" {
		req.Header.Set("Idempotency-Key", r.key)
	}
	switch {
	case r.revision == nil:
	case *r.revision == 0:
		req.Header.Set("If-Match", "*")
	default:
		req.Header.Set("If-Match", strconv.Quote(strconv.Itoa(*r.revision)))
	}
	return req, nil
}

func (c *Client) authorize(h http.Header) {
	if c.token != "" {
		h.Set("Authorization", "Bearer "+c.token)
	}
}

// do makes a request and decodes the answer into what into points at, unless
// that is nil.
func (c *Client) do(ctx context.Context, r request, into any) error {
	res, err := c.send(ctx, r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := readAll(res.Body)
	if err != nil {
		return c.connectionError(ctx, r, err)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("read answer of %q: %w", c.what(r), err)
	}
	return nil
}

// send makes a request and returns a successful response; the caller
// closes its body.
func (c *Client) send(ctx context.Context, r request) (*http.Response, error) {
	req, err := c.make(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("request %q: %w", c.what(r), err)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.connectionError(ctx, r, err)
	}
	if res.StatusCode/100 == 2 {
		return res, nil
	}
	defer res.Body.Close()
	body, err := readAll(res.Body)
	if err != nil {
		return nil, c.connectionError(ctx, r, err)
	}
	return nil, httpproblem.Read(c.server, res.StatusCode, res.Header.Get("Content-Type"), body)
}

// stream makes a request and returns the body of its answer, which the caller closes.
func (c *Client) stream(ctx context.Context, r request) (io.ReadCloser, error) {
	res, err := c.send(ctx, r)
	if err != nil {
		return nil, err
	}
	return &streamed{res.Body, func(err error) error { return c.connectionError(ctx, r, err) }}, nil
}

// streamed is the body of an answer. Its errors are those of the request.
type streamed struct {
	io.ReadCloser
	broken func(error) error
}

func (s *streamed) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = s.broken(err)
	}
	return n, err
}

func readAll(r io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = abi.New(abi.Limit, fmt.Sprintf("the answer has more than %d bytes", maxAnswer))
	}
	return body, err
}

// what names a request in errors, without its query.
func (c *Client) what(r request) string {
	if r.method == "" {
		r.method = http.MethodGet
	}
	return r.method + " " + c.url(r.path, nil).Path
}

// connectionError returns the error of a request whose connection broke.
func (c *Client) connectionError(ctx context.Context, r request, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("request %q: %w", c.what(r), context.Cause(ctx))
	}
	if abi.As(err) != nil {
		return err
	}
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err // the rest names the request again, with its query
	}
	return &abi.Error{Code: abi.Unavailable, Message: fmt.Sprintf("request %q: no answer from %s: %v", c.what(r), c.server, err),
		Hint: "check whether the server runs, and whether the request was executed, then retry"}
}
