package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/peer"
	"github.com/sentinel-runtime/sentinel/host/principal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// connLimit limits the number of connections. At the limit a new connection
// replaces an idle one, so that neither half-open nor idle connections lock
// others out (API.md, G6). It closes, in this order:
//
//  1. the oldest connection that has not presented a token and waits for a request or the
//     rest of one, or whose request waits for its turn or is refused;
//  2. the one with the token of an agent or viewer that has waited longest for a
//     request;
//  3. likewise with that of a person.
//
// Without a token only the age counts: were another kind closed before those that wait for a
// request, refused clients that connect again and again would close each new connection of
// others before its request arrives.
//
// A connection with any other active request is never closed, nor is one that
// is counted for a request with a token. If there is no other kind, the new
// connection waits, and the next ones wait in the kernel's queue, where they use
// no file descriptor of this process.
//
// Requests with a token may take for ever, so their number has a limit below
// that of connections, and agents and viewers have shares of it
// (API.md, G15). What is left is for requests without a token: /health,
// /ready and webhooks, which end by themselves. A connection whose handlers have
// returned is counted as one request until its answers are written: net/http keeps
// small ones in memory until the client takes them.
//
// # Concurrency
//
// Accept is called by one goroutine, everything else by any.
type connLimit struct {
	net.Listener
	max int
	log *slog.Logger

	mu      sync.Mutex
	open    map[*limitedConn]struct{}
	active  map[string]int // requests of agents and viewers, by the key of their owner
	tokens  int            // all of them
	limited int            // those of agents and viewers
	warned  time.Time
	change  chan struct{} // has one element after a connection closed or became idle
	closed  chan struct{} // closed with the listener
	once    sync.Once
}

// LimitConns bounds the connections of a listener that serves [API.Local] as those of a port
// are: at most [MaxConns], with shares of the requests on them. The server needs
// [ConnContext]. log receives that the limit is reached.
func LimitConns(l net.Listener, log *slog.Logger) net.Listener { return limitConns(l, MaxConns(), log) }

// limitConns returns l limited to n open connections.
func limitConns(l net.Listener, n int, log *slog.Logger) *connLimit {
	return &connLimit{
		Listener: l, max: n, log: log, open: map[*limitedConn]struct{}{}, active: map[string]int{}, change: make(chan struct{}, 1), closed: make(chan struct{}),
	}
}

// Accept returns the next connection when the limit allows it.
func (l *connLimit) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.ENOMEM) || errors.Is(err, syscall.ENOBUFS) {
		return nil, shortage{err}
	}
	if err != nil {
		return nil, err
	}
	c := &limitedConn{Conn: inner, limit: l, idleSince: time.Now()}
	for !l.admit(c) {
		select {
		case <-l.change:
		case <-l.closed:
			_ = inner.Close() // not returned yet
			return nil, net.ErrClosed
		}
	}
	return c, nil
}

// A shortage is an error of Accept that passes: the machine lacks memory, or the user epoll watches,
// which all of its processes share. [http.Server] tries again after an error that says so, and ends
// after any other.
type shortage struct{ error }

func (shortage) Timeout() bool   { return false }
func (shortage) Temporary() bool { return true }
func (s shortage) Unwrap() error { return s.error }

// admit counts c, and closes another connection if the limit is reached.
func (l *connLimit) admit(c *limitedConn) bool {
	l.mu.Lock()
	var evicted *limitedConn
	if len(l.open) >= l.max {
		if evicted = l.dispensable(); evicted == nil {
			l.mu.Unlock()
			return false
		}
		delete(l.open, evicted)
	}
	l.open[c] = struct{}{}
	warn := evicted != nil && time.Since(l.warned) > time.Minute
	if warn {
		l.warned = time.Now()
	}
	l.mu.Unlock()
	if evicted != nil {
		_ = evicted.Conn.Close() // its goroutine of the server gets an error and ends
	}
	if warn {
		l.log.Warn("connection limit reached, closing idle connections", "limit", l.max)
	}
	return true
}

// dispensable returns the connection to close for a new one, nil if there is
// none. l.mu is held.
func (l *connLimit) dispensable() *limitedConn {
	var found *limitedConn
	best := neverEvicted
	for c := range l.open {
		switch rank := c.rank(); {
		case rank > best, rank == neverEvicted:
		case rank < best, c.idleSince.Before(found.idleSince):
			found, best = c, rank
		}
	}
	return found
}

// changed wakes a waiting Accept.
func (l *connLimit) changed() {
	select {
	case l.change <- struct{}{}:
	default: // it is woken already
	}
}

// Close also ends a waiting Accept.
func (l *connLimit) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// limitedConn is a connection that a [connLimit] counts. Its fields are guarded
// by the limit's lock.
type limitedConn struct {
	net.Conn
	limit     *connLimit
	idleSince time.Time // when it was accepted, or with a token its last request ended
	requests  int       // active handlers
	yielding  int       // the active handlers that wait for their body or turn, or refuse the request
	token     bool      // a request has had a valid token
	person    bool      // one of a person
	admitted  int       // the active handlers of requests with a token, each counted for its owner
	answering bool      // the server reports a request whose answer is not written yet
	unwritten *owner    // without admitted ones, whose answers may not be written: counted as one request

	body atomic.Pointer[bodyPlace] // of the request whose body is read; not guarded
}

// Read implements [net.Conn].
func (c *limitedConn) Read(p []byte) (int, error) {
	at := c.body.Load()
	at.wait()
	n, err := c.Conn.Read(p)
	if n > 0 {
		if refused := at.arrived(); refused != nil {
			return 0, refused
		}
	}
	return n, err
}

// Write implements [net.Conn].
func (c *limitedConn) Write(p []byte) (int, error) {
	c.body.Load().wait()
	return c.Conn.Write(p)
}

// neverEvicted is the rank of a connection that must not be closed.
const neverEvicted = 3

// rank is the order in which connections are closed, the lowest first.
func (c *limitedConn) rank() int {
	switch {
	case c.token && (c.admitted > 0 || c.unwritten != nil), c.requests > c.yielding:
		return neverEvicted
	case c.person:
		return 2
	case c.token:
		return 1
	}
	return 0
}

// Close closes the connection and stops counting it. It may be called more than
// once.
func (c *limitedConn) Close() error {
	c.limit.mu.Lock()
	delete(c.limit.open, c)
	c.written()
	c.limit.mu.Unlock()
	c.limit.changed()
	return c.Conn.Close()
}

// note changes the state of the connection.
func (c *limitedConn) note(change func()) {
	if c == nil { // a request without a limited connection
		return
	}
	c.limit.mu.Lock()
	change()
	c.limit.mu.Unlock()
	c.limit.changed()
}

// begin and end count active requests.
func (c *limitedConn) begin() { c.note(func() { c.requests++ }) }
func (c *limitedConn) end() {
	c.note(func() {
		if c.requests--; c.token {
			c.idleSince = time.Now()
		}
	})
}

// yield records that a request may give way to a new connection until end is called.
func (c *limitedConn) yield() (end func()) {
	c.note(func() { c.yielding++ })
	return func() { c.note(func() { c.yielding-- }) }
}

// trusted records that a request had a valid token.
func (c *limitedConn) trusted(p principal.Principal) {
	c.note(func() {
		c.token = true
		c.person = c.person || p.Kind == principal.Person
	})
}

// enter counts a request with a token until leave is called, or returns why it
// cannot be executed. After the last one the connection stays counted until its
// answers are written.
func (c *limitedConn) enter(o owner) (leave func(), err error) {
	if c == nil {
		return func() {}, nil
	}
	l := c.limit
	l.mu.Lock()
	defer l.mu.Unlock()
	before := c.unwritten
	c.unwrite(nil) // the request takes its place
	if err := l.busy(o); err != nil {
		c.unwrite(before)
		return nil, err
	}
	l.count(o, 1)
	c.admitted++
	return func() {
		c.note(func() {
			l.count(o, -1)
			if _, open := l.open[c]; open && c.admitted == 1 && c.answering {
				c.unwrite(&o)
			}
			c.admitted--
		})
	}, nil
}

// unwrite counts the connection for the owner of answers that may not be written, nil for
// none, in place of the owner before; the limit's lock is held.
func (c *limitedConn) unwrite(o *owner) {
	if c.unwritten != nil {
		c.limit.count(*c.unwritten, -1)
	}
	if c.unwritten = o; o != nil {
		c.limit.count(*o, 1)
	}
}

// written records that all answers are written, or will not be; the limit's lock is held.
func (c *limitedConn) written() {
	c.answering = false
	c.unwrite(nil)
}

// count adds n requests; l.mu is held.
func (l *connLimit) count(o owner, n int) {
	l.tokens += n
	if !o.limited() {
		return
	}
	l.limited += n
	if l.active[o.key] += n; l.active[o.key] == 0 {
		delete(l.active, o.key)
	}
}

// busy returns the error of the limit that another request exceeds, nil if
// there is none; l.mu is held. A person has no share: persons can stop the
// server anyway.
func (l *connLimit) busy(o owner) error {
	share, together, all := max(int(o.share(int64(l.max))), 1), max(int(reserved(int64(l.max))), 1), l.max-l.max/8
	switch {
	case o.limited() && l.active[o.key] >= share:
		return tooBusy(fmt.Sprintf("%s has %d on this listener, the most that one agent or viewer may have", o.key, share))
	case o.limited() && l.limited >= together:
		return tooBusy(fmt.Sprintf("agents and viewers have %d on this listener, the most that they may have together", together))
	case l.tokens >= all:
		return tooBusy(fmt.Sprintf("this listener has %d, and the rest of its connections is for /health, /ready and webhooks", all))
	}
	return nil
}

func tooBusy(limit string) error {
	return &abi.Error{Code: abi.Unavailable, Message: "too many requests at once: " + limit, RetryAfterMs: 1000, Hint: "end requests that wait, such as those of sentinel/await and /ws, or send it again later"}
}

type connKey struct{}

// limited returns the counted connection below c, nil if there is none.
func limited(c net.Conn) *limitedConn {
	if over, ok := c.(interface{ NetConn() net.Conn }); ok { // TLS
		c = over.NetConn()
	}
	l, _ := c.(*limitedConn)
	return l
}

// ConnState is for the field of that name of a program's own [http.Server] that has [ConnContext]. A
// connection with a valid token whose answer is not written yet then counts for the owner of the token, and
// is not closed for a new one.
func ConnState(c net.Conn, state http.ConnState) {
	l := limited(c)
	switch {
	case l == nil:
	case state == http.StateActive:
		l.note(func() { l.answering = true })
	case state == http.StateIdle, state == http.StateHijacked:
		l.note(l.written)
	}
}

// ConnContext is for the field of that name of a program's own [http.Server] that serves
// [API.Handler] or [API.Local]: the process at the other end of a connection is then looked up once for
// the connection, and not for each request.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if l := limited(c); l != nil {
		return context.WithValue(peer.ConnContext(ctx, l.Conn), connKey{}, l)
	}
	return peer.ConnContext(ctx, c)
}

// connOf returns the connection of a request, nil for one without a limit.
func connOf(ctx context.Context) *limitedConn {
	c, _ := ctx.Value(connKey{}).(*limitedConn)
	return c
}

// MaxConns is the default limit of connections of a listener: 1,024, and at
// most a quarter of the file descriptors of the process, so that three quarters
// are left for the store and for runs.
func MaxConns() int {
	files, known := fileLimit()
	if !known {
		return maxConns
	}
	return connsFor(files)
}

// connsFor returns the limit of connections for a process with this limit of
// open files.
func connsFor(files uint64) int { return int(max(min(files/4, maxConns), minConns)) }
