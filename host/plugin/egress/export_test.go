package egress

import (
	"net"
	"net/netip"
	"strings"
)

// Punycode returns the Punycode of a label, or the error of a label that is refused.
func Punycode(label string) string {
	ascii, err := normalLabel(label)
	if err != nil {
		return err.Error()
	}
	return strings.TrimPrefix(ascii, "xn--")
}

// Reachable is reachable.
func Reachable(ip netip.Addr, allowed []netip.Prefix) bool { return reachable(ip, allowed) }

// SetOwnAddress replaces the question whether an address is one of this machine.
func SetOwnAddress(own func(netip.Addr) bool) (restore func()) {
	before := ownAddress
	ownAddress = own
	return func() { ownAddress = before }
}

// Allowed reports whether a grant lets a request go to a URL, and how the
// client names its host.
func Allowed(hosts []string, url string) (host string, ok bool, err error) {
	g, err := parseGrant(hosts)
	if err != nil {
		return "", false, err
	}
	_, to, err := target(nil, url)
	if err != nil {
		return "", false, err
	}
	return to.String(), g.allows(to), nil
}

// Sent is what a request's text comes to on the wire.
type Sent struct {
	Method, URL, Host string
	Header            map[string][]string
}

// Decode is decode.
func Decode(raw []byte) (Sent, error) {
	r, err := decode(raw)
	if err != nil {
		return Sent{}, err
	}
	return Sent{r.method, r.url.String(), r.to.String(), r.header}, nil
}

// Inside is inside.
func Inside(ip netip.Addr) bool { return inside(ip) }

// Dialer is the dialer that looks at the socket's address.
func (c *Client) Dialer() *net.Dialer { return c.public.dialer() }

// Filled is what a request's text comes to with one value for all its secrets.
func Filled(raw []byte, value string) (Sent, error) {
	r, err := decode(raw)
	if err != nil {
		return Sent{}, err
	}
	w, err := r.filled(func(string) (string, error) { return value, nil })
	if err != nil {
		return Sent{}, err
	}
	return Sent{r.method, w.url.String(), r.to.String(), w.header}, nil
}
