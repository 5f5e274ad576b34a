package fetch

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Client makes requests within the hosts it is told with each.
//
// # Concurrency
//
// Safe for concurrent use. It holds no connections and needs no Close.
type Client struct {
	opt       Options
	transport *http.Transport
}

// New returns a client.
func New(opt Options) *Client {
	opt = opt.withDefaults()
	opt.AllowPrivate = slices.Clone(opt.AllowPrivate)
	c := &Client{opt: opt}
	if c.opt.Dial == nil {
		c.opt.Dial = c.dialer().DialContext
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	c.transport = &http.Transport{
		Proxy:                  nil, // an environment must not choose where a plugin's request goes
		DialContext:            c.dial,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    10 * time.Second,
		DisableKeepAlives:      true,
		DisableCompression:     true, // body.go decompresses, and watches the ratio
		MaxResponseHeaderBytes: maxHeader,
		Protocols:              protocols,
	}
	return c
}

// errTime is the cause of a request's end at its own time limit.
var errTime = errors.New("the request's time is over")

// Do makes the request of clause A6.13 and returns its answer. hosts is the
// grant. Its errors have an *[abi.Error]; when ctx ended, errors.Is also finds
// the cause of that.
func (c *Client) Do(ctx context.Context, hosts []string, request json.RawMessage) (json.RawMessage, error) {
	granted, err := parseGrant(hosts)
	if err != nil {
		return nil, err
	}
	req, err := decode(request)
	if err != nil {
		return nil, err
	}
	if req.timeout == 0 {
		req.timeout = c.opt.Timeout
	}
	if req.header.Get("User-Agent") == "" {
		req.header.Set("User-Agent", c.opt.UserAgent)
	}
	limited, cancel := context.WithTimeoutCause(ctx, req.timeout, errTime)
	defer cancel()
	// limited is over when the whole request is, redirects and body with it;
	// ctx alone when the step is. failure tells the two apart.
	asked := req.to.String() // errors name what the guest named, wherever a redirect led
	response, err := c.follow(limited, granted, req)
	if err != nil {
		return nil, failure(ctx, limited, asked, req.timeout, err)
	}
	defer response.Body.Close()
	b, cut, err := c.read(response)
	if err != nil {
		return nil, failure(ctx, limited, asked, req.timeout, err)
	}
	out, err := answer(response, b, cut)
	if err != nil {
		return nil, failure(ctx, limited, asked, req.timeout, err)
	}
	return out, nil
}

// CheckHosts reports the first entry that cannot be part of a grant, as the
// error that every request under such a grant ends with.
func CheckHosts(hosts []string) error {
	_, err := parseGrant(hosts)
	return err
}

// refuse makes an error that another try cannot mend. field is the request's,
// or empty.
func refuse(code abi.Code, message, field string) *abi.Error {
	return &abi.Error{Code: code, Message: message, Field: field, Permanent: true}
}
