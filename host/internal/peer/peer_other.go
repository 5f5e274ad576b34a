//go:build !linux && !darwin

package peer

import (
	"context"
	"net"
	"net/netip"
)

// These systems do not tell the process of a connection, nor its parents.
func ofUnix(*net.UnixConn) Process { return Process{} }

func holder(_, _ netip.AddrPort) Process { return Process{} }

func standing(int) Standing { return Apart }

func parent(int) int { return 0 }

// server returns nothing: this system does not tell the process of a TCP connection.
func server(context.Context, netip.AddrPort, netip.AddrPort, int) (Process, bool, error) {
	return Process{}, true, nil
}
