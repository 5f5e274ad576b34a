package livefeed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/sentinel-runtime/sentinel/host/principal"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
)

// Why a socket ends. A client that leaves is none of these.
var (
	errSlow       = errors.New("reader is too slow")
	errBadMessage = errors.New("invalid message") // 1008, with the reason
)

// closeTimeout is how long a client may take to answer a close frame before the
// connection is cut.
const closeTimeout = 2 * time.Second

// A socket is the connection of one client.
type socket struct {
	handler *Sockets
	conn    *websocket.Conn
	sub     *Subscription
	redact  func(json.RawMessage) json.RawMessage // of messages with entries, nil for none
	turns   *turns

	// life is the context of reads and writes. It ends closeTimeout after the socket
	// is to end, which cuts the connection.
	life context.Context

	sent uint64      // the position that the client has; used by the writer only, like laps
	laps []time.Time // when the ring last overwrote unread entries of the client
}

// serve serves the socket until it ends, and returns why it ended.
func (s *socket) serve(base context.Context) error {
	ctx, cancel := context.WithCancelCause(base)
	life, cut := context.WithCancel(context.Background())
	defer cut()
	context.AfterFunc(ctx, func() { time.AfterFunc(closeTimeout, cut) })
	s.life = life
	s.conn.SetReadLimit(readLimit)
	var helpers sync.WaitGroup
	helpers.Go(func() { s.listen(cancel) })
	helpers.Go(func() { s.ping(ctx, cancel) })
	err := s.write(ctx)
	cancel(err)
	s.closeWith(err)
	helpers.Wait()
	return err
}

// write sends entries until the socket is to end.
func (s *socket) write(ctx context.Context) error {
	from := s.sub.Cursor()
	hello := state{Cursor: from.String(), Version: s.handler.opt.Version, Topics: s.sub.Topics()}
	if err := s.send(appendJSON(nil, connected{Type: "connected", Hello: hello})); err != nil {
		return err
	}
	s.sent = from.Seq
	var message []byte
	for {
		wait, cancel := context.WithTimeout(ctx, s.handler.opt.PingEvery)
		e, err := s.sub.Next(wait)
		cancel()
		switch {
		case err == nil:
			message = appendEntry(message[:0], e)
			if s.redact != nil {
				message = s.redact(message)
			}
			s.sent = e.Cursor.Seq
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, context.DeadlineExceeded):
			at := s.sub.Cursor()
			if at.Seq == s.sent {
				continue
			}
			message = appendCursor(message[:0], at) // so that the cursor of an idle client does not become too old
			s.sent = at.Seq
		default:
			return err
		}
		if err := s.send(message); err != nil {
			return err
		}
		if e.Gap != nil && s.lapped() {
			return errSlow
		}
		if cap(message) > keptBuffer {
			message = nil // do not keep the buffer of one long entry
		}
	}
}

// keptBuffer is the largest buffer that a socket keeps between messages, in bytes.
const keptBuffer = 256 << 10

// send writes one message. A client that does not read it in time is cut off,
// because a close frame cannot follow half a message.
func (s *socket) send(message []byte) error {
	ctx, cancel := context.WithTimeout(s.life, s.handler.opt.WriteTimeout)
	defer cancel()
	err := s.conn.Write(ctx, websocket.MessageText, message)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errSlow
	}
	return err
}

// lapped records that the ring overwrote unread entries, and reports whether it
// did so too often. A client that gets only gaps and the newest few entries
// should read the state again instead.
func (s *socket) lapped() bool {
	now := time.Now()
	s.laps = append(s.laps, now)
	for now.Sub(s.laps[0]) > s.handler.opt.LapsWithin {
		s.laps = s.laps[1:]
	}
	return len(s.laps) >= s.handler.opt.Laps
}

// listen executes the client's requests, and ends the socket on an invalid one.
// It reads until the connection is closed, because only a reader sees the
// client's answer to a close frame.
func (s *socket) listen(end context.CancelCauseFunc) {
	for open := true; ; {
		kind, message, err := s.conn.Read(s.life)
		switch {
		case err != nil:
			end(err)
			return
		case !open: // the socket is ending: ignored
		case kind != websocket.MessageText:
			err = fmt.Errorf("%w: a binary message", errBadMessage)
		default:
			err = s.handle(message)
		}
		if err != nil {
			open = false
			end(err)
		}
	}
}

func (s *socket) handle(message []byte) error {
	answer, err := s.execute(message)
	if err != nil {
		return err
	}
	return s.send(answer)
}

// execute executes a client's message and returns the answer.
func (s *socket) execute(message []byte) (answer []byte, err error) {
	if err := s.turns.take(); err != nil { // the place for those before it ended with an answer
		return nil, err
	}
	r, err := parseRequest(message)
	if r.Type != "" {
		return s.executeRoom(r, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBadMessage, err)
	}
	s.sub.Remove(r.Unsubscribe...)
	if err := s.sub.Add(r.Subscribe...); err != nil {
		if errors.Is(err, ErrClosed) {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w", errBadMessage, err)
	}
	now := state{Cursor: s.sub.Cursor().String(), Topics: s.sub.Topics()}
	return appendJSON(nil, map[string]state{"subscribed": now}), nil
}

// ping sends pings until ctx ends, and calls gone if the client does not answer.
func (s *socket) ping(ctx context.Context, gone context.CancelCauseFunc) {
	every := time.NewTicker(s.handler.opt.PingEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		wait, cancel := context.WithTimeout(s.life, s.handler.opt.PingTimeout)
		err := s.conn.Ping(wait)
		cancel()
		if err != nil {
			gone(err)
			return
		}
	}
}

// closeWith closes the connection with the status of err. It returns when the
// client has answered, or after closeTimeout.
func (s *socket) closeWith(err error) {
	code, reason := websocket.StatusInternalError, "internal error"
	switch {
	case errors.Is(err, errSlow):
		code, reason = websocket.StatusTryAgainLater, "too slow; come back with cursor "+s.sub.Cursor().String()
	case errors.Is(err, errBadMessage):
		code, reason = websocket.StatusPolicyViolation, err.Error()
	case errors.Is(err, principal.ErrRevoked):
		code, reason = StatusBadToken, err.Error()
	case errors.Is(err, ErrClosed), errors.Is(err, context.Canceled), s.handler.base.Err() != nil:
		code, reason = websocket.StatusGoingAway, "the host is going away"
	case websocket.CloseStatus(err) != -1:
		code, reason = websocket.StatusNormalClosure, ""
	}
	const most = 123 // bytes that fit beside the code in a control frame
	if err := s.conn.Close(code, textcut.Mark(reason, most)); err != nil {
		s.handler.opt.Logger.Debug("feed: close socket", "error", err) // the client has disconnected
	}
}
