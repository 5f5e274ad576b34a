package serve_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/livefeed"
	"github.com/sentinel-runtime/sentinel/host/principal"
)

// TestNamedTokens: a server takes a token that was made meanwhile and refuses it when it is
// revoked or has expired; what was opened with it ends with the code of a bad token.
func TestNamedTokens(t *testing.T) {
	l := begin(t, t.TempDir())
	defer l.end()
	store := api.TokenStore{State: l.server.Host().State(), Trust: l.server.Host().Trust()}
	short, err := store.New(principal.Agent, "short", time.Millisecond, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	token, err := store.New(principal.Viewer, "wall", time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	own := l.token
	l.token = token
	l.until("the new token to be valid", func() bool { return l.ask("GET", "/tickets", nil, nil) == http.StatusOK })
	if code := l.ask("POST", "/tickets", map[string]any{"title": "x"}, nil); code != http.StatusForbidden {
		t.Errorf("a viewer files a ticket: %d", code)
	}
	conn, _, err := websocket.Dial(t.Context(), l.http.URL+"/ws", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.CloseNow() }()
	if err := store.Revoke("wall"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for err == nil {
		_, _, err = conn.Read(ctx)
	}
	if code := websocket.CloseStatus(err); code != livefeed.StatusBadToken {
		t.Errorf("the socket ended with %d: %v", code, err)
	}
	for name, gone := range map[string]string{"revoked": token, "expired": short} {
		l.token = gone
		if code := l.ask("GET", "/tickets", nil, nil); code != http.StatusUnauthorized {
			t.Errorf("%s: %d", name, code)
		}
	}
	if l.token = own; l.ask("GET", "/tickets", nil, nil) != http.StatusOK {
		t.Error("the person's token is not valid any more")
	}
	// What was refused before it came to a command is in the audit log (G14).
	var log struct {
		Entries []struct{ Actor, Event, Outcome string }
	}
	l.ask("POST", "/v1/commands/audit/list", map[string]any{}, &log)
	for _, want := range []string{"viewer:wall ticket/create denied", "unknown ticket/list denied"} {
		if !strings.Contains(fmt.Sprint(log.Entries), "{"+want+"}") {
			t.Errorf("no entry %q: %v", want, log.Entries)
		}
	}
	if err := store.Revoke("wall"); err == nil {
		t.Error("revoked twice")
	}
}
