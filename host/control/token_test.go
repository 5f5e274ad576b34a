package control_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/control"
	"github.com/sentinel-runtime/sentinel/host/internal/httpproblem"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A client finds the token in the state folder, also a new one, and learns why one is refused.
func TestClientSendsToken(t *testing.T) {
	state := t.TempDir()
	name := filepath.Join(state, "token")
	write := func(token string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	if _, err := control.Owner(t.Context(), state); !errors.Is(err, control.ErrNoOwner) {
		t.Errorf("no process: %v", err)
	}
	valid := "Bearer one"
	owner := withOwner(http.NotFoundHandler())
	s, err := control.Listen(control.ServerOptions{State: state, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != valid {
			httpproblem.Write(w, &httpproblem.Error{Status: http.StatusUnauthorized, Err: &abi.Error{Code: abi.Denied, Message: "got " + r.Header.Get("Authorization"), Hint: "do this"}})
			return
		}
		owner.ServeHTTP(w, r)
	})})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := control.Owner(t.Context(), state); err != nil {
		t.Error(err)
	}
	refused := func(want string) {
		t.Helper()
		_, err := control.Owner(t.Context(), state)
		if e := abi.As(err); errors.Is(err, control.ErrNoOwner) || e == nil || e.Code != abi.Denied || e.Hint == "" || !strings.Contains(e.Message, want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	valid = "Bearer two"
	refused("got Bearer one")
	write("two")
	if _, err := control.Owner(t.Context(), state); err != nil {
		t.Error("a new token:", err)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	refused("got ")
	// A file that cannot be read, also not by root.
	if err := os.Mkdir(name, 0o700); err != nil {
		t.Fatal(err)
	}
	refused(name)
	s.Close()
	if _, err := control.Owner(t.Context(), state); !errors.Is(err, control.ErrNoOwner) {
		t.Errorf("no process any more: %v", err)
	}
}
