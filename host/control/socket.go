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

// maxAddress is how long the name of a socket may be on every platform we
// build for, in bytes: macOS has 104 with the closing zero.
const maxAddress = 103

// listen makes the socket with mode 0600. The folder is private itself, so the
// moment between bind and chmod is no hole.
func listen(state string) (net.Listener, error) {
	name := filepath.Join(state, SocketName)
	if info, err := os.Lstat(name); err == nil {
		if info.Mode().Type() != fs.ModeSocket {
			return nil, fmt.Errorf("%q is no socket", name)
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
	l.SetUnlinkOnClose(false) // the address may be an alias that is gone by then
	if err := os.Chmod(name, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// socketAddress returns a name for the socket that is short enough to use until
// release is called.
func socketAddress(state string) (address string, release func(), err error) {
	name := filepath.Join(state, SocketName)
	if len(name) <= maxAddress {
		return name, func() {}, nil
	}
	return shortAddress(state)
}

// sameUser lets in only processes of the user that this one belongs to.
type sameUser struct {
	net.Listener
	log *slog.Logger
}

// Accept returns the next connection of the same user; others are closed
// without an answer.
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
