package control_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/control"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// serve opens the socket of a state folder. handler nil answers "ok".
func serve(t *testing.T, state string, handler http.HandlerFunc) *control.Server {
	t.Helper()
	if handler == nil {
		handler = func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }
	}
	s, err := control.Listen(control.ServerOptions{State: state, Handler: withOwner(handler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// withOwner adds the description of the owner.
func withOwner(h http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", h)
	mux.Handle("GET "+control.OwnerPath, control.Describe(func() control.Info {
		return control.Info{PID: os.Getpid(), Version: "1.2.3", Started: time.Now(), Runs: []string{"r1", "r2"}, AcceptsRuns: true}
	}))
	return mux
}

// get requests a path over the socket and returns the body.
func get(ctx context.Context, t *testing.T, state, path string) (string, error) {
	t.Helper()
	transport := control.Transport(state)
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://any"+path, nil)
	if err != nil {
		return "", err
	}
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return string(body), err
}

func TestOwner(t *testing.T) {
	state := t.TempDir()
	serve(t, state, nil)
	info, err := control.Owner(t.Context(), state)
	if err != nil {
		t.Fatal(err)
	}
	if info.PID != os.Getpid() || info.Version != "1.2.3" || info.Started.IsZero() || !info.AcceptsRuns || info.Serves {
		t.Errorf("info = %+v", info)
	}
	if diff := cmp.Diff([]string{"r1", "r2"}, info.Runs); diff != "" {
		t.Error(diff)
	}
}

func TestNoOwner(t *testing.T) {
	state := t.TempDir()
	if _, err := control.Owner(t.Context(), state); !errors.Is(err, control.ErrNoOwner) {
		t.Fatalf("no socket: %v", err)
	}
	// A socket file whose process is gone.
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(state, control.SocketName), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	if _, err := control.Owner(t.Context(), state); !errors.Is(err, control.ErrNoOwner) {
		t.Fatalf("stale socket: %v", err)
	}
	s := serve(t, state, nil)
	if _, err := control.Owner(t.Context(), state); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error("second Close:", err)
	}
	if _, err := os.Lstat(filepath.Join(state, control.SocketName)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("socket is left: %v", err)
	}
}

func TestModeAndForeignFile(t *testing.T) {
	state := t.TempDir()
	serve(t, state, nil)
	info, err := os.Stat(filepath.Join(state, control.SocketName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode = %v, %v; want 0600", info.Mode(), err)
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, control.SocketName), []byte("keep"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := control.Listen(control.ServerOptions{State: other}); err == nil {
		s.Close()
		t.Error("a file that is not a socket was replaced")
	}
}

func TestDeepFolder(t *testing.T) {
	state := filepath.Join(t.TempDir(), strings.Repeat("d", 100), strings.Repeat("e", 100))
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := control.Listen(control.ServerOptions{State: state, Handler: withOwner(http.NotFoundHandler())})
	if code := abi.CodeOf(err); err != nil && code == abi.Limit {
		t.Skip("this platform cannot shorten a socket's path")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := control.Owner(t.Context(), state); err != nil {
		t.Error(err)
	}
}

func TestCloseCancelsRequests(t *testing.T) {
	state := t.TempDir()
	began := make(chan struct{})
	ended := false
	s := serve(t, state, func(_ http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
		ended = true
		panic(http.ErrAbortHandler)
	})
	failed := make(chan error, 1)
	go func() {
		_, err := get(context.Background(), t, state, "/x")
		failed <- err
	}()
	<-began
	s.Close()
	if !ended {
		t.Error("Close returned before the request had ended")
	}
	if err := <-failed; err == nil {
		t.Error("the interrupted request has no error")
	}
}

// Requests that end within the grace period succeed.
func TestCloseWaitsForRequests(t *testing.T) {
	state := t.TempDir()
	began, closing := make(chan struct{}), make(chan struct{})
	s := serve(t, state, func(w http.ResponseWriter, _ *http.Request) {
		close(began)
		<-closing
		io.WriteString(w, "done")
	})
	go func() {
		<-began
		go s.Close()
		for { // Close has begun when new connections are refused
			if _, err := control.Owner(context.Background(), state); err != nil {
				close(closing)
				return
			}
		}
	}()
	if got, err := get(t.Context(), t, state, "/x"); err != nil || got != "done" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestClientDisconnects(t *testing.T) {
	state := t.TempDir()
	began, ended := make(chan struct{}), make(chan struct{})
	serve(t, state, func(_ http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
		close(ended)
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-began
		cancel()
	}()
	if _, err := get(ctx, t, state, "/x"); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	<-ended
}
