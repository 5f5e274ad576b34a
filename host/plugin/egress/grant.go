package egress

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A grant is what a plugin may reach.
type grant []granted

// granted is one entry of it.
type granted struct {
	name  string // as authority.name
	below bool   // names below name, at any depth, and not name itself
	ip    netip.Addr
	port  uint16 // 0: the default port of the scheme
	plain bool   // of a secret: by http, and not by https

	anyPort bool // of a host that may have private addresses
}

// parseGrant reads the entries of a grant. One that cannot be read makes the
// whole grant an error: skipped silently it would look like a refusal of the
// host.
func parseGrant(hosts []string) (grant, error) {
	list := make(grant, len(hosts))
	for i, entry := range hosts {
		var err error
		if list[i], err = parseEntry(entry); err != nil {
			e := refuse(abi.BadFields, fmt.Sprintf("grant %q: %.100q: %v", abi.UseHTTP, entry, err), "")
			e.Hint = `write "api.example.com", "*.example.com" or either with a port, ":8443"`
			return nil, e
		}
	}
	return list, nil
}

// parseSecretHosts reads the hosts that may be sent a secret.
func parseSecretHosts(name string, hosts []string) (grant, error) {
	list := make(grant, len(hosts))
	for i, entry := range hosts {
		host, plain := strings.CutPrefix(entry, "http://")
		var err error
		if list[i], err = parseEntry(host); err != nil {
			e := refuse(abi.BadFields, fmt.Sprintf("grant secret %q: %.100q: %v", name, entry, err), "")
			e.Hint = `write "api.example.com", "*.example.com", either with a port, ":8443", or "http://host" for one without TLS`
			return nil, e
		}
		list[i].plain = plain
	}
	return list, nil
}

// CheckHost returns why an entry of a grant for http cannot be read, nil if it can.
func CheckHost(entry string) error {
	_, err := parseGrant([]string{entry})
	return err
}

// parseEntry reads "host", "*.host", "address" or one of them with a port. A bare
// "*" is none: a plugin that may go anywhere is not granted hosts.
func parseEntry(entry string) (granted, error) {
	var g granted
	var err error
	host := entry
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		if g.port, err = parsePort(host[i+1:]); err != nil {
			return granted{}, err
		}
		host = host[:i]
	}
	host, g.below = strings.CutPrefix(host, "*.")
	if g.name, g.ip, err = parseHost(host); err != nil {
		return granted{}, err
	}
	switch {
	case g.below && g.ip.IsValid():
		return granted{}, fmt.Errorf("an address has nothing below it")
	case g.below && !strings.Contains(g.name, "."):
		return granted{}, fmt.Errorf("a whole top-level domain is too much")
	}
	return g, nil
}

// allows reports whether the grant has an entry for to.
func (g grant) allows(to authority) bool {
	for _, e := range g {
		if e.allows(to) {
			return true
		}
	}
	return false
}

// carries reports whether a secret with this grant may go to a place: by https,
// or by http if an entry says so.
func (g grant) carries(to authority) bool {
	for _, e := range g {
		if e.allows(to) && e.plain == (to.scheme == "http") {
			return true
		}
	}
	return false
}

// allows compares what was normalised on both sides, so equal texts are equal
// places. A wildcard never fits an address: "*.0.0.1" would fit 127.0.0.1.
func (e granted) allows(to authority) bool {
	if !e.anyPort && (e.port == 0 && to.port != defaultPort(to.scheme) || e.port != 0 && to.port != e.port) {
		return false
	}
	switch {
	case to.ip.IsValid():
		return e.ip == to.ip
	case e.ip.IsValid():
		return false
	case e.below:
		return strings.HasSuffix(to.name, "."+e.name)
	}
	return to.name == e.name
}

// notGranted is the refusal of the host that the guest asked for.
func notGranted(to authority) *abi.Error {
	e := refuse(abi.Denied, fmt.Sprintf("fetch %q: not among the hosts granted for %q", to, abi.UseHTTP), "url")
	e.Hint = fmt.Sprintf("add %q to the names the plugin asks for under %q", to, abi.UseHTTP)
	return e
}
