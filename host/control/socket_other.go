//go:build !linux

package control

import (
	"net"
	"os"
	"path/filepath"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// shortAddress always fails: these platforms have no shorter path to a socket.
func shortAddress(state string) (string, func(), error) {
	return "", nil, &abi.Error{Code: abi.Limit,
		Message: "socket " + filepath.Join(state, SocketName) + ": the path is too long for a socket",
		Hint:    "choose a shorter folder with --state"}
}

// peerUser returns the user of this process, because the modes of the socket and
// of its folder admit no other.
func peerUser(net.Conn) (int, error) { return os.Geteuid(), nil }
