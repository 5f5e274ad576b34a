package control

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
)

// maxAddress is the longest socket path that every supported platform accepts,
// in bytes: macOS has 104 with the terminating zero.
const maxAddress = 103

// listen creates the socket with mode 0600. The folder is private, so other
// users cannot connect between bind and chmod either.
func listen(state string) (net.Listener, error) {
	name := filepath.Join(state, SocketName)
	if info, err := os.Lstat(name); err == nil {
		if info.Mode().Type() != fs.ModeSocket {
			return nil, fmt.Errorf("%q is not a socket", name)
		}
		if err := os.Remove(name); err != nil {
			return nil, err
		}
	}
	address, release, err := socketAddress(state)
	if err != nil {
		return nil, err
	}
	defer release()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: address, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // the address may be an alias that is no longer valid then
	if err := os.Chmod(name, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// socketAddress returns a path of the socket that is short enough for a socket
// address. It is valid until release is called.
func socketAddress(state string) (address string, release func(), err error) {
	name := filepath.Join(state, SocketName)
	if len(name) <= maxAddress {
		return name, func() {}, nil
	}
	return shortAddress(state)
}

// sameUser is a listener that accepts connections only from the user of this
// process.
type sameUser struct {
	net.Listener
	log *slog.Logger
}

// Accept returns the next connection of the same user. It closes those of other
// users.
func (l *sameUser) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		uid, err := peerUser(c)
		if err == nil && uid == os.Geteuid() {
			return c, nil
		}
		l.log.Warn("connection of another user refused", "uid", uid, "error", err)
		c.Close()
	}
}

var _ net.Listener = (*sameUser)(nil)
