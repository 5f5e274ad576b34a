package client

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/control"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// The environment variables that [FromEnv] reads.
const (
	EnvURL   = "SENTINEL_URL"
	EnvToken = "SENTINEL_TOKEN"
)

// DefaultURL is where a server listens if nothing else was said to it.
const DefaultURL = "http://127.0.0.1:8080"

// Options say where the server is.
type Options struct {
	// URL is the server's, also with a path if a proxy puts it below one.
	// Default [DefaultURL].
	URL string
	// Token is what `sentinel token` prints. Default none.
	Token string
	// HTTP carries the requests; its Timeout would also end what takes long and
	// the live feed. Redirects are not followed: they would take the token
	// along. Default: a client of its own.
	HTTP *http.Client
}

// A Client asks one server.
//
// # Concurrency
//
// Safe for concurrent use. It has no goroutines but those of calls under way.
type Client struct {
	base   *url.URL
	server string // in errors
	token  string
	http   *http.Client

	lastWords time.Duration // see [Client.Follow]
}

// New returns a client. It does not connect.
func New(opt Options) (*Client, error) {
	given := cmp.Or(opt.URL, DefaultURL)
	base, err := url.Parse(given)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "url", Message: fmt.Sprintf("new client: %q is no URL of a server", given),
			Hint: "write http://HOST:PORT or https://HOST"}
	}
	if strings.ContainsFunc(opt.Token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return nil, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "token", Message: "new client: the token has characters that no token has"}
	}
	base.Path = strings.TrimSuffix(base.Path, "/")
	carrier := &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
	if opt.HTTP != nil {
		own := *opt.HTTP
		carrier = &own
	}
	return newClient(base, "the server at "+base.Host, opt.Token, carrier), nil
}

// Local returns a client of the process that has the store of a state folder.
// It reads the token in that folder.
func Local(state string) *Client {
	return newClient(&url.URL{Scheme: "http", Host: "sentinel"}, "the process that has the store", "", &http.Client{Transport: control.Transport(state)})
}

// FromEnv returns the client that the environment names; ok is false if it
// names none.
func FromEnv(getenv func(string) string) (c *Client, ok bool, err error) {
	if getenv(EnvURL) == "" {
		return nil, false, nil
	}
	c, err = New(Options{URL: getenv(EnvURL), Token: getenv(EnvToken)})
	return c, err == nil, err
}

func newClient(base *url.URL, server, token string, carrier *http.Client) *Client {
	carrier.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{base: base, server: server, token: token, http: carrier, lastWords: lastWords}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// URL returns where the server is.
func (c *Client) URL() string { return c.base.String() }
