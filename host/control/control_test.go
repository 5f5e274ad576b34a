package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/control"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

type answer func(ctx context.Context, name string, params json.RawMessage) (json.RawMessage, error)

func serve(t *testing.T, state string, call answer) *control.Server {
	t.Helper()
	s, err := control.Listen(control.ServerOptions{
		State: state, Call: call, Version: "1.2.3",
		Runs: func() []string { return []string{"r1", "r2"} },
		Commands: func() []control.Command {
			return []control.Command{{Name: "a/b", Input: json.RawMessage(`{}`), ReadOnly: true}}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func dial(t *testing.T, state string) (*control.Client, control.Info) {
	t.Helper()
	c, info, err := control.Dial(t.Context(), state)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, info
}

func TestCallAndList(t *testing.T) {
	state := t.TempDir()
	serve(t, state, func(_ context.Context, name string, params json.RawMessage) (json.RawMessage, error) {
		if name == "none" {
			return nil, nil
		}
		return json.Marshal(map[string]any{"name": name, "params": params})
	})
	c, info := dial(t, state)
	if info.PID != os.Getpid() || info.Version != "1.2.3" || info.Started.IsZero() {
		t.Errorf("info = %+v", info)
	}
	if diff := cmp.Diff([]string{"r1", "r2"}, info.Runs); diff != "" {
		t.Error(diff)
	}
	for _, tt := range []struct{ name, params, want string }{
		{"sentinel/step/list", `{"id":"x"}`, `{"name":"sentinel/step/list","params":{"id":"x"}}`},
		{"mcp/a.b/c-d", ``, `{"name":"mcp/a.b/c-d","params":{}}`},
		{"none", `{}`, `null`},
	} {
		got, err := c.Call(t.Context(), tt.name, json.RawMessage(tt.params))
		if err != nil || string(got) != tt.want {
			t.Errorf("Call(%q) = %s, %v; want %s", tt.name, got, err, tt.want)
		}
	}
	list, err := c.Commands(t.Context())
	if err != nil || len(list) != 1 || list[0].Name != "a/b" || !list[0].ReadOnly {
		t.Errorf("Commands() = %+v, %v", list, err)
	}
}

func TestErrorsAreTransferred(t *testing.T) {
	state := t.TempDir()
	given := map[string]error{"plain": errors.New("it broke")}
	for _, code := range abi.Codes() {
		given[string(code)] = &abi.Error{Code: code, Message: "m " + string(code), Field: "f", Hint: "do this", RetryAfterMs: 7, Permanent: true}
	}
	serve(t, state, func(_ context.Context, name string, _ json.RawMessage) (json.RawMessage, error) {
		return nil, given[name]
	})
	c, _ := dial(t, state)
	for name, err := range given {
		_, got := c.Call(t.Context(), name, nil)
		want := abi.As(err)
		if want == nil {
			want = &abi.Error{Code: abi.Internal, Message: "it broke"}
		}
		if diff := cmp.Diff(want, abi.As(got)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for params, want := range map[string]string{
		`{`:             "parameters: line 1, column 2: the text ends before the value does",
		`{"a":1,"a":2}`: `parameters: line 1, column 8: a: duplicate key "a", first at line 1, column 2`,
	} {
		if _, err := c.Call(t.Context(), "x", json.RawMessage(params)); abi.CodeOf(err) != abi.BadFields || err.Error() != want {
			t.Errorf("%s: %v, want %s", params, err, want)
		}
	}
}

func TestNoOwner(t *testing.T) {
	state := t.TempDir()
	if _, _, err := control.Dial(t.Context(), state); !errors.Is(err, control.ErrNoOwner) {
		t.Fatalf("no socket: %v", err)
	}
	// A socket file whose process is gone.
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(state, control.SocketName), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	if _, _, err := control.Dial(t.Context(), state); !errors.Is(err, control.ErrNoOwner) {
		t.Fatalf("stale socket: %v", err)
	}
	s := serve(t, state, nil)
	dial(t, state)
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
	s, err := control.Listen(control.ServerOptions{State: state})
	if code := abi.CodeOf(err); err != nil && code == abi.Limit {
		t.Skip("this platform cannot shorten a socket's path")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	dial(t, state)
}

func TestCloseCancelsCalls(t *testing.T) {
	state := t.TempDir()
	began := make(chan struct{})
	ended := false
	s := serve(t, state, func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
		close(began)
		<-ctx.Done()
		ended = true
		return nil, ctx.Err()
	})
	c, _ := dial(t, state)
	failed := make(chan error, 1)
	go func() {
		_, err := c.Call(context.Background(), "x", nil)
		failed <- err
	}()
	<-began
	s.Close()
	if !ended {
		t.Error("Close returned before the call had ended")
	}
	if err := <-failed; err == nil {
		t.Error("the cut-off call has no error")
	}
}

// Calls that end within the grace period succeed.
func TestCloseWaitsForCalls(t *testing.T) {
	state := t.TempDir()
	began, closing := make(chan struct{}), make(chan struct{})
	s := serve(t, state, func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
		close(began)
		<-closing
		return json.RawMessage(`"done"`), ctx.Err()
	})
	c, _ := dial(t, state)
	go func() {
		<-began
		go s.Close()
		for { // Close has begun when new connections are refused
			if _, _, err := control.Dial(context.Background(), state); err != nil {
				close(closing)
				return
			}
		}
	}()
	if got, err := c.Call(t.Context(), "x", nil); err != nil || string(got) != `"done"` {
		t.Errorf("Call = %s, %v", got, err)
	}
}

func TestCallerDisconnects(t *testing.T) {
	state := t.TempDir()
	began, over := make(chan struct{}), make(chan struct{})
	serve(t, state, func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
		close(began)
		<-ctx.Done()
		close(over)
		return nil, ctx.Err()
	})
	c, _ := dial(t, state)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-began
		cancel()
	}()
	if _, err := c.Call(ctx, "x", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	<-over
}
