//go:build unix

package serve_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/control"
	"github.com/sentinel-runtime/sentinel/host/principal"
)

// TestSharesOfControlSocket: 1,400 requests of an agent that wait, and as many connections
// that send nothing, leave a person's requests over the control socket as they are (G11, G15).
func TestSharesOfControlSocket(t *testing.T) {
	l := begin(t, t.TempDir())
	state := l.server.Host().State()
	agent, err := (api.TokenStore{State: state, Trust: l.server.Host().Trust()}).New(principal.Agent, "ci", time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var run struct{ Run string }
	if code := l.ask("POST", "/v1/commands/sentinel/start", map[string]any{"definition": map[string]any{"name": "long", "steps": []any{map[string]any{"type": "wait", "durationMs": 3600000}}}}, &run); code != http.StatusOK {
		t.Fatalf("start: %d", code)
	}
	dial := func() net.Conn {
		t.Helper()
		c, err := (&net.Dialer{}).DialContext(t.Context(), "unix", filepath.Join(state, control.SocketName))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	send := func(c net.Conn, token, command, body string) {
		// The server may refuse it and close the connection before it has all of it.
		_, _ = fmt.Fprintf(c, "POST /v1/commands/%s HTTP/1.1\r\nHost: local\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", command, token, len(body), body)
	}
	l.until("the token of the agent to be valid", func() bool {
		c := dial()
		send(c, agent, "sentinel/status", fmt.Sprintf(`{"run":%q}`, run.Run))
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		return err == nil && res.StatusCode == http.StatusOK
	})

	const requests = 1400
	most := api.MaxConns() / 4
	ended := make(chan string, requests)
	for i := range requests {
		c := dial()
		send(c, agent, "sentinel/await", fmt.Sprintf(`{"run":%q}`, run.Run))
		go func() {
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				ended <- err.Error()
				return
			}
			body, _ := io.ReadAll(res.Body)
			ended <- fmt.Sprint(res.StatusCode, " ", string(body))
		}()
		if i < most {
			continue
		}
		// Each one above the share is refused before the next, so that no connection gives way before its
		// request is read.
		var text string
		select {
		case text = <-ended:
		case <-time.After(time.Minute):
			t.Fatal("more than the share of an agent wait")
		}
		if !strings.HasPrefix(text, "503 ") || !strings.Contains(text, fmt.Sprintf("agent ci has %d on this listener", most)) {
			t.Fatal(text)
		}
	}
	for range requests {
		dial()
	}
	for range 5 {
		c := dial()
		send(c, l.token, "sentinel/status", fmt.Sprintf(`{"run":%q}`, run.Run))
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Errorf("a person: %v %v", res, err)
		}
	}
	if len(ended) > 0 {
		t.Errorf("an await in its share ended: %s", <-ended)
	}
}
