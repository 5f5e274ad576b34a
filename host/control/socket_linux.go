package control

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// shortAddress returns a path through an open descriptor of the folder, because
// the path of a deep folder is too long for a socket address.
func shortAddress(state string) (string, func(), error) {
	dir, err := os.Open(state)
	if err != nil {
		return "", nil, err
	}
	return filepath.Join("/proc/self/fd", strconv.Itoa(int(dir.Fd())), SocketName), func() { dir.Close() }, nil
}

// peerUser returns the user id that the peer had when it connected
// (SO_PEERCRED).
func peerUser(c net.Conn) (int, error) {
	unix, ok := c.(*net.UnixConn)
	if !ok {
		return -1, fmt.Errorf("%T is not a Unix connection", c)
	}
	raw, err := unix.SyscallConn()
	if err != nil {
		return -1, err
	}
	var cred *syscall.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		cred, failed = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); err != nil {
		return -1, err
	}
	if failed != nil {
		return -1, failed
	}
	return int(cred.Uid), nil
}
