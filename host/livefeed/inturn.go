package livefeed

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// pongEvery is how often a client's pings are answered at most. The one that is answered stands for those before it,
// as RFC 6455, 5.5.3 permits.
const pongEvery = 100 * time.Millisecond

// inTurn is a response whose connection works in turn once it is hijacked, see [turns].
type inTurn struct {
	http.ResponseWriter
	turns *turns
}

// Hijack implements [http.Hijacker].
func (w inTurn) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	w.turns.Conn = conn
	rw.Writer.Reset(w.turns)
	return w.turns, rw, nil
}

// turns is the connection of a socket. What its client sent is worked through in a place of
// [HandlerOptions.Busy]: control frames and empty frames, which no message counts, as well as messages. The place is
// held from the moment that bytes have arrived until the next are read, or something is written, which
// may wait for the client.
//
// # Concurrency
//
// One goroutine at a time reads and calls take; any may write.
type turns struct {
	net.Conn
	ctx  context.Context // of the request that opened the socket
	busy func(ctx context.Context) (done func(), err error)

	mu    sync.Mutex
	leave func() // nil while no place is held

	ponged time.Time // when a ping was answered; used by the reader
}

// Read implements [net.Conn].
func (t *turns) Read(b []byte) (int, error) {
	t.giveBack()
	n, err := t.Conn.Read(b)
	if n > 0 {
		if refused := t.take(); refused != nil {
			return 0, refused
		}
	}
	return n, err
}

// Write implements [net.Conn].
func (t *turns) Write(b []byte) (int, error) {
	t.giveBack()
	return t.Conn.Write(b)
}

// take waits for the place, unless it is held. An error is of the request's context.
func (t *turns) take() error {
	t.mu.Lock()
	held := t.leave != nil
	t.mu.Unlock()
	if held {
		return nil
	}
	leave, err := t.busy(t.ctx)
	if err != nil {
		return err
	}
	t.mu.Lock()
	t.leave = leave
	t.mu.Unlock()
	return nil
}

// giveBack gives the place back if it is held.
func (t *turns) giveBack() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.leave != nil {
		t.leave()
		t.leave = nil
	}
}

// answers reports whether a ping is answered.
func (t *turns) answers(context.Context, []byte) bool {
	now := time.Now()
	if now.Sub(t.ponged) < pongEvery {
		return false
	}
	t.ponged = now
	return true
}
