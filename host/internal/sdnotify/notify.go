// Package notify tells the service manager how the host process is: it loads
// sentinels for a while before it serves, and drains for a while at its end.
//
// The protocol is that of sd_notify(3), which systemd and several others speak:
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

// What a process can be. A manager acts on these lines; others it ignores.
const (
	Ready    = "READY=1"    // everything is up
	Stopping = "STOPPING=1" // the end has begun
)

// patience is how long a manager that reads nothing is waited for.
const patience = time.Second

// Status is a line that people see beside the state of the service. It may have
// no line ends of its own, so they become blanks.
func Status(text string) string {
	return "STATUS=" + strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r < ' ' }), " ")
}

// Send tells the manager, in one message, every line of states. Without a
// manager it does nothing: most processes have none. It must not be called with
// the environment of another process, whose manager would then be told.
func Send(getenv func(string) string, states ...string) error {
	name := getenv(Socket)
	if name == "" || len(states) == 0 {
		return nil
	}
	if name[0] != '/' && name[0] != '@' {
		return fmt.Errorf("notify service manager: socket %q is neither a path nor an abstract name", name)
	}
	// The net package takes the leading @ for an abstract name, too.
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("notify service manager: %w", err)
	}
	defer c.Close()
	if err := c.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return fmt.Errorf("notify service manager: %w", err)
	}
	if _, err := c.Write([]byte(strings.Join(states, "\n"))); err != nil {
		return fmt.Errorf("notify service manager: %w", err)
	}
	return nil
}
