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
	// Browsers parse the value as a part of a URL, so it has to be exactly the
	// host of one: a path or a user in it is a mistake or an attack.
	host = strings.ToLower(host)
	u, err := url.Parse("http://" + host)
	if err != nil || u.Host != host || u.Hostname() == "" || strings.ContainsAny(host, "*@") {
		return fmt.Errorf("allow host %q: want name or name:port", host)
	}
	if a.hosts[host] = true; u.Port() == "" {
		a.names = append(a.names, host)
	}
	return nil
}

// checkHost is the first check of a request. It prevents DNS rebinding: a page
// whose name an attacker resolves to this server has the origin of the server
// for the browser; only the Host header differs (API.md, G2).
func (a *API) checkHost(r *http.Request) error {
	if a.knownHost(r, r.Host, r.TLS != nil) {
		return nil
	}
	return &abi.Error{
		Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("host %.100q is not a name of this server", r.Host),
		Hint: "use localhost and its port, or allow the name where the server is started",
	}
}

// knownHost reports whether host, with its port, is a name of this server.
// Names without a configured port have the port of the connection.
func (a *API) knownHost(r *http.Request, host string, tls bool) bool {
	host = strings.ToLower(host)
	if a.hosts[host] {
		return true
	}
	// Without a connection, as when a handler is called directly, only the
	// configured names are known.
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return false
	}
	names := a.names
	if !local.IP.IsUnspecified() {
		// An attacker cannot redirect an IP address as they can a name.
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

// checkOrigin refuses requests that a browser sends for a page of another
// origin. Programs send neither header.
func (a *API) checkOrigin(r *http.Request) error {
	if err := a.sameOrigin(r); err != nil {
		return &abi.Error{Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("pages of other origins have no access: %v", err)}
	}
	return nil
}

// sameOrigin returns an error if the request is from a page of another origin.
// It checks both headers: old browsers send no Sec-Fetch-Site, and a GET
// carries no Origin.
func (a *API) sameOrigin(r *http.Request) error {
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "", "same-origin", "none":
	default: // includes "same-site", which is any other port of this machine
		return fmt.Errorf("the request is %.20q", site)
	}
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return nil
	}
	// "null" is the origin of sandboxed frames and local files, which an
	// attacker can create; it has no scheme.
	u, err := url.Parse(origins[0])
	if len(origins) > 1 || err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Path != "" || u.User != nil {
		return errors.New("the origin is not of this server")
	}
	if !a.knownHost(r, u.Host, u.Scheme == "https") {
		return fmt.Errorf("the origin is %.100q", origins[0])
	}
	return nil
}
