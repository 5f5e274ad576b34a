package egress

import (
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// maxURL is the length of a URL in bytes; servers take no longer ones.
const maxURL = 8 << 10

// An authority is the host and port of a URL in the one form in which it is
// compared, looked up and sent. Either name or ip is set.
type authority struct {
	scheme string
	name   string // lower case, ASCII, no trailing dot
	ip     netip.Addr
	port   uint16
}

// host returns the name, or the address as it stands in a URL.
func (a authority) host() string {
	if a.name != "" {
		return a.name
	}
	if a.ip.Is6() {
		return "[" + a.ip.String() + "]"
	}
	return a.ip.String()
}

// String returns host and port; the port only where it is not the scheme's own.
func (a authority) String() string {
	if a.port == defaultPort(a.scheme) {
		return a.host()
	}
	return a.host() + ":" + strconv.Itoa(int(a.port))
}

// defaultPort is the port of a URL without one; there are only two schemes.
func defaultPort(scheme string) uint16 {
	if scheme == "http" {
		return 80
	}
	return 443
}

// target reads a URL, relative to base if there is one. The URL it returns has
// only what may be sent.
func target(base *url.URL, raw string) (*url.URL, authority, error) {
	if len(raw) > maxURL {
		return nil, authority{}, refuse(abi.Limit, fmt.Sprintf("%s url: more than %d bytes", abi.FuncHTTP, maxURL), "url")
	}
	parse := url.Parse
	if base != nil {
		parse = base.Parse
	}
	u, err := parse(raw)
	if err != nil {
		return nil, authority{}, bad("url", "not a URL")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, authority{}, bad("url", "wanted http:// or https://")
	case u.User != nil:
		return nil, authority{}, bad("url", "a user or password in it is refused; use a header")
	case u.Opaque != "" || u.Host == "":
		return nil, authority{}, bad("url", "without a host")
	}
	to := authority{scheme: u.Scheme, port: defaultPort(u.Scheme)}
	if port := u.Port(); port != "" {
		if to.port, err = parsePort(port); err != nil {
			return nil, authority{}, bad("url", err.Error())
		}
	}
	if to.name, to.ip, err = parseHost(strings.TrimSuffix(u.Host, ":"+u.Port())); err != nil {
		return nil, authority{}, bad("url", err.Error())
	}
	// Built from the validated parts, so that nothing else of u is sent.
	out := &url.URL{Scheme: u.Scheme, Host: to.String(), Path: u.Path, RawPath: u.RawPath, RawQuery: escapeQuery(u.RawQuery), ForceQuery: u.ForceQuery}
	return out, to, nil
}

// parsePort reads a port in its one spelling.
func parsePort(s string) (uint16, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 || s != strconv.FormatUint(n, 10) {
		return 0, fmt.Errorf("%.10q is no port", s)
	}
	return uint16(n), nil
}

// escapeQuery escapes what net/url leaves in a query as it was written but what
// has no place in a request line, where a space would end the address.
func escapeQuery(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '<' || c == '>' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
