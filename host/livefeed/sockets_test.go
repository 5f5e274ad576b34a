package livefeed_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	stdruntime "runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/livefeed"
	"github.com/sentinel-runtime/sentinel/host/principal"
)

// served is a feed behind a real listener.
type served struct {
	*livefeed.Feed
	sockets *livefeed.Sockets
	url     string
}

func serve(t testing.TB, o livefeed.HandlerOptions, fo livefeed.Options) served {
	t.Helper()
	o.Feed = open(t, fo)
	h := livefeed.Handler(o)
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	t.Cleanup(h.Close)
	return served{o.Feed, h, srv.URL + "/ws"}
}

// message is all that a server may send.
type message struct {
	Hello      *place          `json:"hello"`
	Type       string          `json:"type"`
	Subscribed *place          `json:"subscribed"`
	Cursor     string          `json:"cursor"`
	Topic      string          `json:"topic"`
	Also       []string        `json:"also"`
	Kind       string          `json:"kind"`
	Time       time.Time       `json:"time"`
	Event      json.RawMessage `json:"event"`
	Gap        *struct {
		livefeed.Gap
		Cursor string `json:"cursor"`
	} `json:"gap"`
}

type place struct {
	Cursor  string   `json:"cursor"`
	Version string   `json:"version"`
	Topics  []string `json:"topics"`
}

type client struct {
	*websocket.Conn
	t testing.TB
}

func dial(t testing.TB, url string) client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{Subprotocols: []string{livefeed.Subprotocol, "token.secret"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.CloseNow() })
	return client{c, t}
}

func (c client) read() (message, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	kind, b, err := c.Read(ctx)
	if err != nil {
		return message{}, err
	}
	var m message
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil || kind != websocket.MessageText {
		return message{}, fmt.Errorf("%s: %w", b, err)
	}
	return m, nil
}

func (c client) must() message {
	c.t.Helper()
	m, err := c.read()
	if err != nil {
		c.t.Fatal(err)
	}
	return m
}

// closed reads until the connection ends, and says how.
func (c client) closed() (websocket.StatusCode, string) {
	for {
		if _, err := c.read(); err != nil {
			var closed websocket.CloseError
			if errors.As(err, &closed) {
				return closed.Code, closed.Reason
			}
			return -1, err.Error()
		}
	}
}

func (c client) send(text string) {
	c.t.Helper()
	if err := c.Write(c.t.Context(), websocket.MessageText, []byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

// TestSocketsHideLaterSecrets: what became a secret after it was published is not in the messages to agents
// and viewers.
func TestSocketsHideLaterSecrets(t *testing.T) {
	feed := open(t, livefeed.Options{Epoch: "e"})
	h := livefeed.Handler(livefeed.HandlerOptions{Feed: feed, Redact: func(message json.RawMessage) json.RawMessage {
		return bytes.ReplaceAll(message, []byte("hunter2"), []byte("***"))
	}})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(principal.With(r.Context(), principal.Principal{Kind: principal.Kind(r.URL.Query().Get("kind"))})))
	}))
	t.Cleanup(srv.Close)
	t.Cleanup(h.Close)
	feed.Publish("health", "hunter2", map[string]string{"a": "hunter2"})
	for kind, want := range map[principal.Kind]string{principal.Viewer: "***", principal.Agent: "***", principal.Person: "hunter2", "": "hunter2"} {
		c := dial(t, srv.URL+"/ws?topics=health&cursor=e-0&kind="+string(kind))
		c.must()
		if got := c.must(); string(got.Event) != `{"a":"`+want+`"}` || got.Kind != want || got.Cursor != "e-1" {
			t.Errorf("%q: %s %s %s", kind, got.Kind, got.Event, got.Cursor)
		}
	}
}

func TestSocketMessages(t *testing.T) {
	s := serve(t, livefeed.HandlerOptions{Version: "1.2.3"}, livefeed.Options{Epoch: "e", Now: func() time.Time { return time.Unix(1e9, 5).UTC() }})
	c := dial(t, s.url+"?topics=health,runs&topics=plugins")
	if got := c.Subprotocol(); got != livefeed.Subprotocol {
		t.Errorf("subprotocol %q", got)
	}
	if diff := cmp.Diff(&place{"e-0", "1.2.3", []string{"health", "runs", "plugins"}}, c.must().Hello); diff != "" {
		t.Error(diff)
	}
	s.Publish("health", "ok", map[string]bool{"ok": true})
	want := message{Cursor: "e-1", Topic: "health", Kind: "ok", Time: time.Unix(1e9, 5).UTC(), Event: json.RawMessage(`{"ok":true}`)}
	if diff := cmp.Diff(want, c.must()); diff != "" {
		t.Error(diff)
	}
	c.send(`{"subscribe":["events:a:**"],"unsubscribe":["health"]}`)
	if diff := cmp.Diff(&place{"e-1", "", []string{"runs", "plugins", "events:a:**"}}, c.must().Subscribed); diff != "" {
		t.Error(diff)
	}
	s.Publish("health", "ok", nil)
	s.Publish("events:a:b", "a:b", nil)
	if m := c.must(); m.Cursor != "e-3" || m.Topic != "events:a:**" {
		t.Errorf("%+v", m)
	}
	c.Close(websocket.StatusNormalClosure, "")

	// Another client offers no subprotocol, and comes back from an earlier process.
	plain, _, err := websocket.Dial(t.Context(), s.url+"?topics=health&cursor=d-77", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.CloseNow()
	d := client{plain, t}
	if m := d.must(); m.Hello == nil || m.Hello.Cursor != "e-3" {
		t.Errorf("%+v", m)
	}
	if m := d.must(); m.Gap == nil || m.Gap.Lost != -1 || m.Gap.Cursor != "e-3" {
		t.Errorf("%+v", m)
	}
}

func TestSocketRefuses(t *testing.T) {
	s := serve(t, livefeed.HandlerOptions{MaxConns: 1, AllowedOrigins: func(r *http.Request) bool { return r.Header.Get("Origin") == "https://mine.example" }}, livefeed.Options{})
	get := func(query, origin string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Origin": origin} {
			if v != "" {
				r.Header.Set(k, v)
			}
		}
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if answer.StatusCode == http.StatusSwitchingProtocols {
			return answer.StatusCode, ""
		}
		b, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(b)
	}
	for _, c := range []struct {
		query, origin string
		status        int
		words         string
	}{
		{"?topics=nothing", "", 400, `topic \"nothing\": unknown topic`},
		{"?topics=runs&cursor=no", "", 400, `"field":"cursor"`},
		{"?topics=runs", "https://evil.example", 403, `"code":"denied"`},
		{"?topics=runs", "https://mine.example", 101, ""},
	} {
		if status, body := get(c.query, c.origin); status != c.status || !strings.Contains(body, c.words) {
			t.Errorf("%s from %q: %d %s", c.query, c.origin, status, body)
		}
	}
	empty := func() {
		for s.sockets.Stats().Open > 0 {
			time.Sleep(time.Millisecond)
		}
	}
	empty() // the one that was accepted has left
	first := dial(t, s.url)
	first.must()
	if status, body := get("?topics=runs", ""); status != 503 || !strings.Contains(body, "too many") {
		t.Errorf("%d %s", status, body)
	}
	if st := s.sockets.Stats(); st.Open != 1 || st.Refused != 1 {
		t.Errorf("%+v", st)
	}
	first.Close(websocket.StatusNormalClosure, "")
	empty()
	dial(t, s.url).must() // its place is free again
}

func TestSocketIsClosedForCause(t *testing.T) {
	s := serve(t, livefeed.HandlerOptions{}, livefeed.Options{})
	for _, c := range []struct {
		send string
		code websocket.StatusCode
		why  string
	}{
		{`{"subscribe":["nothing"]}`, 1008, `topic "nothing": unknown topic`},
		{`{"subscribe":"runs"}`, 1008, "read message"},
		{`{"subscrib":["runs"]}`, 1008, "unknown key"},
		{`{}`, 1008, "neither"},
		{`{"subscribe":["runs"]} {}`, 1008, "text after the JSON value"},
		{`{"subscribe":["` + strings.Repeat("x", 2000) + `"]}`, 1008, "no such"},
		{"{\"subscribe\":[\"" + strings.Repeat("x", 33<<10) + "\"]}", 1009, "too big"},
	} {
		k := dial(t, s.url)
		k.must()
		k.send(c.send)
		if code, why := k.closed(); code != c.code || len(c.send) < 100 && !strings.Contains(why, c.why) {
			t.Errorf("%.60s: %d %q", c.send, code, why)
		}
	}
	k := dial(t, s.url)
	k.must()
	if err := k.Write(t.Context(), websocket.MessageBinary, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if code, why := k.closed(); code != 1008 || !strings.Contains(why, "binary") {
		t.Errorf("%d %q", code, why)
	}
	k = dial(t, s.url)
	k.must()
	var ending sync.WaitGroup
	ending.Go(s.sockets.Close) // waits until the client has answered
	if code, _ := k.closed(); code != 1001 {
		t.Errorf("at the end of the host: %d", code)
	}
	ending.Wait()
}

// TestIdleSocketReceivesCursor keeps the cursor of a client without
// news from growing older than the ring.
func TestIdleSocketReceivesCursor(t *testing.T) {
	s := serve(t, livefeed.HandlerOptions{PingEvery: 20 * time.Millisecond}, livefeed.Options{Epoch: "e", Entries: 4})
	c := dial(t, s.url+"?topics=health")
	c.must()
	numbers(s.Feed, "plugins", 0, 50)
	for {
		m := c.must()
		if m.Topic != "" || m.Gap != nil {
			t.Fatalf("%+v", m)
		}
		if m.Cursor == "e-50" {
			break
		}
	}
	c.Close(websocket.StatusNormalClosure, "")
	again := dial(t, s.url+"?topics=health&cursor=e-50")
	again.must()
	numbers(s.Feed, "health", 0, 1)
	if m := again.must(); m.Kind != "n" {
		t.Errorf("%+v", m)
	}
}

// TestManyWatchers has 500 sockets with topics of their own and one in common,
// each of which gets all of both, in order.
func TestManyWatchers(t *testing.T) {
	const watchers, each = 500, 20
	s := serve(t, livefeed.HandlerOptions{MaxConns: watchers}, livefeed.Options{})
	var ready, done sync.WaitGroup
	ready.Add(watchers)
	for i := range watchers {
		done.Go(func() {
			c := dial(t, fmt.Sprintf("%s?topics=run:r%d,health", s.url, i))
			c.must()
			ready.Done()
			mine, all := 0, 0
			for mine+all < 2*each {
				m, err := c.read()
				if err != nil || m.Gap != nil {
					t.Errorf("watcher %d: %v %+v", i, err, m)
					return
				}
				switch m.Topic {
				case "health":
					if string(m.Event) != fmt.Sprint(all) {
						t.Errorf("watcher %d: %s after %d", i, m.Event, all)
						return
					}
					all++
				case fmt.Sprintf("run:r%d", i):
					mine++
				default:
					t.Errorf("watcher %d got %s", i, m.Topic)
					return
				}
			}
		})
	}
	ready.Wait()
	for n := range each {
		s.Publish("health", "n", n)
		for i := range watchers {
			s.Publish(fmt.Sprintf("run:r%d", i), "n", n)
		}
	}
	done.Wait()
}

// TestSlowReaderIsDropped has a client that takes nothing. It costs no memory
// that grows, it is cut off, and with its last cursor it comes back.
func TestSlowReaderIsDropped(t *testing.T) {
	s := serve(t, livefeed.HandlerOptions{WriteTimeout: 300 * time.Millisecond}, livefeed.Options{Bytes: 1 << 20, Epoch: "e"})
	c := dial(t, s.url+"?topics=run:a")
	c.SetReadLimit(1 << 20)
	c.must()
	body := strings.Repeat("x", 60<<10)
	var before, after stdruntime.MemStats
	stdruntime.GC()
	stdruntime.ReadMemStats(&before)
	published := 0
	for s.sockets.Stats().Dropped == 0 {
		s.Publish("run:a", "n", body)
		if published++; published%200 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	stdruntime.GC()
	stdruntime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
		t.Errorf("%d bytes more after %d entries", grown, published)
	}
	var cursor string
	for {
		m, err := c.read()
		if err != nil {
			break
		}
		if cursor = m.Cursor; m.Gap != nil {
			cursor = m.Gap.Cursor
		}
	}
	if cursor == "" {
		t.Fatal("nothing came before the end")
	}
	again := dial(t, s.url+"?topics=run:a&cursor="+cursor)
	again.SetReadLimit(1 << 20)
	again.must()
	if m := again.must(); m.Gap == nil || m.Gap.Lost <= 0 {
		t.Errorf("%.200v", m)
	}
	if m := again.must(); m.Kind != "n" {
		t.Errorf("%.200v", m)
	}
}

// TestLappedReaderIsDropped has a client that reads, but always too late.
func TestLappedReaderIsDropped(t *testing.T) {
	s := serve(t, livefeed.HandlerOptions{Laps: 3}, livefeed.Options{Entries: 4})
	c := dial(t, s.url+"?topics=health")
	c.must()
	stop := make(chan struct{})
	var publishing sync.WaitGroup
	publishing.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
				numbers(s.Feed, "health", n, n+100)
			}
		}
	})
	code, why := c.closed()
	close(stop)
	publishing.Wait()
	if code != websocket.StatusTryAgainLater || !strings.Contains(why, "cursor") {
		t.Errorf("%d %q", code, why)
	}
}

// TestSocketResumesWhilePublishing cuts the connection again and again.
func TestSocketResumesWhilePublishing(t *testing.T) {
	const total = 5000
	s := serve(t, livefeed.HandlerOptions{}, livefeed.Options{Entries: total})
	cursor := s.Cursor().String()
	var publishing sync.WaitGroup
	publishing.Go(func() { numbers(s.Feed, "health", 0, total) })
	cuts := 0
	for n := 0; n < total; cuts++ {
		c := dial(t, s.url+"?topics=health&cursor="+cursor)
		for c.must(); n < total; {
			m, err := c.read()
			if err != nil {
				t.Fatal(err)
			}
			if string(m.Event) != fmt.Sprint(n) {
				t.Fatalf("%+v after %d", m, n)
			}
			n++
			cursor = m.Cursor
			if n%311 == 0 {
				c.CloseNow()
				break
			}
		}
	}
	publishing.Wait()
	if cuts < 10 {
		t.Errorf("%d cuts", cuts)
	}
}

// TestDeadClientIsNoticed has one that answers no pings: its side of the
// connection is open, and not read.
func TestDeadClientIsNoticed(t *testing.T) {
	s := serve(t, livefeed.HandlerOptions{PingEvery: 20 * time.Millisecond, PingTimeout: 50 * time.Millisecond}, livefeed.Options{})
	conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/ws"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
	conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
	if _, err := io.Copy(io.Discard, conn); err != nil {
		t.Error("the server did not cut the connection:", err)
	}
}

// asCaller serves the sockets to whom the query names: "agent:a", "viewer:v", "" for a person.
func asCaller(t *testing.T, h http.Handler) string {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, name, _ := strings.Cut(r.URL.Query().Get("as"), ":")
		h.ServeHTTP(w, r.WithContext(principal.With(r.Context(), principal.Principal{Kind: principal.Kind(kind), Name: name})))
	}))
	t.Cleanup(srv.Close)
	return srv.URL + "/ws?as="
}

// TestSocketsOfPersonsAreLeft: an agent or viewer has a quarter of the sockets, and all of them half together.
func TestSocketsOfPersonsAreLeft(t *testing.T) {
	s := serve(t, livefeed.HandlerOptions{MaxConns: 8}, livefeed.Options{})
	url := asCaller(t, s.sockets)
	for _, who := range []string{"agent:a", "agent:a", "viewer:v", "agent:b"} {
		dial(t, url+who)
	}
	for who, why := range map[string]string{"agent:a": "the most that one", "agent:c": "together"} {
		_, res, err := websocket.Dial(t.Context(), url+who, nil)
		if err == nil || res == nil || res.StatusCode != http.StatusServiceUnavailable {
			t.Fatalf("%s: %v", who, err)
		}
		if b, _ := io.ReadAll(res.Body); !strings.Contains(string(b), why) {
			t.Errorf("%s: %s", who, b)
		}
	}
	for range 4 {
		dial(t, url)
	}
}

// TestMessagesWaitForTheirPlace: a message of a client is executed in its place, and the answer is written without it.
func TestMessagesWaitForTheirPlace(t *testing.T) {
	busy, free, opened := make(chan struct{}), make(chan struct{}, 10), atomic.Bool{}
	s := serve(t, livefeed.HandlerOptions{Busy: func(ctx context.Context) (func(), error) {
		if principal.From(ctx).Kind != principal.Agent || !opened.Swap(true) {
			return func() {}, nil
		}
		<-busy
		return func() { free <- struct{}{} }, nil
	}}, livefeed.Options{})
	url := asCaller(t, s.sockets)
	c := dial(t, url+"agent:a")
	c.must()
	c.send(`{"subscribe":["runs"]}`)
	person := dial(t, url)
	person.must()
	person.send(`{"subscribe":["runs"]}`) // waits for no place
	if m := person.must(); m.Subscribed == nil {
		t.Errorf("%+v", m)
	}
	close(busy)
	<-free
	if m := c.must(); m.Subscribed == nil {
		t.Errorf("%+v", m)
	}
}

// TestSocketsOpenAndCloseInTheirPlace: runs wait for the lock of the feed, so a client that opens and drops sockets with
// many topics does so in its place. One that may have no further socket waits for none.
func TestSocketsOpenAndCloseInTheirPlace(t *testing.T) {
	asked, free := make(chan struct{}), make(chan struct{})
	s := serve(t, livefeed.HandlerOptions{MaxConns: 1, Busy: func(context.Context) (func(), error) {
		asked <- struct{}{}
		<-free
		return func() {}, nil
	}}, livefeed.Options{})
	opened := make(chan *websocket.Conn)
	go func() {
		conn, _, err := websocket.Dial(t.Context(), s.url+"?topics=runs", nil)
		if err != nil {
			t.Error(err)
		}
		opened <- conn
	}()
	select {
	case <-asked:
	case <-opened:
		t.Fatal("the socket was opened without a place")
	}
	if n := s.Stats().Subscribers; n != 0 {
		t.Errorf("%d subscriptions without a place", n)
	}
	if _, res, err := websocket.Dial(t.Context(), s.url+"?topics=runs", nil); err == nil || res == nil || res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one more: %v", err)
	}
	free <- struct{}{}
	(<-opened).CloseNow()
	<-asked
	if n := s.Stats().Subscribers; n != 1 {
		t.Errorf("%d subscriptions, want 1: it was closed without a place", n)
	}
	free <- struct{}{}
}

// TestFramesWaitForTheirPlace: frames that are no message are worked through in the place of their client, too. It is
// given back before a pong is written, and pings that come close together have one answer.
func TestFramesWaitForTheirPlace(t *testing.T) {
	asked, free, held, opened := make(chan struct{}, 1000), make(chan struct{}), atomic.Bool{}, atomic.Bool{}
	s := serve(t, livefeed.HandlerOptions{Busy: func(context.Context) (func(), error) {
		if !opened.Swap(true) {
			return func() {}, nil
		}
		asked <- struct{}{}
		<-free
		held.Store(true)
		return func() { held.Store(false) }, nil
	}}, livefeed.Options{})
	conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/ws"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	send := func(text string) {
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
	}
	send("GET /ws HTTP/1.1\r\nHost: " + conn.RemoteAddr().String() + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	if _, err := http.ReadResponse(in, nil); err != nil {
		t.Fatal(err)
	}
	opcode := func() byte { // of the next frame
		var head [2]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			t.Fatal(err)
		}
		length := int64(head[1])
		if length == 126 {
			var long [2]byte
			if _, err := io.ReadFull(in, long[:]); err != nil {
				t.Fatal(err)
			}
			length = int64(binary.BigEndian.Uint16(long[:]))
		}
		if _, err := io.CopyN(io.Discard, in, length); err != nil {
			t.Fatal(err)
		}
		return head[0] & 0xf
	}
	const text, ping, pong, empty = 1, "\x89\x80\x00\x00\x00\x00", 0xa, "\x00\x80\x00\x00\x00\x00"
	if got := opcode(); got != text {
		t.Fatalf("a frame of kind %d for the first message", got)
	}
	send(strings.Repeat(ping, 100))
	<-asked
	close(free)
	if got := opcode(); got != pong || held.Load() {
		t.Fatalf("a frame of kind %d in answer to pings, written in the place: %t", got, held.Load())
	}
	for len(asked) > 0 {
		<-asked
	}
	send("\x01\x80\x00\x00\x00\x00" + strings.Repeat(empty, 1000)) // a message that does not end
	<-asked
}

// TestMessageWithManyTopics: what one message looks for is bounded, whether the topics are subscribed to or not.
func TestMessageWithManyTopics(t *testing.T) {
	many := `["runs"` + strings.Repeat(`,"runs"`, livefeed.MaxTopics) + `]`
	for _, field := range []string{"subscribe", "unsubscribe"} {
		c := dial(t, serve(t, livefeed.HandlerOptions{}, livefeed.Options{}).url)
		c.must()
		c.send(`{"` + field + `":` + many + `}`)
		if _, _, err := c.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
			t.Errorf("%s: %v", field, err)
		}
	}
}
