package egress

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// follow makes the request and goes where redirects lead, as far as the grant
// goes. The response's body is open.
func (c *Client) follow(ctx context.Context, allowed *allowance, r *request) (*http.Response, error) {
	asked, first := r.to, r
	if !allowed.allows(r.to) {
		return nil, notGranted(r.to)
	}
	for hops := 0; ; hops++ {
		response, err := c.send(ctx, allowed, r)
		if err != nil {
			return nil, err
		}
		location := response.Header.Get("Location")
		if !redirects(response.StatusCode) || location == "" || allowed.own && r.redirects == 0 {
			return response, nil
		}
		response.Body.Close() // unread: what a redirect says beside is of no use
		first.redirected = true
		if hops >= r.redirects {
			return nil, refuse(abi.Limit, fmt.Sprintf("fetch %q: more than %d redirects", asked, r.redirects), "")
		}
		if r, err = c.redirect(r, allowed, asked, response.StatusCode, location); err != nil {
			return nil, err
		}
	}
}

// redirects reports whether a status sends the client on. 300 and 304 have
// a Location now and then, and do not.
func redirects(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// redirect returns the request that a redirect asks for. asked is the host
// that the guest named first.
func (c *Client) redirect(r *request, allowed *allowance, asked authority, status int, location string) (*request, error) {
	u, to, err := target(r.url, location)
	if err != nil {
		return nil, refuse(abi.Denied, fmt.Sprintf("fetch %q: it redirects to a URL that is not http or https with a host", asked), "url")
	}
	switch {
	case !allowed.allows(to) && to.ip.IsValid():
		// Not named: a server's redirect may tell a network's addresses.
		return nil, refuse(abi.Denied, fmt.Sprintf("fetch %q: it redirects to an IP address that is not among the hosts granted for %q", asked, abi.UseHTTP), "url")
	case !allowed.allows(to):
		e := notGranted(to)
		e.Message = fmt.Sprintf("fetch %q: it redirects to %q, which is not among the hosts granted for %q", asked, to, abi.UseHTTP)
		return nil, e
	case r.to.scheme == "https" && to.scheme == "http":
		return nil, refuse(abi.Denied, fmt.Sprintf("fetch %q: it redirects from https to http", asked), "url")
	}
	next := *r
	next.url, next.to, next.header = u, to, r.header.Clone()
	if to != r.to {
		next.header = forOthers(next.header)
	}
	// What browsers do: only POST turns into GET at 301 and 302.
	post := r.method == http.MethodPost && (status == http.StatusMovedPermanently || status == http.StatusFound)
	if post || status == http.StatusSeeOther && r.method != http.MethodHead {
		next.method, next.body, next.bodySecrets = http.MethodGet, "", false
		next.header.Del("Idempotency-Key")
		for _, name := range ofBody {
			next.header.Del(name)
		}
	}
	if to == r.to {
		return &next, nil
	}
	// A server that received a secret could forward it in the URL of the redirect.
	if said := u.String(); string(c.opt.Secrets.Hide([]byte(said), false)) != said {
		return nil, refuse(abi.Denied, fmt.Sprintf("fetch %q: it redirects to another host with a secret in the address", asked), "url")
	}
	if err := next.withoutSecrets(); err != nil {
		return nil, refuse(abi.Denied, fmt.Sprintf("fetch %q: it redirects to another host %v", asked, err), "url")
	}
	return &next, nil
}

// send makes one request without following redirects. It denies a secret that is
// not granted for the host before it connects.
func (c *Client) send(ctx context.Context, allowed *allowance, r *request) (*http.Response, error) {
	// Values and grants are read again for each hop: a grant is for secret and host.
	values := map[string]string{}
	for _, name := range r.names() {
		if err := allowed.mayCarry(name, r.to); err != nil {
			return nil, err
		}
		value, err := c.opt.Secrets.Value(name)
		if err != nil {
			return nil, err
		}
		values[name] = value
	}
	w, err := r.filled(func(name string) (string, error) { return values[name], nil })
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, r.method, r.url.String(), strings.NewReader(w.body))
	if err != nil {
		return nil, err
	}
	req.URL, req.Header = w.url, w.header
	if r.method != http.MethodHead && req.Header.Get("Range") == "" {
		req.Header.Set("Accept-Encoding", "gzip") // a range of something compressed cannot be read
	}
	response, err := allowed.reachOf(c, r.to).transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusSwitchingProtocols {
		response.Body.Close() // it is the connection now
		return nil, errProtocol
	}
	return response, nil
}
