package api

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// allowHost adds a configured host to the allow-list.
func (a *API) allowHost(host string) error {
	// What a URL parser makes of it is what browsers make of it, and it must be
	// all of it: a path or a user hidden in a name is a mistake or worse.
	host = strings.ToLower(host)
	u, err := url.Parse("http://" + host)
	if err != nil || u.Host != host || u.Hostname() == "" || strings.ContainsAny(host, "*@") {
		return fmt.Errorf("allow host %q: is neither name nor name:port", host)
	}
	if a.hosts[host] = true; u.Port() == "" {
		a.names = append(a.names, host)
	}
	return nil
}

// checkHost is the first thing that happens to a request. A page whose name an
// attacker points at us looks like our own to the browser that shows it; its
// Host is the one thing that tells it apart (API.md, G2).
func (a *API) checkHost(r *http.Request) error {
	if a.knownHost(r, r.Host, r.TLS != nil) {
		return nil
	}
	return &abi.Error{
		Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("host %.100q is not one of this server", r.Host),
		Hint: "use localhost and its port, or allow the name where the server is started",
	}
}

// knownHost reports whether host, with its port, is exactly one of ours. The
// port of those that are always ours is the one the connection came in by.
func (a *API) knownHost(r *http.Request, host string, tls bool) bool {
	host = strings.ToLower(host)
	if a.hosts[host] {
		return true
	}
	// Without a connection, as in a handler that somebody calls by hand, only the
	// configured names are known.
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return false
	}
	names := a.names
	if !local.IP.IsUnspecified() {
		// An address cannot be pointed elsewhere, as a name can.
		own := local.IP.String()
		if strings.Contains(own, ":") {
			own = "[" + own + "]"
		}
		names = append(names[:len(names):len(names)], own)
	}
	// Browsers leave out the port that a scheme implies.
	standard := local.Port == 80 && !tls || local.Port == 443 && tls
	port := ":" + strconv.Itoa(local.Port)
	for _, name := range names {
		if host == name+port || standard && host == name {
			return true
		}
	}
	return false
}

// checkOrigin refuses what a browser sends on behalf of a page that is not ours.
// Programs send neither header.
func (a *API) checkOrigin(r *http.Request) error {
	if err := a.sameOrigin(r); err != nil {
		return &abi.Error{Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("pages of other origins have no access: %v", err)}
	}
	return nil
}

// sameOrigin says why a request is not from a page of ours. Both headers count:
// old browsers send no Sec-Fetch-Site, and a GET carries no Origin.
func (a *API) sameOrigin(r *http.Request) error {
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "", "same-origin", "none":
	default: // "same-site" as well: that is any other port of this machine
		return fmt.Errorf("the request is %.20q", site)
	}
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return nil
	}
	// "null" is the origin of sandboxed frames and local files, which anybody can
	// make; it parses to no scheme.
	u, err := url.Parse(origins[0])
	if len(origins) > 1 || err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Path != "" || u.User != nil {
		return errors.New("the origin is not that of a page of ours")
	}
	if !a.knownHost(r, u.Host, u.Scheme == "https") {
		return fmt.Errorf("the origin is %.100q", origins[0])
	}
	return nil
}
