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

// manager is a service manager's socket.
func manager(t *testing.T, name string) *net.UnixConn {
	t.Helper()
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func heard(t *testing.T, c *net.UnixConn) string {
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

// One call is one message, over both kinds of names.
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
		if got := heard(t, c); got != "READY=1\nSTATUS=3 runs go on" {
			t.Errorf("%s heard %q", name, got)
		}
		if err := sdnotify.Send(env(name), sdnotify.Stopping); err != nil {
			t.Fatal(err)
		}
		if got := heard(t, c); got != "STOPPING=1" {
			t.Errorf("%s heard %q", name, got)
		}
	}
}

// Without a manager there is nobody to tell; a wrong name is said.
func TestSendNowhere(t *testing.T) {
	if err := sdnotify.Send(env(""), sdnotify.Ready); err != nil {
		t.Errorf("without a manager: %v", err)
	}
	for name, says := range map[string]string{"relative": "neither a path", filepath.Join(t.TempDir(), "nobody"): "nobody"} {
		if err := sdnotify.Send(env(name), sdnotify.Ready); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
