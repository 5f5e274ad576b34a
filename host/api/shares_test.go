package api_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/principal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// kindTokens has tokens of the form KIND-NAME.
type kindTokens struct{}

func (kindTokens) Who(token string) (principal.Principal, bool) {
	kind, name, ok := strings.Cut(token, "-")
	return principal.Principal{Kind: principal.Kind(kind), Name: name}, ok
}

// takeHooks takes every webhook.
func takeHooks(sentinels.ID, string, triggers.Request) ([]triggers.Admission, error) { return nil, nil }

// dialAs opens a connection from an address of this machine; "" is any.
func dialAs(t testing.TB, addr, from string) net.Conn {
	t.Helper()
	d := net.Dialer{Timeout: patience}
	if from != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	c, err := d.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return c
}

// announce sends the headers of a request with a body of this length, and
// returns when the server reads the body.
func announce(t testing.TB, addr, path, token string, length int) net.Conn {
	t.Helper()
	c := dialAs(t, addr, "")
	auth := ""
	if token != "" {
		auth = "Authorization: Bearer " + token + "\r\nContent-Type: application/json\r\n"
	}
	if _, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: %s\r\n%sContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", path, addr, auth, length); err != nil {
		t.Fatal(err)
	}
	want := "HTTP/1.1 100 Continue\r\n\r\n"
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Fatalf("%q, %v", got, err)
	}
	return c
}

// answered returns the answer on a connection.
func answered(t testing.TB, c net.Conn) (status int, text string) {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// as sends a request with a token.
func (s *site) as(token, method, path, body string) answer {
	s.t.Helper()
	return s.do(method, path, body, "Authorization: Bearer "+token)
}

// openShared opens an API with a webhook and two commands.
func openShared(t testing.TB) (s *site, addr string) {
	s = open(t, api.Options{Hooks: hooksFunc(takeHooks), Tokens: kindTokens{}, Commands: commands(t, map[string]any{"code/read?": `{}`, "code/write": `{}`})})
	return s, s.Listener.Addr().String()
}

// until waits for a condition of the server that no answer shows.
func until(t testing.TB, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come")
		}
	}
}

// TestAnnouncedBodiesTakeNothing: headers that announce large bodies keep no
// webhook and no request of a person out (G6).
func TestAnnouncedBodiesTakeNothing(t *testing.T) {
	s, addr := openShared(t)
	for range 30 {
		announce(t, addr, "/v1/hooks/nope", "", 1<<20)
	}
	for range 20 {
		announce(t, addr, "/v1/commands/code/read", "viewer-wall", 4<<20)
	}
	if got := s.do("POST", "/v1/hooks/push", "123456789", "Authorization:"); got.status != http.StatusNoContent {
		t.Errorf("a webhook of 9 bytes: %d %s", got.status, got.body)
	}
	if got := s.as("person-ann", "POST", "/v1/commands/code/write", `{"a":1}`); got.status != http.StatusOK {
		t.Errorf("a person: %d %s", got.status, got.body)
	}
	if n := s.api.BodyBytes(); n != 0 {
		t.Errorf("%d bytes are counted", n)
	}
}

// TestSlowestBodyIsDisplaced: bodies that fill a pool and do not go on end with
// an error for those that arrive, small ones for small ones and large ones for
// large ones; a small body is taken beside any number of large ones.
func TestSlowestBodyIsDisplaced(t *testing.T) {
	for name, tt := range map[string]struct {
		path, token string
		send, whole int // bytes that are sent, and announced
		share       int // of one owner
	}{
		"large webhooks": {"/v1/hooks/nope", "", 900 << 10, 1 << 20, 8 << 20},
		"small webhooks": {"/v1/hooks/nope", "", 60 << 10, 64 << 10, 8 << 20},
		"a viewer":       {"/v1/commands/code/read", "viewer-wall", 3 << 20, 4 << 20, 16 << 20},
		"an agent":       {"/v1/commands/code/write", "agent-ci", 60 << 10, 64 << 10, 4 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			s, addr := openShared(t)
			var open []net.Conn
			text := `{"a":"` + strings.Repeat("x", tt.send-8) + `"}`
			count := tt.share/tt.send + 1
			for i := range count {
				c := announce(t, addr, tt.path, tt.token, tt.whole)
				if _, err := io.WriteString(c, text); err != nil {
					t.Fatal(err)
				}
				if open = append(open, c); i < count-1 {
					until(t, func() bool { return s.api.BodyBytes() == int64((i+1)*tt.send) })
				}
			}
			if status, text := answered(t, open[0]); status != http.StatusServiceUnavailable || !strings.Contains(text, "the body arrived too slowly") {
				t.Errorf("the slowest: %d %s", status, text)
			}
			until(t, func() bool { return s.api.BodyBytes() == int64((count-1)*tt.send) })
			header := "Authorization:"
			if tt.token != "" {
				header += " Bearer " + tt.token
			}
			if got := s.do("POST", tt.path, text, header); got.status/100 != 2 {
				t.Errorf("one that arrives: %d %.200s", got.status, got.body)
			}
			if status, text := answered(t, open[1]); status != http.StatusServiceUnavailable {
				t.Errorf("the slowest then: %d %s", status, text)
			}
			if got := s.do("POST", "/v1/hooks/push", "123456789", "Authorization:"); got.status != http.StatusNoContent {
				t.Errorf("a webhook of 9 bytes: %d %s", got.status, got.body)
			}
			if got := s.as("person-ann", "POST", "/v1/commands/code/write", text); got.status != http.StatusOK {
				t.Errorf("a person: %d %s", got.status, got.body)
			}
		})
	}
}

// TestBodiesShareMemory: bodies of requests that execute stay. One agent has a
// share, agents have a part together, and a person's requests are taken.
func TestBodiesShareMemory(t *testing.T) {
	hold, began := make(chan struct{}), make(chan struct{}, 100)
	var sent sync.WaitGroup
	s := open(t, api.Options{Tokens: kindTokens{}, Commands: commands(t, map[string]any{
		"code/write~": reply(func(context.Context, *command.Call) (json.RawMessage, error) {
			began <- struct{}{}
			<-hold
			return json.RawMessage(`{}`), nil
		}), "code/edit": `{}`})})
	large := `{"a":[` + strings.TrimSuffix(strings.Repeat(`"`+strings.Repeat("x", 1000)+`",`, 3<<20/1003), ",") + `]}`
	execute := func(token string, n int) {
		t.Helper()
		for range n {
			sent.Go(func() {
				if got := s.as(token, "POST", "/v1/commands/code/write", large); got.status != http.StatusOK {
					t.Errorf("%s: %d %s", token, got.status, got.body)
				}
			})
			<-began
		}
	}
	refused := func(token, why string) {
		t.Helper()
		got := s.as(token, "POST", "/v1/commands/code/edit", large)
		if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") != "1" || got.problem.Code != abi.Unavailable || !strings.Contains(got.body, why) {
			t.Errorf("%s: %d %s", token, got.status, got.body)
		}
		if got := s.as(token, "POST", "/v1/commands/code/edit", "{}"); got.status != http.StatusOK {
			t.Errorf("%s, a small one: %d %s", token, got.status, got.body)
		}
	}
	execute("agent-a", 5) // of 16 MB
	refused("agent-a", "those of agent a may have 16 MB")
	execute("agent-b", 5)
	execute("agent-c", 5)
	execute("agent-d", 1) // 48 MB
	refused("agent-d", "those of agents and viewers may have 48 MB")
	execute("person-ann", 5)
	refused("person-ann", "they may have 64 MB")
	close(hold)
	sent.Wait()
	for _, token := range []string{"agent-a", "agent-d", "person-ann"} {
		if got := s.as(token, "POST", "/v1/commands/code/edit", large); got.status != http.StatusOK {
			t.Errorf("%s, when it is free again: %d %s", token, got.status, got.body)
		}
	}
	until(t, func() bool { return s.api.BodyBytes() == 0 }) // an answer is there a moment before its request ends
}

// TestSourceOf: a sender is counted by its address, of IPv6 by its network.
func TestSourceOf(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.7:1234": "192.0.2.7", "[::ffff:192.0.2.7]:1": "192.0.2.7", "[2001:db8:1:2:3::4]:5": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:5": "fe80::/64", "@": "@", "": "",
	} {
		if got := api.SourceOf(remote); got != want {
			t.Errorf("%q: %q, want %q", remote, got, want)
		}
	}
}

// ask sends a request on a new connection that stays open, without a body.
func ask(t testing.TB, addr, method, path, token string) net.Conn {
	t.Helper()
	c := dialAs(t, addr, "")
	if _, err := fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Length: 0\r\nContent-Type: application/json\r\n\r\n", method, path, addr, token); err != nil {
		t.Fatal(err)
	}
	return c
}

// awaits are a server's commands that wait until the caller has gone.
func awaits(t testing.TB) (reg *registry, began, ended chan string) {
	began, ended = make(chan string, 2000), make(chan string, 2000)
	return commands(t, map[string]any{"sentinel/list?": `{}`, "sentinel/await?~": reply(func(ctx context.Context, call *command.Call) (json.RawMessage, error) {
		began <- call.As
		<-ctx.Done()
		ended <- call.As
		return nil, ctx.Err()
	})}), began, ended
}

// othersAreServed requires answers to a probe, a person and a webhook, each on a
// new connection.
func othersAreServed(t testing.TB, url string, config *tls.Config) {
	t.Helper()
	probe(t, url, config)
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: config}, Timeout: patience}
	for method, path := range map[string]string{http.MethodGet: "/v1/commands", http.MethodPost: "/v1/hooks/push"} {
		req, err := http.NewRequestWithContext(t.Context(), method, url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer person-ann")
		res, err := c.Do(req)
		if err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
		res.Body.Close()
		if res.StatusCode/100 != 2 {
			t.Errorf("%s %s: %s", method, path, res.Status)
		}
	}
}

// TestWaitsOfOneViewer: requests that never end, 1,400 of a viewer, leave a port
// of 1,024 connections to others (G15).
func TestWaitsOfOneViewer(t *testing.T) {
	reg, began, ended := awaits(t)
	s := listen(t, api.Options{Commands: reg, Tokens: kindTokens{}, Hooks: hooksFunc(takeHooks)}, api.ListenOptions{MaxConns: 1024})
	addr := s.Addr().String()
	var waiting, refused []net.Conn
	for i := range 1400 {
		c := ask(t, addr, "POST", "/v1/commands/sentinel/await", "viewer-wall")
		if i < 256 {
			<-began
			waiting = append(waiting, c)
			continue
		}
		refused = append(refused, c)
		if status, text := answered(t, c); status != http.StatusServiceUnavailable || !strings.Contains(text, "viewer wall has 256 on this listener") {
			t.Fatalf("request %d: %d %s", i, status, text)
		}
	}
	othersAreServed(t, s.URL(), nil)
	// Another one takes the place of one that ended.
	waiting[0].Close()
	<-ended
	until(t, func() bool {
		c := ask(t, addr, "GET", "/v1/commands", "viewer-wall")
		defer c.Close()
		status, _ := answered(t, c)
		return status == http.StatusOK
	})
	for _, c := range append(waiting, refused...) {
		c.Close()
	}
}

// TestWaitsOfMany: agents and viewers together leave a part of the port to
// persons, and those a part to requests without a token (G15).
func TestWaitsOfMany(t *testing.T) {
	reg, began, _ := awaits(t)
	s := listen(t, api.Options{Commands: reg, Tokens: kindTokens{}, Hooks: hooksFunc(takeHooks)}, api.ListenOptions{MaxConns: 32})
	addr := s.Addr().String()
	wait := func(token string, n int, then string) {
		t.Helper()
		for range n {
			ask(t, addr, "POST", "/v1/commands/sentinel/await", token)
			<-began
		}
		if status, text := answered(t, ask(t, addr, "POST", "/v1/commands/sentinel/await", token)); status != http.StatusServiceUnavailable || !strings.Contains(text, then) {
			t.Errorf("%s: %d %s", token, status, text)
		}
	}
	wait("viewer-a", 8, "viewer a has 8")
	wait("agent-a", 8, "agent a has 8")
	wait("agent-b", 8, "agent b has 8")
	wait("agent-c", 0, "agents and viewers have 24")
	othersAreServed(t, s.URL(), nil)
	wait("person-ann", 4, "this listener has 28")
	probe(t, s.URL(), nil)
	hook := ask(t, addr, "POST", "/v1/hooks/push", "")
	if status, text := answered(t, hook); status != http.StatusNoContent {
		t.Errorf("a webhook: %d %s", status, text)
	}
}

// TestFeedsOfOneAgent: a WebSocket counts as a request as long as it is open.
func TestFeedsOfOneAgent(t *testing.T) {
	began := make(chan struct{}, 10)
	s := listen(t, api.Options{Tokens: kindTokens{}, Hooks: hooksFunc(takeHooks), Feed: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		<-r.Context().Done()
	})}, api.ListenOptions{MaxConns: 16})
	for range 4 {
		ask(t, s.Addr().String(), "GET", "/ws", "agent-ci")
		<-began
	}
	status, text := answered(t, ask(t, s.Addr().String(), "GET", "/ws", "agent-ci"))
	if status != http.StatusServiceUnavailable || !strings.Contains(text, "agent ci has 4 on this listener") {
		t.Errorf("%d %s", status, text)
	}
	othersAreServed(t, s.URL(), nil)
}

// TestSlowestStreamIsDisplaced: with HTTP/2 only the stream ends, and the
// connection serves on.
func TestSlowestStreamIsDisplaced(t *testing.T) {
	a, err := api.New(api.Options{Tokens: kindTokens{}, Commands: commands(t, map[string]any{"code/write": `{}`})})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(a.Handler())
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close) // after the streams
	const size = 60 << 10
	text := `{"a":"` + strings.Repeat("x", size-8) + `"}`
	type result struct {
		status, proto int
		text          string
		err           error
	}
	send := func(body io.Reader) result {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/v1/commands/code/write", body)
		if err != nil {
			return result{err: err}
		}
		req.Header.Set("Authorization", "Bearer agent-ci")
		req.Header.Set("Content-Type", "application/json")
		res, err := srv.Client().Do(req)
		if err != nil {
			return result{err: err}
		}
		defer res.Body.Close()
		answer, err := io.ReadAll(res.Body)
		return result{res.StatusCode, res.ProtoMajor, string(answer), err}
	}
	first := make(chan result, 1)
	for i := range 4<<20/size + 1 {
		in, out := io.Pipe()
		t.Cleanup(func() { out.Close() })
		go func() {
			if r := send(in); i == 0 {
				first <- r
			}
		}()
		if _, err := io.WriteString(out, text); err != nil {
			t.Fatal(err)
		}
		until(t, func() bool { return a.BodyBytes() == int64(min(i+1, 4<<20/size)*size) })
	}
	if got := <-first; got.status != http.StatusServiceUnavailable || got.proto != 2 || !strings.Contains(got.text, "the body arrived too slowly") {
		t.Errorf("the slowest: %+v", got)
	}
	if got := send(strings.NewReader(text)); got.status != http.StatusOK || got.err != nil {
		t.Errorf("another stream: %+v", got)
	}
}

// TestAnswersShareMemory: answers that a viewer does not read keep its own further answers out, and those of no other
// caller. They are free again when the requests have ended (G6).
func TestAnswersShareMemory(t *testing.T) {
	large := json.RawMessage(`"` + strings.Repeat("x", 15<<20) + `"`)
	reg := commands(t, map[string]any{"code/read?": reply(func(context.Context, *command.Call) (json.RawMessage, error) { return large, nil })})
	s := listen(t, api.Options{Commands: reg, Tokens: kindTokens{}}, api.ListenOptions{})
	addr := s.Addr().String()
	var unread []net.Conn
	for range 2 { // of 32 MB
		c := ask(t, addr, "POST", "/v1/commands/code/read", "viewer-wall")
		if _, err := io.ReadFull(c, make([]byte, 12)); err != nil { // it is being sent
			t.Fatal(err)
		}
		unread = append(unread, c)
	}
	status := func(token string) (int, string) {
		c := ask(t, addr, "POST", "/v1/commands/code/read", token)
		defer c.Close()
		return answered(t, c)
	}
	if got, text := status("viewer-wall"); got != http.StatusServiceUnavailable || !strings.Contains(text, "answers to viewer wall") {
		t.Errorf("a third answer: %d %.200s", got, text)
	}
	for _, token := range []string{"viewer-other", "person-ann"} {
		if got, text := status(token); got != http.StatusOK {
			t.Errorf("%s: %d %.200s", token, got, text)
		}
	}
	for _, c := range unread {
		c.Close()
	}
	until(t, func() bool { got, _ := status("viewer-wall"); return got == http.StatusOK })
}

// TestAnswersCountWhileTheyAreMade: what an agent's commands read for answers counts for its share before there is
// an answer, and those of no other caller. What is counted late, for a client that has gone, is given back.
func TestAnswersCountWhileTheyAreMade(t *testing.T) {
	reading, proceed := make(chan error, 8), make(chan struct{})
	reg := commands(t, map[string]any{"code/read?~": reply(func(ctx context.Context, call *command.Call) (json.RawMessage, error) {
		if call.Charge == nil {
			return json.RawMessage(`{}`), nil
		}
		err := call.Charge(12 << 20)
		reading <- err
		<-proceed
		if ctx.Err() != nil {
			if err := call.Charge(12 << 20); err == nil {
				t.Error("bytes are counted for a client that has gone")
			}
		}
		return json.RawMessage(`{}`), err
	})})
	s := listen(t, api.Options{Commands: reg, Tokens: kindTokens{}}, api.ListenOptions{})
	addr := s.Addr().String()
	var open []net.Conn
	for i := range 3 { // of 32 MB
		open = append(open, ask(t, addr, "POST", "/v1/commands/code/read", "agent-wall"))
		if err := <-reading; (err != nil) != (i == 2) || err != nil && abi.CodeOf(err) != abi.Unavailable {
			t.Errorf("request %d: %v", i, err)
		}
	}
	person := ask(t, addr, "POST", "/v1/commands/code/read", "person-ann")
	if got, text := answered(t, person); got != http.StatusOK {
		t.Errorf("a person: %d %s", got, text)
	}
	person.Close()
	open[0].Close() // while its answer is made
	close(proceed)
	for _, c := range open[1:] {
		answered(t, c)
		c.Close()
	}
	until(t, func() bool {
		for range 2 {
			c := ask(t, addr, "POST", "/v1/commands/code/read", "agent-wall")
			<-reading
			defer c.Close()
			if got, _ := answered(t, c); got != http.StatusOK {
				return false
			}
		}
		return true
	})
}
