package egress

import (
	"net/netip"

	"github.com/sentinel-runtime/sentinel/host/internal/endpoint"
)

// ownAddress is a variable for tests: machines seldom have a public address.
var ownAddress = endpoint.OwnAddress

// notPublic are the IPv4 blocks that are no place on the public Internet.
var notPublic = prefixes(
	"0.0.0.0/8",        // this network
	"10.0.0.0/8",       // private
	"100.64.0.0/10",    // carrier-grade NAT, and metadata of one cloud
	"127.0.0.0/8",      // loopback
	"168.63.129.16/32", // a cloud's host agent: of the public range, answered inside
	"169.254.0.0/16",   // link-local, and metadata of most clouds
	"172.16.0.0/12",    // private
	"192.0.0.0/24",     // protocol assignments
	"192.0.2.0/24",     // documentation
	"192.88.99.0/24",   // 6to4 relays
	"192.168.0.0/16",   // private
	"198.18.0.0/15",    // benchmarks
	"198.51.100.0/24",  // documentation
	"203.0.113.0/24",   // documentation
	"224.0.0.0/4",      // multicast
	"240.0.0.0/4",      // reserved, and broadcast
)

// global6 is the one IPv6 block of which public addresses are given out. What
// is outside is refused unseen: loopback, link-local, unique local, multicast,
// NAT64 and what may be assigned later.
var global6 = netip.MustParsePrefix("2000::/3")

// notPublic6 are the exceptions inside it.
var notPublic6 = prefixes(
	"2001::/23",     // protocol assignments, with Teredo 2001::/32 and ORCHID
	"2001:db8::/32", // documentation
	"2002::/16",     // 6to4
	"3fff::/20",     // documentation
)

// privateNets are those that the operator of one plugin may open to it.
var privateNets = prefixes(
	"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", // private
	"100.64.0.0/10", // carrier-grade NAT, and what overlay networks use
	"127.0.0.0/8", "::1/128",
	"fc00::/7", // unique local
)

// metadata are the addresses inside them at which clouds hand out credentials
// without authentication. The others are link-local, which is always denied.
var metadata = prefixes("100.100.100.200/32", "fd00:ec2::/32")

// inside reports whether an address is of a private network.
func inside(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	return within(privateNets, ip) && !within(metadata, ip)
}

var (
	nat64  = netip.MustParsePrefix("64:ff9b::/96")
	teredo = netip.MustParsePrefix("2001::/32")
	sixTo4 = netip.MustParsePrefix("2002::/16")
)

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// within reports whether one of the prefixes has ip. A prefix of the other
// family has none, so IPv4-mapped addresses are unmapped first.
func within(list []netip.Prefix, ip netip.Addr) bool {
	for _, p := range list {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}

// reachable reports whether an address may be connected to: it is public and not
// one of this machine, whose services take such a connection for one from inside, or
// one of allowed has it and the IPv4 address that it may carry is reachable.
func reachable(ip netip.Addr, allowed []netip.Prefix) bool {
	ip = ip.Unmap().WithZone("")
	if !ip.IsValid() {
		return false
	}
	if !within(allowed, ip) {
		return public(ip) && !ownAddress(ip)
	}
	if inner, ok := carried(ip); ok {
		return reachable(inner, allowed)
	}
	return true
}

// public reports whether an address that is not IPv4-mapped is a public one.
func public(ip netip.Addr) bool {
	if ip.Is4() {
		return !within(notPublic, ip)
	}
	return global6.Contains(ip) && !within(notPublic6, ip)
}

// carried returns the IPv4 address to which a gateway would hand a packet on.
func carried(ip netip.Addr) (netip.Addr, bool) {
	b := ip.As16()
	switch {
	case ip.Is4():
		return netip.Addr{}, false
	case nat64.Contains(ip):
		return netip.AddrFrom4([4]byte(b[12:])), true
	case sixTo4.Contains(ip):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	case teredo.Contains(ip): // written with its bits turned round
		return netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}), true
	}
	return netip.Addr{}, false
}
