package api

import (
	"net"
	"sync"
)

// limited accepts a connection only while fewer than its room are open. Those
// beyond wait in the kernel's queue, where they cost us nothing.
type limited struct {
	net.Listener
	room   chan struct{} // holds one for every connection that is open
	closed chan struct{} // closed with the listener
	once   sync.Once
}

// limitConns returns l with room for n connections at once.
func limitConns(l net.Listener, n int) net.Listener {
	return &limited{Listener: l, room: make(chan struct{}, n), closed: make(chan struct{})}
}

// Accept waits for room and for a connection.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.room <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.room
		return nil, err
	}
	return &limitedConn{Conn: c, leave: sync.OnceFunc(func() { <-l.room })}, nil
}

// Close also ends an Accept that waits for room.
func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// limitedConn gives its room back once.
type limitedConn struct {
	net.Conn
	leave func()
}

// Close gives the room back, however often it is called.
func (c *limitedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
