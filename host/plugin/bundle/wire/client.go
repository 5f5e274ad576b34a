package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/endpoint"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Options configure a client. The zero value works.
type Options struct {
	// Plain allows http, to this machine alone. Default: https only.
	Plain bool
	// Stall is how long a server may send nothing. Default 30 s.
	Stall time.Duration
	// TLS replaces the system's certificates, for tests. Default: the system's.
	TLS *tls.Config
	// Agent is the User-Agent. Default "sentinel".
	Agent string
}

// maxRedirects is how often a server may send us elsewhere.
const maxRedirects = 5

// Client returns a client that holds every hop to the rules. Close its idle
// connections when done. Time in all is the context's to bound.
func Client(opt Options) *http.Client {
	if opt.Stall <= 0 {
		opt.Stall = 30 * time.Second
	}
	if opt.Agent == "" {
		opt.Agent = "sentinel"
	}
	// One transport each for https and for http, so that what the latter may reach
	// is not a question of the moment at which a connection is reused.
	base := func() *http.Transport {
		return &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: opt.TLS, TLSHandshakeTimeout: opt.Stall, ForceAttemptHTTP2: true,
			ResponseHeaderTimeout: opt.Stall, IdleConnTimeout: opt.Stall, MaxResponseHeaderBytes: 256 << 10,
			DialContext:        (&net.Dialer{Timeout: opt.Stall}).DialContext,
			DisableCompression: true, // a small answer must not become a large one here
		}
	}
	plain := base()
	plain.Proxy = nil // a proxy could not know what "this machine" is
	// The name is checked before, the address is checked here: a name may mean any.
	plain.DialContext = (&net.Dialer{Timeout: opt.Stall, Control: func(_, address string, _ syscall.RawConn) error {
		if !endpoint.IsThisMachine(address) {
			return denied("", "%s is not this machine", address)
		}
		return nil
	}}).DialContext
	return &http.Client{
		Transport: &guard{opt: opt, secure: base(), plain: plain},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return denied("name the place where the plugin really is", "more than %d redirects", maxRedirects)
			}
			// A redirect could send a request to a server that means something else by it.
			if r.URL.User != nil {
				return denied("", "a redirect with credentials in it")
			}
			if via[0].URL.Scheme == "https" && r.URL.Scheme != "https" {
				return denied("", "a redirect from https to %s", r.URL.Scheme)
			}
			return nil
		},
	}
}

// A guard is asked for every hop, those of redirects and of token servers too.
type guard struct {
	opt           Options
	secure, plain *http.Transport
}

// CloseIdleConnections is what [http.Client] calls for its own method.
func (g *guard) CloseIdleConnections() {
	g.secure.CloseIdleConnections()
	g.plain.CloseIdleConnections()
}

// RoundTrip makes one hop, or refuses it before anything is sent. The answer's body
// is watched until it is closed, and with it the request ends.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	transport := g.secure
	switch r.URL.Scheme {
	case "https":
	case "http":
		if !g.opt.Plain {
			return nil, denied("use https; plain http goes to this machine alone, and only when you say so", "http to %s", r.URL.Host)
		}
		if !endpoint.ThisMachine(r.URL.Hostname()) {
			return nil, denied("use https", "http to %s, which is not this machine", r.URL.Host)
		}
		transport = g.plain
	default:
		return nil, denied("use https", "scheme %q", r.URL.Scheme)
	}
	// A RoundTripper must not change the request, so a copy is changed.
	ctx, cancel := context.WithCancelCause(r.Context())
	r = r.Clone(ctx)
	r.Header.Set("User-Agent", g.opt.Agent)
	resp, err := transport.RoundTrip(r)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	resp.Body = watch(resp.Body, g.opt.Stall, cancel)
	return resp, nil
}

// Explain turns what a client returns into an error for people: with a code, and
// without the address, which may hold credentials in its name or its query.
func Explain(err error) error {
	if err == nil {
		return nil
	}
	if e := abi.As(err); e != nil {
		return e
	}
	// Its text begins with the address as it was asked, query and all.
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err
	}
	var timeout net.Error
	switch {
	case errors.Is(err, errStalled), errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return &abi.Error{Code: abi.Timeout, Message: "the server does not answer in time"}
	case errors.Is(err, context.Canceled):
		return err
	}
	return &abi.Error{Code: abi.Unavailable, Message: err.Error()}
}

// Shown is an address without its private parts: credentials, the query,
// in which a storage service has its signature, and the fragment.
func Shown(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}

// denied is the error of a violated rule, which is permanent.
func denied(hint, format string, args ...any) error {
	return &abi.Error{Code: abi.Denied, Permanent: true, Message: fmt.Sprintf(format, args...), Hint: hint}
}
