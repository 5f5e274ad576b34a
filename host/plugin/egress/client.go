package egress

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"syscall"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Client makes HTTP requests, each within the grants passed with it.
//
// # Concurrency
//
// Safe for concurrent use. It keeps no connections open and needs no Close.
type Client struct {
	opt             Options
	public, private reach
}

// New returns a client.
func New(opt Options) *Client {
	opt = opt.withDefaults()
	opt.AllowPrivate = slices.Clone(opt.AllowPrivate)
	return &Client{opt: opt, public: newReach(opt, false), private: newReach(opt, true)}
}

// errTime is the cause of a request that exceeded its own timeout.
var errTime = errors.New("the request's time is over")

// Do makes the request of clause A6.13 and returns the response. Its errors wrap an
// *[abi.Error] and, when ctx has ended, the cause of ctx. Secrets are redacted from
// both.
func (c *Client) Do(ctx context.Context, call Call) (json.RawMessage, error) {
	allowed, err := c.allowance(call)
	if err != nil {
		return nil, err
	}
	req, err := decode(call.Request)
	if err != nil {
		return nil, err
	}
	if req.timeout == 0 {
		req.timeout = c.opt.Timeout
	}
	if req.header.Get("User-Agent") == "" {
		req.header.Set("User-Agent", c.opt.UserAgent)
	}
	if unsafe(req.method) && req.header.Get("Idempotency-Key") == "" && call.Key != "" {
		req.header.Set("Idempotency-Key", call.Key)
	}
	// An earlier request may have left a secret with the server that this one
	// asks, before this process knew its value.
	c.opt.Secrets.Learn(slices.Sorted(maps.Keys(call.Secrets))...)
	req.redirects, req.maxBody, req.hint = max(c.opt.MaxRedirects, 0), c.opt.MaxBody, grantHint
	var out json.RawMessage
	err = c.exchange(ctx, allowed, req, func(response *http.Response, body []byte, cut bool) (err error) {
		out, err = c.answer(response, body, cut)
		return err
	})
	if err != nil {
		return nil, c.cleaned(err)
	}
	return out, nil
}

// grantHint is the hint for a plugin whose hosts have private addresses.
const grantHint = "a name in a grant gives no access to private addresses; sentinel plugin allow NAME --private does"

// exchange makes a request and calls use with the answer; cut says that the body is longer.
func (c *Client) exchange(ctx context.Context, allowed *allowance, req *request, use func(response *http.Response, body []byte, cut bool) error) error {
	limited, cancel := context.WithTimeoutCause(ctx, req.timeout, errTime)
	defer cancel()
	// limited is over when the whole request is, redirects and body with it;
	// ctx alone when the step is. failure tells the two apart.
	asked := req.to.String() // errors name what the guest named, wherever a redirect led
	response, err := c.follow(limited, allowed, req)
	if err != nil {
		failed := failure(ctx, limited, asked, req, err)
		if errno := outOfFiles(err); errno != nil && (!req.redirected || !unsafe(req.method)) {
			// Nothing was done that must not be done twice, so the engine asks again.
			return fmt.Errorf("%w: %w", failed, errno)
		}
		return failed
	}
	defer response.Body.Close()
	b, cut, err := read(response, req.maxBody)
	if err == nil && (len(req.places) > 0 || req.secret) && response.Header.Get("Content-Encoding") != "" {
		err = errCoding
	}
	if err == nil {
		err = use(response, b, cut)
	}
	if err != nil {
		return failure(ctx, limited, asked, req, err)
	}
	return nil
}

// outOfFiles returns the errno of a connection that could not be opened because
// no file descriptor was left, nil for every other error.
func outOfFiles(err error) error {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, errno) {
			return errno
		}
	}
	return nil
}

// cleaned redacts secrets from an error. No error of this package has one; this is
// defense in depth.
func (c *Client) cleaned(err error) error {
	if e := abi.As(err); e != nil {
		e.Message = string(c.opt.Secrets.Hide([]byte(e.Message), false))
		e.Hint = string(c.opt.Secrets.Hide([]byte(e.Hint), false))
	}
	return err
}

// refuse returns a permanent error. field is the field of the request, or empty.
func refuse(code abi.Code, message, field string) *abi.Error {
	return &abi.Error{Code: code, Message: message, Field: field, Permanent: true}
}
