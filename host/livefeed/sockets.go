package livefeed

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Subprotocol is what sockets speak. A client that offers no subprotocol at all
// is spoken to in it too.
const Subprotocol = "sentinel.v1"

// HandlerOptions configure [Handler]. Feed is required.
type HandlerOptions struct {
	Feed *Feed
	// AllowedOrigins says whether a request with an Origin header may have a
	// socket. Default: only one whose origin is the host it asks.
	AllowedOrigins func(*http.Request) bool
	// Version is told to clients. Default: none.
	Version string
	// MaxConns is how many sockets may be open at once. Default: 256.
	MaxConns int
	// WriteTimeout is how long a client may take to take a message. Default: 10 s.
	WriteTimeout time.Duration
	// PingEvery is how often a client is asked whether it is there, and told how
	// far the stream has come if there was nothing for it. Default: 20 s.
	PingEvery time.Duration
	// PingTimeout is how long its answer may take. Default: 10 s.
	PingTimeout time.Duration
	// Laps is how often in a row of [HandlerOptions.LapsWithin] the ring may come
	// round on a client before it is dropped as too slow. Default: 4.
	Laps int
	// LapsWithin is the time in which laps count. Default: 1 min.
	LapsWithin time.Duration
	// Logger tells of sockets that were dropped. Default: none.
	Logger *slog.Logger
}

// readLimit bounds a client's message, in bytes.
const readLimit = 32 << 10

// Sockets serve a feed over WebSockets.
//
// # Concurrency
//
// A socket has three goroutines: the request's, which writes entries, one that
// reads the client's messages and one that pings. All end with the socket, and
// [Sockets.Close] waits for every socket.
type Sockets struct {
	opt  HandlerOptions
	base context.Context // of all sockets: a hijacked connection outlives its request's
	stop context.CancelFunc

	mu      sync.Mutex
	closed  bool
	open    int
	refused uint64 // because there were too many
	dropped uint64 // because they were too slow
	all     sync.WaitGroup
}

// Handler makes the handler of a feed. Who may connect is decided before, by
// whoever routes requests here; the handler looks at the origin only. It is to
// be closed, after or before the feed.
func Handler(o HandlerOptions) *Sockets {
	if o.MaxConns <= 0 {
		o.MaxConns = 256
	}
	for _, d := range []struct {
		field    *time.Duration
		standard time.Duration
	}{{&o.WriteTimeout, 10 * time.Second}, {&o.PingEvery, 20 * time.Second}, {&o.PingTimeout, 10 * time.Second}, {&o.LapsWithin, time.Minute}} {
		if *d.field <= 0 {
			*d.field = d.standard
		}
	}
	if o.Laps <= 0 {
		o.Laps = 4
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	h := &Sockets{opt: o}
	h.base, h.stop = context.WithCancel(context.Background())
	return h
}

// Close ends all sockets, telling the clients that the host goes away, and waits
// for them. New ones are refused. It may be called twice.
func (h *Sockets) Close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.stop()
	h.all.Wait()
}

// SocketStats is how sockets fare.
type SocketStats struct {
	Open    int
	Refused uint64 // because there were too many
	Dropped uint64 // because they were too slow
}

// Stats returns how sockets fare.
func (h *Sockets) Stats() SocketStats {
	h.mu.Lock()
	defer h.mu.Unlock()
	return SocketStats{Open: h.open, Refused: h.refused, Dropped: h.dropped}
}

// ServeHTTP makes a socket of the request and serves it to its end.
func (h *Sockets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if origin := r.Header.Get("Origin"); origin != "" && h.opt.AllowedOrigins != nil && !h.opt.AllowedOrigins(r) {
		refuse(w, http.StatusForbidden, abi.New(abi.Denied, "open socket: origin is not allowed"))
		return
	}
	sub, err := h.opt.Feed.Subscribe(r.URL.Query().Get("cursor"), queryTopics(r))
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	defer sub.Close()
	if err := h.admit(); err != nil {
		w.Header().Set("Retry-After", "5")
		refuse(w, http.StatusServiceUnavailable, err)
		return
	}
	defer h.leave()
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		Subprotocols:       []string{Subprotocol},
		InsecureSkipVerify: h.opt.AllowedOrigins != nil,   // it was asked above
		CompressionMode:    websocket.CompressionDisabled, // a compressor costs more memory than all else of a socket
	})
	if err != nil {
		return // Accept has answered
	}
	s := &socket{handler: h, conn: conn, sub: sub}
	// The server that took the request in may end before the feed does.
	ctx, cancel := context.WithCancel(h.base)
	defer cancel()
	defer context.AfterFunc(r.Context(), cancel)()
	if errors.Is(s.serve(ctx), errSlow) {
		h.mu.Lock()
		h.dropped++
		h.mu.Unlock()
		h.opt.Logger.Info("feed: dropped a slow reader", "remote", r.RemoteAddr, "cursor", sub.Cursor().String())
	}
}

// admit takes one of the places.
func (h *Sockets) admit() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return abi.New(abi.Unavailable, "open socket: the host is going away")
	case h.open >= h.opt.MaxConns:
		h.refused++
		return abi.New(abi.Unavailable, "open socket: too many are open")
	}
	h.open++
	h.all.Add(1)
	return nil
}

func (h *Sockets) leave() {
	h.mu.Lock()
	h.open--
	h.mu.Unlock()
	h.all.Done()
}

// queryTopics reads ?topics=a,b&topics=c.
func queryTopics(r *http.Request) []string {
	var topics []string
	for _, list := range r.URL.Query()["topics"] {
		for topic := range strings.SplitSeq(list, ",") {
			if topic = strings.TrimSpace(topic); topic != "" {
				topics = append(topics, topic)
			}
		}
	}
	return topics
}

// refuse answers before there is a socket, with an RFC 9457 problem.
func refuse(w http.ResponseWriter, status int, err error) {
	problem := struct {
		Title  string   `json:"title"`
		Status int      `json:"status"`
		Detail string   `json:"detail"`
		Code   abi.Code `json:"code"`
		Field  string   `json:"field,omitempty"`
		Hint   string   `json:"hint,omitempty"`
	}{Title: http.StatusText(status), Status: status, Detail: err.Error(), Code: abi.CodeOf(err)}
	if e := abi.As(err); e != nil {
		problem.Field, problem.Hint = e.Field, e.Hint
	}
	b, err := json.Marshal(problem)
	if err != nil {
		panic(err) // plain fields
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, string(b)+"\n") // the client may have gone: then nobody is to be told
}

var _ http.Handler = (*Sockets)(nil)
