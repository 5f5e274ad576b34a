//go:build !linux

package control

import (
	"net"
	"os"
	"path/filepath"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// shortAddress knows no way round the length of a socket's name here.
func shortAddress(state string) (string, func(), error) {
	return "", nil, &abi.Error{Code: abi.Limit,
		Message: "socket " + filepath.Join(state, SocketName) + ": the name is too long for a socket",
		Hint:    "choose a shorter folder with --state"}
}

// peerUser trusts the mode of the socket and of its folder, which only the same
// user can open.
func peerUser(net.Conn) (int, error) { return os.Geteuid(), nil }
