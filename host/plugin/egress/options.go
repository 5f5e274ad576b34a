package egress

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Options configure a [Client]. The zero value works and is the strict one.
type Options struct {
	// AllowPrivate are addresses that may be connected to although they are not
	// public. An address that carries an IPv4 one (NAT64, 6to4, Teredo) needs
	// that one to be public or allowed as well. Default none.
	AllowPrivate []netip.Prefix
	// MaxBody is how many bytes of a body are read, after decompression. What
	// does not fit into an answer of 256 KiB is cut in any case. Default 240 KiB.
	MaxBody int
	// Timeout bounds a request that names no time, with its redirects and the
	// reading of the body; more than 5 minutes counts as 5 minutes. Default 30 s.
	Timeout time.Duration
	// MaxRedirects is how many redirects are followed; negative follows none.
	// Default 5.
	MaxRedirects int
	// UserAgent is sent where the guest names none. Default "sentinel".
	UserAgent string
	// Secrets has the values that requests carry by name. Default: there are none.
	Secrets Secrets
	// Roots are the authorities whose certificates count. Default the system's.
	Roots *x509.CertPool
	// Resolver looks names up. Default [net.DefaultResolver].
	Resolver Resolver
	// Connected is called with each connection of a request, whose context it gets, and
	// returns the one that is used. Default: that connection.
	Connected func(ctx context.Context, c net.Conn) net.Conn
	// Dial connects to an address that was checked, in the form "ip:port".
	// Default a [net.Dialer] that checks again with the socket in hand.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// A Resolver returns the addresses of a name; *[net.Resolver] is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Secrets are the values that requests carry by name.
type Secrets interface {
	// Value returns what a secret's value is now. Its error is one of plugins: an
	// *[abi.Error] that names the secret.
	Value(name string) (string, error)
	// Learn makes Hide know the values of names.
	Learn(names ...string)
	// Hide returns a text without the secrets that are known. More says that the
	// text is the beginning of a longer one.
	Hide(text []byte, more bool) []byte
}

// noSecrets is for a client that has none.
type noSecrets struct{}

func (noSecrets) Value(name string) (string, error) {
	return "", refuse(abi.Denied, fmt.Sprintf("secret %q: this program has none", name), "")
}
func (noSecrets) Learn(...string)                 {}
func (noSecrets) Hide(text []byte, _ bool) []byte { return text }

const (
	maxTimeout = 5 * time.Minute
	maxAnswer  = 256 << 10 // clause A8, with the {"ok": } that the engine puts around it
	maxRequest = 256 << 10 // likewise
	maxHeader  = 64 << 10  // of one response, as received
)

func (o Options) withDefaults() Options {
	if o.MaxBody <= 0 {
		o.MaxBody = 240 << 10
	}
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	o.Timeout = min(o.Timeout, maxTimeout)
	if o.MaxRedirects == 0 {
		o.MaxRedirects = 5
	}
	if o.UserAgent == "" {
		o.UserAgent = "sentinel"
	}
	if o.Secrets == nil {
		o.Secrets = noSecrets{}
	}
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	return o
}
