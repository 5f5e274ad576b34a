package api_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// patience is after which a test takes what it waits for to hang.
const patience = 30 * time.Second

// flood opens connections that send the beginning of a request and nothing more,
// each after the answer to the one before if there is one. They stay open until the
// test ends.
func flood(t *testing.T, addr string, n int, begin string, answered bool) {
	t.Helper()
	for range n {
		c, err := net.DialTimeout("tcp", addr, patience)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if _, err := io.WriteString(c, begin); err != nil {
			t.Fatal(err)
		}
		if answered {
			if _, err := c.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// probe asks for /health on a new connection.
func probe(t testing.TB, url string, config *tls.Config) {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: config}, Timeout: patience}
	res, err := c.Get(url + "/health")
	if err != nil {
		t.Fatal("a probe is not answered:", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Fatal("a probe is answered with", res.Status)
	}
}

// client is one that keeps its connection, with a token.
type client struct {
	http.Client
	url string
}

func (c *client) get(t *testing.T, path string) (reused bool) {
	t.Helper()
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet, c.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+goodToken)
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	if res.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s", path, res.Status)
	}
	return reused
}

// G6: at the limit a new connection takes the place of one that does nothing, the
// oldest without a token first; one with a token is the last to go.
func TestIdleConnectionsGiveWay(t *testing.T) {
	// So many that not all wait for their turn on the processor at once, where none may be closed.
	const most = 24
	s := listen(t, api.Options{}, api.ListenOptions{MaxConns: most})
	known := &client{url: s.URL(), Client: http.Client{Transport: &http.Transport{}, Timeout: patience}}
	defer known.CloseIdleConnections()
	known.get(t, "/v1/commands")
	addr := s.Addr().String()
	for name, sent := range map[string]struct {
		begin    string
		answered bool
	}{
		"nothing":        {"", false},
		"half a header":  {"GET /health HTTP/1.1\r\nHost: " + addr + "\r\nX-", false},
		"a wrong token":  {"GET /v1/runs HTTP/1.1\r\nHost: " + addr + "\r\nAuthorization: Bearer wrong\r\n\r\n", true},
		"an open route":  {"GET /health HTTP/1.1\r\nHost: " + addr + "\r\n\r\n", true},
		"half a refusal": {"POST /v1/runs HTTP/1.1\r\nHost: " + addr + "\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", false},
	} {
		t.Run(name, func(t *testing.T) {
			flood(t, addr, 3*most, sent.begin, sent.answered)
			probe(t, s.URL(), nil)
			if !known.get(t, "/v1/commands") {
				t.Error("the connection with a token was closed for those without")
			}
		})
	}
}

// Connections with a token give way too when there are no others.
func TestIdleConnectionsWithToken(t *testing.T) {
	s := listen(t, api.Options{}, api.ListenOptions{MaxConns: 3})
	for range 8 {
		c := &client{url: s.URL(), Client: http.Client{Transport: &http.Transport{}, Timeout: patience}}
		defer c.CloseIdleConnections()
		c.get(t, "/v1/commands")
	}
	probe(t, s.URL(), nil)
}

// A webhook whose body does not arrive holds no connection against others.
func TestSlowWebhooksGiveWay(t *testing.T) {
	s := listen(t, api.Options{Hooks: hooksFunc(func(sentinels.ID, string, triggers.Request) ([]triggers.Admission, error) {
		return nil, nil
	})}, api.ListenOptions{MaxConns: 3})
	flood(t, s.Addr().String(), 20, "POST /v1/hooks/nightly HTTP/1.1\r\nHost: "+s.Addr().String()+"\r\nContent-Length: 100\r\n\r\n{", false)
	probe(t, s.URL(), nil)
}

func TestIdleTLSConnectionsGiveWay(t *testing.T) {
	cert, key, pool := certificate(t)
	s := listen(t, api.Options{}, api.ListenOptions{CertFile: cert, KeyFile: key, MaxConns: 3})
	config := &tls.Config{RootCAs: pool}
	known := &client{url: s.URL(), Client: http.Client{Transport: &http.Transport{TLSClientConfig: config.Clone(), ForceAttemptHTTP2: true}, Timeout: patience}}
	defer known.CloseIdleConnections()
	known.get(t, "/v1/commands")
	flood(t, s.Addr().String(), 20, "", false) // no handshake
	probe(t, s.URL(), config)
	if !known.get(t, "/v1/commands") {
		t.Error("the connection with a token was closed for those without")
	}
}

// A request under way is never cut off for a new connection, which waits.
func TestBusyConnectionsStay(t *testing.T) {
	began, finish := make(chan struct{}, 2), make(chan struct{})
	reg := commands(t, map[string]any{"code/slow": reply(func(ctx context.Context, _ *command.Call) (json.RawMessage, error) {
		began <- struct{}{}
		<-finish
		return json.RawMessage(`"done"`), ctx.Err()
	})})
	s := listen(t, api.Options{Commands: reg}, api.ListenOptions{MaxConns: 2})
	request := "POST /v1/commands/code/slow HTTP/1.1\r\nHost: " + s.Addr().String() + "\r\nAuthorization: Bearer " + goodToken +
		"\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
	var busy []net.Conn
	for range 2 {
		c, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, request); err != nil {
			t.Fatal(err)
		}
		<-began
		busy = append(busy, c)
	}
	answered := make(chan error, 1)
	go func() {
		c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		res, err := c.Get(s.URL() + "/health")
		if err == nil {
			res.Body.Close()
		}
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Fatalf("the third connection was answered: %v", err)
	case <-time.After(20 * time.Millisecond): // longer would prove no more
	}
	close(finish)
	for i, c := range busy {
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		if text, err := io.ReadAll(res.Body); err != nil || strings.TrimSpace(string(text)) != `"done"` {
			t.Errorf("request %d: %q, %v", i, text, err)
		}
	}
	select {
	case err := <-answered:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("the third connection got no room")
	}
}

// Close ends an Accept that waits for room.
func TestCloseWithoutRoom(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := api.LimitConnsTo(inner, 0)
	c, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	done := make(chan error, 1)
	go func() {
		_, err := l.Accept()
		done <- err
	}()
	l.Close()
	l.Close()
	select {
	case err := <-done:
		if err == nil {
			t.Error("a connection was accepted without room")
		}
	case <-time.After(patience):
		t.Error("Accept hangs")
	}
}

// A stalledListener has connections that write nothing, as those do whose client reads nothing.
type stalledListener struct {
	net.Listener
	stalls  int           // so many of the next connections
	writing chan struct{} // one for each write
}

func (l *stalledListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil || l.stalls == 0 {
		return c, err
	}
	l.stalls--
	return &stalledConn{Conn: c, writing: l.writing, closed: make(chan struct{})}, nil
}

type stalledConn struct {
	net.Conn
	writing chan struct{}
	once    sync.Once
	closed  chan struct{}
}

func (c *stalledConn) Write([]byte) (int, error) {
	c.writing <- struct{}{}
	<-c.closed
	return 0, net.ErrClosed
}

func (c *stalledConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// TestUnreadAnswersHaveAShare: connections that take no byte of a small answer are counted for their owner
// when its handler has returned, until it is written or the connection ends (G15).
func TestUnreadAnswersHaveAShare(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a, err := api.New(api.Options{Commands: commands(t, nil), Tokens: kindTokens{}, Hooks: hooksFunc(takeHooks)})
	if err != nil {
		t.Fatal(err)
	}
	l := &stalledListener{Listener: inner, stalls: 8, writing: make(chan struct{}, 100)}
	s := &http.Server{Handler: a.Handler(), ConnContext: api.ConnContext, ConnState: api.ConnState}
	done := make(chan error, 1)
	go func() { done <- s.Serve(api.LimitConnsTo(l, 32)) }()
	t.Cleanup(func() {
		s.Close()
		<-done
	})
	addr := inner.Addr().String()
	get := func() int {
		c := ask(t, addr, "GET", "/v1/commands", "viewer-wall")
		defer c.Close()
		status, _ := answered(t, c)
		return status
	}
	for range 8 {
		ask(t, addr, "GET", "/v1/commands", "viewer-wall")
		<-l.writing
	}
	if status := get(); status != http.StatusServiceUnavailable {
		t.Errorf("one more connection of the viewer: %d", status)
	}
	othersAreServed(t, "http://"+addr, nil)
}

// The default limit leaves three quarters of the open files to the rest.
func TestConnsFollowFileLimit(t *testing.T) {
	for files, want := range map[uint64]int{64: 16, 256: 64, 1024: 256, 4096: 1024, 1 << 20: 1024} {
		if got := api.ConnsFor(files); got != want {
			t.Errorf("%d files: %d connections, want %d", files, got, want)
		}
	}
}

// A short listener fails twice before it accepts.
type short struct {
	net.Listener
	failures int
}

func (l *short) Accept() (net.Conn, error) {
	if l.failures++; l.failures <= 2 {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.ENOSPC)}
	}
	return l.Listener.Accept()
}

// TestServeOutlivesAShortage: other processes of the user take what an accepted connection needs, such
// as epoll watches, and give it back.
func TestServeOutlivesAShortage(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.NotFoundHandler()}
	done := make(chan error, 1)
	go func() { done <- s.Serve(api.LimitConnsTo(&short{Listener: inner}, 10)) }()
	r, err := http.Get("http://" + inner.Addr().String())
	if err != nil {
		t.Fatalf("%v; %v", err, <-done)
	}
	r.Body.Close()
	_ = s.Close()
	<-done
}

// G17: probes and refusals are answered one at a time, connections in turn, however many requests they have sent ahead, and nothing
// else waits for them.
func TestRequestsWithoutTokenTakeTurns(t *testing.T) {
	const conns, each = 12, 8
	first, let := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var active, most atomic.Int32
	s := listen(t, api.Options{
		Health: func(context.Context) api.Health {
			if n := active.Add(1); n > most.Load() {
				most.Store(n)
			}
			once.Do(func() { close(first) })
			<-let
			runtime.Gosched() // to those that come beside this one
			active.Add(-1)
			return api.Health{OK: true, Status: "ok"}
		},
		Hooks: hooksFunc(func(sentinels.ID, string, triggers.Request) ([]triggers.Admission, error) { return nil, nil }),
	}, api.ListenOptions{})
	addr := s.Addr().String()
	one := "GET /health HTTP/1.1\r\nHost: " + addr + "\r\n\r\n" + "GET /v1/commands HTTP/1.1\r\nHost: " + addr + "\r\n\r\n"
	var clients []net.Conn
	for range conns {
		c := dialAs(t, addr, "")
		if _, err := io.WriteString(c, strings.Repeat(one, each)); err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	<-first
	person := &client{url: s.URL(), Client: http.Client{Transport: &http.Transport{}, Timeout: patience}}
	defer person.CloseIdleConnections()
	person.get(t, "/v1/commands")
	res, err := person.Post(s.URL()+"/v1/hooks/nightly", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal("a webhook is not answered:", err)
	}
	res.Body.Close()
	close(let)
	for _, c := range clients {
		if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(c)
		for range each {
			for _, want := range []int{http.StatusOK, http.StatusUnauthorized} {
				res, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != want {
					t.Fatalf("%s, %v; want %d", res.Status, err, want)
				}
			}
		}
	}
	if n := most.Load(); n != 1 {
		t.Errorf("%d probes were answered at the same time", n)
	}
}

// G11, G17: a refused WebSocket gives way to a new connection, as other refusals do, and has a turn.
func TestRefusedSocketsGiveWay(t *testing.T) {
	const most = 24
	leave := make(chan struct{})
	var refusals atomic.Int32
	s := listen(t, api.Options{Feed: http.NotFoundHandler(), RefuseSocket: func(http.ResponseWriter, *http.Request, bool) {
		refusals.Add(1)
		<-leave // as for a client that does not take its answer
	}}, api.ListenOptions{MaxConns: most})
	known := &client{url: s.URL(), Client: http.Client{Transport: &http.Transport{}, Timeout: patience}}
	defer known.CloseIdleConnections()
	known.get(t, "/v1/commands")
	addr := s.Addr().String()
	flood(t, addr, 3*most, "GET /ws HTTP/1.1\r\nHost: "+addr+"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", false)
	other := &client{url: s.URL(), Client: http.Client{Transport: &http.Transport{}, Timeout: patience}}
	defer other.CloseIdleConnections()
	other.get(t, "/v1/commands") // accepted behind all of them
	if !known.get(t, "/v1/commands") {
		t.Error("the connection with a token was closed for those without")
	}
	if n := refusals.Load(); n > 1 {
		t.Errorf("%d sockets were refused at the same time", n)
	}
	close(leave)
}

// G17: webhooks whose secret is not accepted, and OPTIONS, are answered one at a time; an accepted webhook keeps no other waiting.
func TestWebhooksTakeTurns(t *testing.T) {
	const conns = 12
	var active, most atomic.Int32
	accepted, first, let, stay := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	var once sync.Once
	s := listen(t, api.Options{Hooks: hooksFunc(func(id sentinels.ID, _ string, r triggers.Request) ([]triggers.Admission, error) {
		if id == "known" {
			r.Accepted()
			accepted <- struct{}{}
			<-stay
			return nil, nil
		}
		if n := active.Add(1); n > most.Load() {
			most.Store(n)
		}
		once.Do(func() { close(first) })
		<-let
		runtime.Gosched() // to those that come beside this one
		active.Add(-1)
		return nil, abi.New(abi.Denied, "wrong secret")
	})}, api.ListenOptions{})
	addr := s.Addr().String()
	var known []net.Conn
	for range 2 {
		c := dialAs(t, addr, "")
		if _, err := io.WriteString(c, "GET /v1/hooks/known HTTP/1.1\r\nHost: "+addr+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		known = append(known, c)
	}
	<-accepted
	<-accepted // beside the first
	var clients []net.Conn
	for range conns {
		c := dialAs(t, addr, "")
		if _, err := io.WriteString(c, "GET /v1/hooks/unknown HTTP/1.1\r\nHost: "+addr+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	<-first
	close(let)
	answered := func(list []net.Conn, want int) {
		t.Helper()
		for _, c := range list {
			if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
				t.Fatal(err)
			}
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != want {
				t.Fatalf("%s; want %d", res.Status, want)
			}
		}
	}
	answered(clients, http.StatusUnauthorized)
	if n := most.Load(); n != 1 {
		t.Errorf("%d webhooks without a secret were answered at the same time", n)
	}
	close(stay)
	answered(known, http.StatusNoContent)
}

// G17: a probe does not wait for all refused requests that came before it.
func TestProbesAndRefusalsAlternate(t *testing.T) {
	const refused = 12
	leave := make(chan struct{})
	var refusals, before atomic.Int32
	s := listen(t, api.Options{
		Feed:         http.NotFoundHandler(),
		RefuseSocket: func(http.ResponseWriter, *http.Request, bool) { refusals.Add(1); <-leave },
		Health: func(context.Context) api.Health {
			before.Store(refusals.Load())
			return api.Health{OK: true, Status: "ok"}
		},
	}, api.ListenOptions{})
	addr := s.Addr().String()
	flood(t, addr, refused, "GET /ws HTTP/1.1\r\nHost: "+addr+"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", false)
	wait := func(refused, open int) {
		for r, o := s.WaitForTurn(); r != refused || o != open; r, o = s.WaitForTurn() {
			runtime.Gosched()
		}
	}
	wait(refused-1, 0)
	answered := make(chan struct{})
	go func() { defer close(answered); probe(t, s.URL(), nil) }()
	wait(refused-1, 1)
	close(leave)
	<-answered
	if n := before.Load(); n > 2 {
		t.Errorf("%d refusals were answered before the probe", n)
	}
}
