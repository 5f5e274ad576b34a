package egress

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Fetch is a request of the host's own, for a step or a command. It may go to any host, under
// the rules of plugins for addresses, and of redirects for headers. Its texts have no
// placeholders: the values of secrets are in Header already.
type Fetch struct {
	Method string
	URL    string
	Header map[string]string
	Body   string
	// Secret says that Header has values of secrets. No redirect to another host has them.
	Secret bool
	// Private are the hosts that may have addresses of private networks and loopback, as in
	// [Call.Hosts]; the port "*" is any.
	Private   []string
	Redirects int           // how many are followed; with 0 a redirect is the answer
	Timeout   time.Duration // required
	MaxBody   int           // bytes of the body, after decompression; more is the error limit
}

// A Fetched is the answer to a [Fetch], without the secrets that the server may have repeated.
type Fetched struct {
	Status int
	Header map[string]string // names in lower case; values of the same name are joined
	Body   []byte
	URL    string // that answered, behind the redirects
}

// Fetch makes a request. Its errors are as those of [Client.Do].
func (c *Client) Fetch(ctx context.Context, f Fetch) (*Fetched, error) {
	private, err := parsePrivate(f.Private)
	if err != nil {
		return nil, err
	}
	r, err := f.request()
	if err != nil {
		return nil, withoutFunction(err)
	}
	if r.header.Get("User-Agent") == "" {
		r.header.Set("User-Agent", c.opt.UserAgent)
	}
	var out *Fetched
	allowed := &allowance{own: true, hosts: private, reach: &c.public}
	err = c.exchange(ctx, allowed, r, func(response *http.Response, body []byte, cut bool) error {
		if cut {
			e := refuse(abi.Limit, fmt.Sprintf("fetch %q: the answer has more than %d MiB", r.to, f.MaxBody>>20), "")
			e.Hint = "ask for a part of it, or store it in a file with a program: curl -o FILE in a step of type shell"
			return e
		}
		out = &Fetched{
			Status: response.StatusCode, Header: c.headerTexts(response.Header), Body: c.opt.Secrets.Hide(body, false),
			URL: string(c.opt.Secrets.Hide([]byte(response.Request.URL.String()), false)),
		}
		return nil
	})
	if err != nil {
		return nil, withoutFunction(c.cleaned(err))
	}
	return out, nil
}

// request reads the request as that of a plugin is read.
func (f Fetch) request() (*request, error) {
	r := &request{
		header: http.Header{}, body: f.Body, secret: f.Secret, timeout: f.Timeout, redirects: f.Redirects, maxBody: f.MaxBody,
		hint: "it, or a host that it redirects to, is this machine or in a private network; " +
			"the setting http.private allows that: SENTINEL_HTTP_PRIVATE=HOST:PORT",
	}
	size := 0
	for name, value := range f.Header {
		canonical := http.CanonicalHeaderKey(name)
		if err := checkHeader(name, value); err != nil {
			return nil, bad("headers."+name, err.Error())
		}
		if r.header[canonical] != nil {
			return nil, bad("headers."+name, "duplicate header")
		}
		r.header[canonical] = []string{strings.Trim(value, " \t")}
		size += len(name) + len(value)
	}
	if len(f.Header) > maxHeaders || size > maxHeaderBytes {
		return nil, bad("headers", fmt.Sprintf("more than %d headers, or than %d KiB", maxHeaders, maxHeaderBytes>>10))
	}
	var err error
	if r.method = f.Method; !knownMethod(f.Method) {
		return nil, bad("method", fmt.Sprintf("%.20q is none of %s", f.Method, strings.Join(methods, ", ")))
	}
	if f.Body != "" && bodiless(f.Method) {
		return nil, bad("body", "a "+f.Method+" has none")
	}
	r.url, r.to, err = target(nil, f.URL)
	return r, err
}

// withoutFunction removes the name of the host function from the messages about a request.
func withoutFunction(err error) error {
	if e := abi.As(err); e != nil {
		e.Message = strings.TrimPrefix(e.Message, abi.FuncHTTP+" ")
	}
	return err
}

// CheckPrivate returns why an entry of [Fetch.Private] cannot be read, nil if it can.
func CheckPrivate(entry string) error {
	_, err := parsePrivate([]string{entry})
	return err
}

// Listed reports whether a list of hosts, as [Fetch.Private], has that of a URL.
func Listed(hosts []string, address string) bool {
	list, err := parsePrivate(hosts)
	if err != nil {
		return false
	}
	_, to, err := target(nil, address)
	return err == nil && list.allows(to)
}

// Unlisted reports whether a URL leads to this machine or a private address as it is written, without
// a look-up, so that a [Fetch] of it fails for hosts that are not in the list.
func Unlisted(hosts []string, address string) (host string, unlisted bool) {
	list, err := parsePrivate(hosts)
	if err != nil {
		return "", false
	}
	_, to, err := target(nil, address)
	switch {
	case err != nil:
		return "", false
	case to.ip.IsValid():
		return to.String(), !reachable(to.ip, nil) && !(list.allows(to) && inside(to.ip))
	}
	return to.String(), (to.name == "localhost" || strings.HasSuffix(to.name, ".localhost")) && !list.allows(to)
}

// Never reports whether a URL has an address that no list makes reachable.
func Never(address string) bool {
	_, to, err := target(nil, address)
	return err == nil && to.ip.IsValid() && !reachable(to.ip, nil) && !inside(to.ip)
}

// parsePrivate reads the entries of [Fetch.Private].
func parsePrivate(hosts []string) (grant, error) {
	list := make(grant, len(hosts))
	for i, entry := range hosts {
		host, anyPort := strings.CutSuffix(entry, ":*")
		g, err := parseEntry(host)
		if err != nil {
			e := refuse(abi.BadFields, fmt.Sprintf("host %.100q: %v", entry, err), "")
			e.Hint = `write "localhost:3000", "localhost:*", "10.0.0.7:8443" or "*.example.com"`
			return nil, e
		}
		g.anyPort = anyPort
		list[i] = g
	}
	return list, nil
}
