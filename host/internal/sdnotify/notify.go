// Package sdnotify reports the state of the process to its service manager: ready
// once sentinels are loaded, and stopping while it drains.
//
// The protocol is that of sd_notify(3), which systemd and several others support:
// datagrams to a Unix socket that an environment variable names.
package sdnotify

import (
	"fmt"
	"net"
	"strings"
	"time"
)

// Socket is the environment variable that names the manager's socket.
const Socket = "NOTIFY_SOCKET"

// The states of a process that a manager acts on.
const (
	Ready    = "READY=1"    // the process serves
	Stopping = "STOPPING=1" // the graceful shutdown has begun
)

// writeTimeout limits the wait for a manager that does not read.
const writeTimeout = time.Second

// Status is the state line with a text for the operator. Line ends in the text
// become blanks, because the protocol separates states by lines.
func Status(text string) string {
	return "STATUS=" + strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r < ' ' }), " ")
}

// Send sends states to the manager in one message. Without a manager, which is the
// usual case, it does nothing. getenv must be that of this process: the
// environment of another one names the socket of another manager.
func Send(getenv func(string) string, states ...string) error {
	name := getenv(Socket)
	if name == "" || len(states) == 0 {
		return nil
	}
	if name[0] != '/' && name[0] != '@' {
		return fmt.Errorf("notify service manager: socket %q is neither a path nor an abstract name", name)
	}
	// The net package supports the leading @ for an abstract name.
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("notify service manager: %w", err)
	}
	defer c.Close()
	if err := c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return fmt.Errorf("notify service manager: %w", err)
	}
	if _, err := c.Write([]byte(strings.Join(states, "\n"))); err != nil {
		return fmt.Errorf("notify service manager: %w", err)
	}
	return nil
}
