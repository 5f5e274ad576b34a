package cli_test

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A service manager hears when a server is up and when it begins to end, and the
// end that it asked for is a success.
func TestServeTellsItsManager(t *testing.T) {
	dir, err := os.MkdirTemp("", "m") // short: a socket's name has 100 bytes or so
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	if err := manager.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	hear := func() string {
		b := make([]byte, 4096)
		n, err := manager.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	var log bytes.Buffer
	server := exec.Command("sentinel", "serve", "--listen", "none")
	server.Dir, server.Stderr = dir, &log
	server.Env = append(os.Environ(), "NOTIFY_SOCKET="+socket, "HOME="+dir, "SENTINEL_TRUST_ROOTS="+dir)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	defer func() { _ = server.Process.Kill() }()
	if got := hear(); !strings.HasPrefix(got, "READY=1\nSTATUS=serving ") {
		t.Fatalf("heard %q", got)
	}
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := hear(); got != "STOPPING=1" {
		t.Errorf("heard %q", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("the server ended with %v\n%s", err, log.String())
	}
}
