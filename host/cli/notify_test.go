package cli_test

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/cli"
	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/runtime"
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

// A signal that comes while a server opens its state ends it at once, as a success, and the state
// is free and closed afterwards.
func TestSignalEndsTheStartOfServe(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(app.ErrInterrupted)
	var out, log bytes.Buffer
	env := app.Env{
		Args: []string{"serve", "--listen", "none"}, Dir: dir, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &log,
		Getenv: func(name string) string { return map[string]string{"HOME": dir, "SENTINEL_TRUST_ROOTS": dir}[name] },
	}
	if code := cli.Run(ctx, env); code != app.ExitOK || !strings.Contains(log.String(), "stopped before it served") || strings.Contains(log.String(), "msg=serving") {
		t.Errorf("exit %d:\n%s%s", code, out.String(), log.String())
	}
	if state, err := runtime.InspectState(filepath.Join(dir, ".sentinel", "state")); err != nil || state.Held || !state.Closed {
		t.Errorf("the state behind it: %+v, %v", state, err)
	}
}
