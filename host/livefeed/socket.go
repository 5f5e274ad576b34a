package livefeed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// Why a socket ends. A client that leaves is none of these.
var (
	errSlow  = errors.New("reader is too slow")
	errAsked = errors.New("client sent what it may not") // 1008, with the reason
)

// farewell is how long a client may take to answer a close before the
// connection is cut.
const farewell = 2 * time.Second

// A socket is one client.
type socket struct {
	handler *Sockets
	conn    *websocket.Conn
	sub     *Subscription

	// life is what reads and writes end with. It goes on for a farewell after the
	// socket's end is decided: ending it cuts the connection.
	life context.Context

	told uint64      // number of the newest place the client was told; the writer's alone, as is laps
	laps []time.Time // when the ring came round on the client, the last few times
}

// serve runs the socket to its end and says why it ended.
func (s *socket) serve(base context.Context) error {
	ctx, cancel := context.WithCancelCause(base)
	life, cut := context.WithCancel(context.Background())
	defer cut()
	context.AfterFunc(ctx, func() { time.AfterFunc(farewell, cut) })
	s.life = life
	s.conn.SetReadLimit(readLimit)
	var helpers sync.WaitGroup
	helpers.Go(func() { s.listen(cancel) })
	helpers.Go(func() { s.ping(ctx, cancel) })
	err := s.write(ctx)
	cancel(err)
	s.bye(err)
	helpers.Wait()
	return err
}

// write sends entries until the socket is to end.
func (s *socket) write(ctx context.Context) error {
	from := s.sub.Cursor()
	hello := state{Cursor: from.String(), Version: s.handler.opt.Version, Topics: s.sub.Topics()}
	if err := s.send(appendJSON(nil, map[string]state{"hello": hello})); err != nil {
		return err
	}
	s.told = from.Seq
	var message []byte
	for {
		wait, cancel := context.WithTimeout(ctx, s.handler.opt.PingEvery)
		e, err := s.sub.Next(wait)
		cancel()
		switch {
		case err == nil:
			message = appendEntry(message[:0], e)
			s.told = e.Cursor.Seq
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, context.DeadlineExceeded):
			at := s.sub.Cursor()
			if at.Seq == s.told {
				continue
			}
			message = appendPlace(message[:0], at) // so that a quiet client's cursor does not grow too old
			s.told = at.Seq
		default:
			return err
		}
		if err := s.send(message); err != nil {
			return err
		}
		if e.Gap != nil && s.lapped() {
			return errSlow
		}
		if cap(message) > maxBody {
			message = nil // one long entry is no reason to keep so much for every socket
		}
	}
}

// send writes one message. A client that does not take it in time is cut off:
// half a message cannot be followed by a close.
func (s *socket) send(message []byte) error {
	ctx, cancel := context.WithTimeout(s.life, s.handler.opt.WriteTimeout)
	defer cancel()
	err := s.conn.Write(ctx, websocket.MessageText, message)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errSlow
	}
	return err
}

// lapped notes that the ring has come round, and reports whether it did so too
// often: a client that only ever gets the newest few entries and a gap is better
// off reading the state anew.
func (s *socket) lapped() bool {
	now := time.Now()
	s.laps = append(s.laps, now)
	for now.Sub(s.laps[0]) > s.handler.opt.LapsWithin {
		s.laps = s.laps[1:]
	}
	return len(s.laps) >= s.handler.opt.Laps
}

// listen carries out what the client sends, and ends the socket when that is
// not possible. It reads on until the connection is closed, since only a reader
// sees the client's answer to a close.
func (s *socket) listen(end context.CancelCauseFunc) {
	for asked := true; ; {
		kind, message, err := s.conn.Read(s.life)
		switch {
		case err != nil:
			end(err)
			return
		case !asked: // the socket is ending, so this comes too late
		case kind != websocket.MessageText:
			err = fmt.Errorf("%w: a binary message", errAsked)
		default:
			err = s.obey(message)
		}
		if err != nil {
			asked = false
			end(err)
		}
	}
}

func (s *socket) obey(message []byte) error {
	r, err := parseRequest(message)
	if err != nil {
		return fmt.Errorf("%w: %w", errAsked, err)
	}
	s.sub.Remove(r.Unsubscribe...)
	if err := s.sub.Add(r.Subscribe...); err != nil {
		if errors.Is(err, ErrClosed) {
			return err
		}
		return fmt.Errorf("%w: %w", errAsked, err)
	}
	now := state{Cursor: s.sub.Cursor().String(), Topics: s.sub.Topics()}
	return s.send(appendJSON(nil, map[string]state{"subscribed": now}))
}

// ping asks now and then whether the client is there, until ctx ends.
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

// bye closes the connection with a reason. It returns when the client has
// answered, or the farewell is over.
func (s *socket) bye(err error) {
	code, reason := websocket.StatusInternalError, "internal error"
	switch {
	case errors.Is(err, errSlow):
		code, reason = websocket.StatusTryAgainLater, "too slow; come back with cursor "+s.sub.Cursor().String()
	case errors.Is(err, errAsked):
		code, reason = websocket.StatusPolicyViolation, err.Error()
	case errors.Is(err, ErrClosed), errors.Is(err, context.Canceled), s.handler.base.Err() != nil:
		code, reason = websocket.StatusGoingAway, "the host is going away"
	case websocket.CloseStatus(err) != -1:
		code, reason = websocket.StatusNormalClosure, ""
	}
	const most = 123 // bytes that fit beside the code in a control frame
	if len(reason) > most {
		reason = strings.ToValidUTF8(reason[:most], "")
	}
	if err := s.conn.Close(code, reason); err != nil {
		s.handler.opt.Logger.Debug("feed: close socket", "error", err) // the client has gone without a word
	}
}
