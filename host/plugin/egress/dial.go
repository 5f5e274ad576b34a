package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

const (
	dialTime     = 10 * time.Second       // for all addresses of a name, with its lookup
	dialStagger  = 300 * time.Millisecond // until the next address is tried beside the one before
	maxAddresses = 8                      // of one name
)

// errAddress is the refusal of an address. It does not say which: a plugin must
// not learn a network's layout from names.
var errAddress = errors.New("no address is a public one")

// A reach is a way out for requests: which addresses may be connected to.
type reach struct {
	opt       Options
	private   bool
	transport *http.Transport
}

func newReach(opt Options, private bool) reach {
	r := reach{opt: opt, private: private}
	if r.opt.Dial == nil {
		r.opt.Dial = r.dialer().DialContext
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	r.transport = &http.Transport{
		Proxy:                  nil, // an environment must not choose where a plugin's request goes
		DialContext:            r.dial,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: opt.Roots},
		TLSHandshakeTimeout:    10 * time.Second,
		DisableKeepAlives:      true,
		DisableCompression:     true, // body.go decompresses, and watches the ratio
		MaxResponseHeaderBytes: maxHeader,
		Protocols:              protocols,
	}
	return r
}

// has reports whether an address may be connected to.
func (r reach) has(ip netip.Addr) bool {
	return reachable(ip, r.opt.AllowPrivate) || r.private && inside(ip)
}

// dialer returns one that looks at the address the socket is about to connect
// to. What dial let through passes, so this is the check that holds when that
// has a hole.
func (r reach) dialer() *net.Dialer {
	return &net.Dialer{Control: func(network, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil || network != "tcp4" && network != "tcp6" || !r.has(at.Addr()) {
			return errAddress
		}
		return nil
	}}
}

// dial connects to the host of a URL; the transport calls it.
func (r reach) dial(ctx context.Context, _, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, dialTime, errTime)
	defer cancel()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	found := []netip.Addr{}
	if ip, err := netip.ParseAddr(host); err == nil {
		found = append(found, ip)
	} else if found, err = r.opt.Resolver.LookupNetIP(ctx, "ip", host); err != nil {
		return nil, err
	}
	// What cannot be reached is left out rather than refused: names of private
	// networks often have both kinds, and only what is left is connected to.
	var addresses []string
	for _, ip := range found {
		if r.has(ip) && len(addresses) < maxAddresses {
			addresses = append(addresses, net.JoinHostPort(ip.Unmap().String(), port))
		}
	}
	if len(addresses) == 0 {
		return nil, errAddress
	}
	conn, err := r.race(ctx, addresses)
	if err == nil && r.opt.Connected != nil {
		conn = r.opt.Connected(ctx, conn)
	}
	return conn, err
}

// race returns the first connection to any of the addresses. Each has a head
// start over the next, so that one that is never answered does not use up the
// time. All attempts have ended when it returns.
func (r reach) race(ctx context.Context, addresses []string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		mu    sync.Mutex
		first net.Conn
		cause error
		group sync.WaitGroup
	)
	for _, address := range addresses {
		ended := make(chan struct{})
		group.Go(func() {
			defer close(ended)
			conn, err := r.opt.Dial(ctx, "tcp", address)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil && cause == nil:
				cause = err // the first says most: later ones may only tell that ctx ended
			case err == nil && first == nil:
				first = conn
				cancel()
			case err == nil:
				conn.Close() // it came too late
			}
		})
		wait := time.NewTimer(dialStagger)
		select {
		case <-ended:
		case <-wait.C:
		case <-ctx.Done():
		}
		wait.Stop()
		if ctx.Err() != nil {
			break
		}
	}
	group.Wait()
	if first != nil {
		return first, nil
	}
	return nil, cause
}
