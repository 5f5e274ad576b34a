package serve_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// A roomClient is a client of an older tracker.
type roomClient struct {
	*testing.T
	conn *websocket.Conn
}

// join opens a socket and subscribes to rooms.
func (l *life) join(rooms ...string) *roomClient {
	l.Helper()
	conn, _, err := websocket.Dial(l.Context(), l.http.URL+"/ws", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + l.token}}})
	if err != nil {
		l.Fatal(err)
	}
	c := &roomClient{l.T, conn}
	l.Cleanup(func() { _ = conn.CloseNow() })
	if m := c.next(); m["type"] != "connected" {
		l.Fatalf("first message %v", m)
	}
	for _, room := range rooms {
		if m := c.say(`{"type":"subscribe","room":"` + room + `"}`); m["type"] != "subscribed" || m["room"] != room {
			l.Fatalf("subscribe to %s: %v", room, m)
		}
	}
	return c
}

func (c *roomClient) next() map[string]any {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
	defer cancel()
	_, text, err := c.conn.Read(ctx)
	if err != nil {
		c.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		c.Fatalf("%s: %v", text, err)
	}
	return m
}

func (c *roomClient) say(text string) map[string]any {
	c.Helper()
	if err := c.conn.Write(c.Context(), websocket.MessageText, []byte(text)); err != nil {
		c.Fatal(err)
	}
	return c.next()
}

// event returns the next message of a type that fn accepts; others are skipped.
func (c *roomClient) event(kind string, fn func(data map[string]any) bool) map[string]any {
	c.Helper()
	for {
		m := c.next()
		data, _ := m["data"].(map[string]any)
		if m["type"] == kind && fn(data) {
			return m
		}
	}
}

func has(name string, value any) func(map[string]any) bool {
	return func(data map[string]any) bool { return data[name] == value }
}

// S001: "Add WebSocket notifications for retry events" with the fields of each, in the
// rooms of the ticket, its project, its session and the tenant.
func TestSpecRooms(t *testing.T) {
	l := begin(t, t.TempDir())
	all, mine, other := l.join("tenant"), l.join("session:s1", "project:web"), l.join("session:s2", "ticket:T-2")
	create := func(body map[string]any) string {
		var ticket struct{ ID string }
		if status := l.ask("POST", "/tickets", body, &ticket); status != 201 {
			t.Fatalf("create: %d", status)
		}
		return ticket.ID
	}
	claim := func(id string) float64 {
		var ticket struct{ Lease struct{ Token float64 } }
		l.until("the ticket can be claimed", func() bool {
			return l.ask("POST", "/tickets/"+id+"/claim", map[string]any{"agent_id": "w"}, &ticket) == 200
		})
		return ticket.Lease.Token
	}
	id := create(map[string]any{"title": "a", "session": "s1", "project": "web"})
	if m := mine.event("tickets:generated", has("session", "s1")); m["room"] != "session:s1" || m["ticketId"] != id {
		t.Errorf("%v", m)
	}
	token := claim(id)
	l.ask("POST", "/tickets/"+id+"/heartbeat", map[string]any{"token": token, "phase": "coding"}, nil)
	mine.event("ticket:progress", has("phase", "coding"))
	l.ask("POST", "/tickets/"+id+"/comments", map[string]any{"text": "hm"}, nil)
	mine.event("ticket:activity", has("category", "comment"))
	l.ask("POST", "/tickets/"+id+"/fail", map[string]any{"token": token, "error": "operation timed out"}, nil)
	for _, c := range []*roomClient{mine, all} {
		m := c.event("ticket:update", has("retry", true))
		data := m["data"].(map[string]any)
		if m["state"] != "ready" || m["ticketId"] != id || data["errorCategory"] != "timeout" || data["attemptsRemaining"] != 4.0 || data["retryAfter"] == nil || data["retryInSeconds"] == nil {
			t.Errorf("retry: %v", m)
		}
	}

	// Syntax errors are not retried: on hold, with reason, category and attempts.
	id2 := create(map[string]any{"title": "b"})
	if id2 != "T-2" {
		t.Fatalf("id %s", id2)
	}
	l.ask("POST", "/tickets/T-2/fail", map[string]any{"token": claim("T-2"), "error": "SyntaxError: Unexpected token"}, nil)
	if m := other.event("ticket:update", has("reason", "max_retries")); m["state"] != "on_hold" || m["data"].(map[string]any)["errorCategory"] != "syntax" || m["data"].(map[string]any)["totalAttempts"] != 1.0 {
		t.Errorf("on hold: %v", m)
	}
	l.ask("POST", "/tickets/T-2/decide", map[string]any{"action": "reject"}, nil)
	other.event("ticket:update", has("state", "cancelled"))
	if status := l.ask("DELETE", "/tickets/T-2", nil, nil); status/100 != 2 {
		t.Errorf("delete: %d", status)
	}
	other.event("ticket:update", has("deleted", true)) // R11: a tombstone

	// A pull request.
	id3 := create(map[string]any{"title": "c", "project": "web"})
	l.ask("POST", "/tickets/"+id3+"/complete", map[string]any{"token": claim(id3), "state": "in_review", "pull_request": map[string]any{"url": "https://forge/1", "number": 1}}, nil)
	mine.event("pr:created", func(data map[string]any) bool { return data["pull_request"] != nil })

	// Every room is checked: nothing of the other tickets came to this one.
	if m := other.say(`{"type":"ping"}`); m["type"] != "pong" {
		t.Errorf("a message of another room: %v", m)
	}
	for text, want := range map[string]string{
		`{"type":"subscribe","room":"users"}`: "error", `{"type":"subscribe"}`: "error", `{"type":"shout"}`: "error", `{"type":"subscribe","room":"ticket:"}`: "error",
		`{"type":"unsubscribe","room":"session:s2"}`: "unsubscribed",
	} {
		if m := other.say(text); m["type"] != want {
			t.Errorf("%s: %v", text, m)
		}
	}

	// The metrics that the specification names, with our prefix.
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, l.http.URL+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+l.token)
	res, err := l.http.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	page, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{`tickets_retried_total{category="timeout"} 1`, "tickets_retry_exhausted_total 1", "retry_delay_seconds_count 1", "retry_delay_seconds_sum 2", "retry_success_rate 0"} {
		if !strings.Contains("\n"+string(page), "\nsentinel_"+line) {
			t.Errorf("no metric %s", line)
		}
	}
}

// "close 4001 missing, 4002 bad"
func TestSpecCloseCodes(t *testing.T) {
	l := begin(t, t.TempDir())
	for want, header := range map[websocket.StatusCode]http.Header{4001: {}, 4002: {"Authorization": {"Bearer wrong"}}} {
		conn, _, err := websocket.Dial(t.Context(), l.http.URL+"/ws?topics=runs", &websocket.DialOptions{HTTPHeader: header})
		if err != nil {
			t.Fatal(err)
		}
		_, text, err := conn.Read(t.Context())
		var closed websocket.CloseError
		if !errors.As(err, &closed) || closed.Code != want || len(text) > 0 {
			t.Errorf("want %d: %q %v", want, text, err)
		}
		_ = conn.CloseNow()
	}
	if _, res, err := websocket.Dial(t.Context(), l.http.URL+"/ws", &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {"https://evil.example"}}}); err == nil || res.StatusCode != http.StatusForbidden {
		t.Errorf("a page of another origin: %v", err)
	}
	if status := l.ask("GET", "/ws", nil, nil); status == 401 {
		t.Errorf("status %d", status)
	}
}
