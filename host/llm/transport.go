package llm

import (
	"errors"
	"io"
	"net/http"
)

// Most bytes that are read of a response, after decompression. The SDKs read
// error bodies whole, and a stream of empty events has no other end.
const (
	maxErrorBody = 1 << 20
	maxBody      = 256 << 20
)

// newClient is base, or a new client, without redirects and with bounded
// responses. own is the transport if it was made here.
func newClient(base *http.Client) (client *http.Client, own *http.Transport) {
	c := http.Client{}
	if base != nil {
		c = *base
	}
	if c.Transport == nil {
		c.Transport = http.DefaultTransport
		if usual, ok := http.DefaultTransport.(*http.Transport); ok {
			own = usual.Clone()
			c.Transport = own
		}
	}
	c.Transport = bounded{c.Transport}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c, own
}

// bounded limits the bodies of responses.
type bounded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	most := int64(maxBody)
	cut := errTooLong
	if response.StatusCode >= 300 {
		most, cut = maxErrorBody, io.EOF // the start of an error says enough
	}
	response.Body = &boundedBody{response.Body, most, cut}
	return response, nil
}

var errTooLong = errors.New("the response is too long")

type boundedBody struct {
	io.ReadCloser
	left int64
	cut  error // what a reader gets beyond the limit
}

// Read reads on as long as something is left.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, b.cut
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
