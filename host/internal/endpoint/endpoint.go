// Package endpoint has what the clients of servers that a person configures share: which
// addresses they accept, which are of this machine, and the delay that a server asks for.
package endpoint

import (
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Parse returns the address of a server that may get messages and tokens: https, or http on
// this machine, with a host and without credentials. ok is false for every other text.
func Parse(text string) (at *url.URL, ok bool) {
	at, err := url.Parse(text)
	if err != nil || at.Host == "" || at.User != nil {
		return nil, false
	}
	return at, at.Scheme == "https" || at.Scheme == "http" && Loopback(at.Hostname())
}

// Loopback reports whether a host is this machine.
func Loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// longestRetryAfter is the longest delay that a server can ask for.
const longestRetryAfter = time.Hour

// RetryAfter returns the delay that a server asks for with the header Retry-After, in
// seconds or as a date: 0 if it asks for none, at most an hour.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	return min(AskedDelay(h.Get("Retry-After"), now), longestRetryAfter)
}

// AskedDelay returns the delay in a header Retry-After, in seconds or as a date, however long it
// is: 0 if it asks for none.
func AskedDelay(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if seconds, err := strconv.Atoi(value); err == nil {
		return time.Duration(min(max(seconds, 0), math.MaxInt32)) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// ThisMachine reports whether a name of a host is one of this machine. What localhost is resolved
// to has to be checked when it is connected to, with [IsThisMachine].
func ThisMachine(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// IsThisMachine reports whether the address of a connection, with its port, is one of this machine.
func IsThisMachine(address string) bool {
	at, err := netip.ParseAddrPort(address)
	return err == nil && at.Addr().Unmap().IsLoopback()
}

// OwnAddress reports whether an address is one of this machine, or may be one: it is a loopback address,
// an interface has it, or the system does not tell its interfaces. It asks the system at each call, since
// addresses come and go.
func OwnAddress(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	if ip.IsLoopback() {
		return true
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	return slices.ContainsFunc(own, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		if !ok {
			return false
		}
		o, ok := netip.AddrFromSlice(n.IP)
		return ok && o.Unmap() == ip
	})
}
