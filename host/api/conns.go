package api

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"time"
)

// connLimit accepts at most a number of connections. At the limit a new
// connection takes the place of one that does nothing, so that neither half-open
// nor idle connections lock others out (API.md, G6):
//
//  1. the oldest connection that has not presented a token and waits for a
//     request, or for the rest of one;
//  2. the oldest one without a token whose body is still arriving;
//  3. the oldest one with a token that waits for a request.
//
// A connection with any other request under way is never closed. If there is no
// other kind, the new connection waits, and those behind it wait in the kernel's
// queue, where they take no file of this process.
//
// # Concurrency
//
// Accept is called by one goroutine, everything else by any.
type connLimit struct {
	net.Listener
	max int
	log *slog.Logger

	mu     sync.Mutex
	open   map[*limitedConn]struct{}
	warned time.Time
	change chan struct{} // has one element after a connection closed or became idle
	closed chan struct{} // closed with the listener
	once   sync.Once
}

// limitConns returns l with room for n connections at once.
func limitConns(l net.Listener, n int, log *slog.Logger) *connLimit {
	return &connLimit{
		Listener: l, max: n, log: log, open: map[*limitedConn]struct{}{}, change: make(chan struct{}, 1), closed: make(chan struct{}),
	}
}

// Accept returns the next connection once there is room for it.
func (l *connLimit) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &limitedConn{Conn: inner, limit: l, idleSince: time.Now()}
	for !l.admit(c) {
		select {
		case <-l.change:
		case <-l.closed:
			_ = inner.Close() // not handed out yet
			return nil, net.ErrClosed
		}
	}
	return c, nil
}

// admit counts c in, if need be in the place of another connection.
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
		_ = evicted.Conn.Close() // its server sees that and ends it
	}
	if warn {
		l.log.Warn("connection limit reached, connections that do nothing are closed", "limit", l.max)
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

// changed wakes an Accept that waits for room.
func (l *connLimit) changed() {
	select {
	case l.change <- struct{}{}:
	default: // it will look anyway
	}
}

// Close also ends an Accept that waits for room.
func (l *connLimit) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// limitedConn is a connection that a [connLimit] counts. Its fields are guarded
// by the limit's lock.
type limitedConn struct {
	net.Conn
	limit     *connLimit
	idleSince time.Time // when it was accepted, or its last request ended
	requests  int       // handlers at work; HTTP/2 has several
	arriving  int       // of those, the ones that wait for their body
	token     bool      // a request of it has presented a good token
}

// neverEvicted is the rank of a connection that has to stay.
const neverEvicted = 3

// rank is the order in which connections are given up, the lowest first.
func (c *limitedConn) rank() int {
	switch {
	case c.token && c.requests == 0:
		return 2
	case c.token:
		return neverEvicted
	case c.requests == 0:
		return 0
	case c.arriving == c.requests:
		return 1
	}
	return neverEvicted
}

// Close gives the room back, however often it is called.
func (c *limitedConn) Close() error {
	c.limit.mu.Lock()
	delete(c.limit.open, c)
	c.limit.mu.Unlock()
	c.limit.changed()
	return c.Conn.Close()
}

// note changes what is known of the connection.
func (c *limitedConn) note(change func()) {
	if c == nil { // a request that came some other way
		return
	}
	c.limit.mu.Lock()
	change()
	c.limit.mu.Unlock()
	c.limit.changed()
}

// begin and end count a request in and out.
func (c *limitedConn) begin() { c.note(func() { c.requests++ }) }
func (c *limitedConn) end()   { c.note(func() { c.requests--; c.idleSince = time.Now() }) }

// waitForBody notes that a request waits for its body until arrived is called.
func (c *limitedConn) waitForBody() (arrived func()) {
	c.note(func() { c.arriving++ })
	return func() { c.note(func() { c.arriving-- }) }
}

// trusted notes that a request presented a good token.
func (c *limitedConn) trusted() { c.note(func() { c.token = true }) }

type connKey struct{}

// withConn is the ConnContext of a server: its requests know their connection.
func withConn(ctx context.Context, c net.Conn) context.Context {
	if over, ok := c.(interface{ NetConn() net.Conn }); ok { // TLS
		c = over.NetConn()
	}
	if limited, ok := c.(*limitedConn); ok {
		return context.WithValue(ctx, connKey{}, limited)
	}
	return ctx
}

// connOf returns the connection of a request, nil for one without a limit.
func connOf(ctx context.Context) *limitedConn {
	c, _ := ctx.Value(connKey{}).(*limitedConn)
	return c
}

// MaxConns is how many connections a listener of this process takes by
// default: 1,024, and at most a quarter of the files that the process may
// have open, so that three quarters are left for the store and for runs.
func MaxConns() int {
	files, known := fileLimit()
	if !known {
		return maxConns
	}
	return connsFor(files)
}

// connsFor is the limit of connections in a process that may open so many files.
func connsFor(files uint64) int { return int(max(min(files/4, maxConns), minConns)) }
