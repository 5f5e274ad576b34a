package llm

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// Most bytes that are read of a response, after decompression. The SDKs read
// error bodies whole, and a stream of empty events has no other end.
const (
	maxErrorBody = 1 << 20
	maxBody      = 256 << 20
)

// newClient is base, or a new client, without redirects and with bounded
// responses. own is the transport if it was made here.
func newClient(base *http.Client, proxy proxyFunc) (client *http.Client, own *http.Transport) {
	c := http.Client{}
	if base != nil {
		c = *base
	}
	if c.Transport == nil {
		c.Transport = http.DefaultTransport
		if usual, ok := http.DefaultTransport.(*http.Transport); ok {
			own = usual.Clone()
			own.Proxy = func(r *http.Request) (*url.URL, error) { return proxy(r.URL) }
			c.Transport = own
		}
	}
	c.Transport = bounded{c.Transport}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c, own
}

// proxyFunc returns the proxy for an address, nil for none.
type proxyFunc func(*url.URL) (*url.URL, error)

// proxyOf reads HTTP_PROXY, HTTPS_PROXY, NO_PROXY and, for what the first two leave out, ALL_PROXY,
// in capitals or small letters. net/http does not know the last one.
func proxyOf(env func(string) string) proxyFunc {
	either := func(name string) string { return cmp.Or(env(name), env(strings.ToLower(name))) }
	all := either("ALL_PROXY")
	config := httpproxy.Config{
		HTTPProxy: cmp.Or(either("HTTP_PROXY"), all), HTTPSProxy: cmp.Or(either("HTTPS_PROXY"), all), NoProxy: either("NO_PROXY"),
	}
	return config.ProxyFunc()
}

// throughProxy returns the hint for a request that got no answer and went through a proxy, ""
// if it did not.
func (m *Models) throughProxy(base string) string {
	address, err := url.Parse(base)
	if m.own == nil || err != nil {
		return ""
	}
	proxy, err := m.proxy(address)
	if err != nil || proxy == nil {
		return ""
	}
	return fmt.Sprintf("requests to %s go through the proxy %s, which HTTP_PROXY, HTTPS_PROXY or ALL_PROXY names: is it running? "+
		"NO_PROXY=%s goes without it", address.Host, proxy.Host, address.Hostname())
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
