package sdnotify_test

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/internal/sdnotify"
)

// manager listens on a socket as a service manager does.
func manager(t *testing.T, name string) *net.UnixConn {
	t.Helper()
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func received(t *testing.T, c *net.UnixConn) string {
	t.Helper()
	b := make([]byte, 4096)
	n, err := c.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n])
}

func env(socket string) func(string) string {
	return func(name string) string {
		if name == sdnotify.Socket {
			return socket
		}
		return ""
	}
}

// TestSend checks that a call sends one message, with both kinds of socket names.
func TestSend(t *testing.T) {
	dir, err := os.MkdirTemp("", "n") // short: a socket's name has 100 bytes or so
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	names := []string{filepath.Join(dir, "s")}
	if runtime.GOOS == "linux" {
		names = append(names, "@sentinel-notify-"+filepath.Base(dir))
	}
	for _, name := range names {
		c := manager(t, name)
		if err := sdnotify.Send(env(name), sdnotify.Ready, sdnotify.Status("3 runs\ngo on")); err != nil {
			t.Fatal(err)
		}
		if got := received(t, c); got != "READY=1\nSTATUS=3 runs go on" {
			t.Errorf("%s received %q", name, got)
		}
		if err := sdnotify.Send(env(name), sdnotify.Stopping); err != nil {
			t.Fatal(err)
		}
		if got := received(t, c); got != "STOPPING=1" {
			t.Errorf("%s received %q", name, got)
		}
	}
}

// TestSendWithoutManager checks that Send does nothing without a manager and returns
// an error for an invalid or missing socket.
func TestSendWithoutManager(t *testing.T) {
	if err := sdnotify.Send(env(""), sdnotify.Ready); err != nil {
		t.Errorf("without a manager: %v", err)
	}
	for name, says := range map[string]string{"relative": "neither a path", filepath.Join(t.TempDir(), "missing"): "missing"} {
		if err := sdnotify.Send(env(name), sdnotify.Ready); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
