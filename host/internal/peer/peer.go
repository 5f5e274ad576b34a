package peer

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/sentinel-runtime/sentinel/host/internal/endpoint"
)

// A Standing is where a process is in the tree of processes.
type Standing int

// The standings.
const (
	Apart     Standing = iota // not below a step
	Below                     // below this process, or below a supervisor
	Undecided                 // it cannot be found out, as for a process that has ended
)

// A Process is the process at the other end of a connection.
type Process struct {
	PID      int    // 0 if unknown
	Program  string // base name of its executable, empty if unknown
	Standing Standing
}

// conn is a connection whose process is looked up once.
type conn struct {
	once sync.Once
	c    net.Conn
	is   Process
}

type key struct{}

// ConnContext adds a connection to the context of its requests; it has the type of the
// field of that name of [http.Server]. The process is looked up when [Of] is first called
// for the connection. c is not one of TLS, but the connection below it.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, key{}, &conn{c: c})
}

// Of returns the process that made a request. Without [ConnContext] it is looked up for
// each request, and not found on a Unix socket.
func Of(r *http.Request) Process {
	if c, ok := r.Context().Value(key{}).(*conn); ok {
		c.once.Do(func() {
			if unix, ok := c.c.(*net.UnixConn); ok {
				c.is = ofUnix(unix)
			} else {
				c.is = ofTCP(c.c.RemoteAddr().String(), c.c.LocalAddr())
			}
		})
		return c.is
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ofTCP(r.RemoteAddr, local)
}

// ofTCP returns the process of a TCP connection from the address remote.
func ofTCP(remote string, local net.Addr) Process {
	from, err := netip.ParseAddrPort(remote)
	if err == nil && !endpoint.OwnAddress(from.Addr()) {
		return Process{}
	}
	to, ok := local.(*net.TCPAddr)
	if err != nil || !ok {
		return Process{Standing: Undecided}
	}
	at := to.AddrPort()
	return holder(unmapped(from), unmapped(at))
}

// unmapped returns an address as the kernel has it: an IPv4 address of a socket for both
// versions is written as an IPv6 address.
func unmapped(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

// Errors of [Server].
var (
	ErrUnknown = errors.New("this system does not tell which process has a connection")
	ErrClosed  = errors.New("the connection was closed before it was accepted")
)

// Server waits until a connection of this process to an address of this machine was accepted, and
// returns the process that did, and whether that is root or below root. On systems other than Linux
// every process is. The process is unknown if its files cannot be read.
func Server(ctx context.Context, c net.Conn, root int) (p Process, below bool, err error) {
	own, okOwn := c.LocalAddr().(*net.TCPAddr)
	other, okOther := c.RemoteAddr().(*net.TCPAddr)
	if !okOwn || !okOther {
		return Process{}, false, ErrUnknown
	}
	return server(ctx, unmapped(own.AddrPort()), unmapped(other.AddrPort()), root)
}

// Ancestors returns a process and those above it, the nearest first, as far as they can be
// found.
func Ancestors(pid int) (list []int) {
	const most = 1000 // deeper than trees of processes are
	for pid > 1 && len(list) < most {
		list = append(list, pid)
		pid = parent(pid)
	}
	return list
}

// Self returns this process.
func Self() Process {
	p := Process{PID: os.Getpid()}
	if path, err := os.Executable(); err == nil {
		p.Program = strings.TrimSuffix(filepath.Base(path), " (deleted)")
	}
	p.Standing = standing(p.PID)
	return p
}
