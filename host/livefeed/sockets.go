package livefeed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/sentinel-runtime/sentinel/host/principal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Subprotocol is the subprotocol of sockets. It is also used with clients that
// offer none.
const Subprotocol = "sentinel.v1"

// HandlerOptions configure [Handler]. Feed is required.
type HandlerOptions struct {
	Feed *Feed
	// AllowedOrigins reports whether a request with an Origin header may open a
	// socket. Default: only if the origin is the request's host.
	AllowedOrigins func(*http.Request) bool
	// Redact takes secrets out of the messages to principals who are no persons: a text may have
	// become one after it was published. Default: messages stay as they are.
	Redact func(message json.RawMessage) json.RawMessage
	// Version is sent to clients. Default: none.
	Version string
	// MaxConns is how many sockets may be open at once: an agent or viewer may have a quarter of
	// them, and agents and viewers half together. Default: 256.
	MaxConns int
	// Busy waits until a socket may be opened or closed, or what a client sent be worked through, and its done ends
	// that: the context is that of the socket's request. Default: there is no wait.
	Busy func(ctx context.Context) (done func(), err error)
	// WriteTimeout is how long a client may take to read a message. Default: 10 s.
	WriteTimeout time.Duration
	// PingEvery is the interval of pings. A client without new entries is then
	// also sent the position of the stream. Default: 20 s.
	PingEvery time.Duration
	// PingTimeout is how long the answer to a ping may take. Default: 10 s.
	PingTimeout time.Duration
	// Laps is how often within [HandlerOptions.LapsWithin] the ring may overwrite
	// unread entries of a client before it is dropped as too slow. Default: 4.
	Laps int
	// LapsWithin is the time in which laps count. Default: 1 min.
	LapsWithin time.Duration
	// Logger logs sockets that were dropped. Default: none.
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
	held    map[string]int // those of agents and viewers, by principal
	allHeld int
	refused uint64 // because there were too many
	dropped uint64 // because they were too slow
	all     sync.WaitGroup
}

// Handler returns the HTTP handler of a feed. It checks the origin only:
// authentication is the caller's task. It must be closed, before or after the
// feed.
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
	if o.Busy == nil {
		o.Busy = func(context.Context) (func(), error) { return func() {}, nil }
	}
	h := &Sockets{opt: o, held: map[string]int{}}
	h.base, h.stop = context.WithCancel(context.Background())
	return h
}

// Close closes all sockets with the status "going away" and waits for them. New
// ones are refused. It may be called twice.
func (h *Sockets) Close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.stop()
	h.all.Wait()
}

// SocketStats are figures about sockets.
type SocketStats struct {
	Open    int
	Refused uint64 // because there were too many
	Dropped uint64 // because they were too slow
}

// Stats returns the current figures.
func (h *Sockets) Stats() SocketStats {
	h.mu.Lock()
	defer h.mu.Unlock()
	return SocketStats{Open: h.open, Refused: h.refused, Dropped: h.dropped}
}

// ServeHTTP upgrades the request to a WebSocket and serves it until it ends.
func (h *Sockets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if origin := r.Header.Get("Origin"); origin != "" && h.opt.AllowedOrigins != nil && !h.opt.AllowedOrigins(r) {
		refuse(w, http.StatusForbidden, abi.New(abi.Denied, "open socket: origin is not allowed"))
		return
	}
	caller := principal.From(r.Context())
	leave, err := h.admit(caller)
	if err != nil {
		w.Header().Set("Retry-After", "5")
		refuse(w, http.StatusServiceUnavailable, err)
		return
	}
	defer leave()
	turns := &turns{ctx: r.Context(), busy: h.opt.Busy}
	defer turns.giveBack()
	// Runs wait for the lock of the feed, which is taken for each topic.
	if err := turns.take(); err != nil {
		status := http.StatusServiceUnavailable
		if errors.Is(err, principal.ErrRevoked) {
			status = http.StatusUnauthorized
		}
		refuse(w, status, err)
		return
	}
	sub, err := h.opt.Feed.Subscribe(r.URL.Query().Get("cursor"), queryTopics(r))
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	defer func() {
		turns.ctx = context.WithoutCancel(turns.ctx) // the client may have gone
		_ = turns.take()                             // cannot fail without an end of the context
		sub.Close()
	}()
	conn, err := websocket.Accept(inTurn{w, turns}, r, &websocket.AcceptOptions{
		Subprotocols:       []string{Subprotocol},
		OnPingReceived:     turns.answers,
		InsecureSkipVerify: h.opt.AllowedOrigins != nil,   // checked above
		CompressionMode:    websocket.CompressionDisabled, // a compressor uses more memory than the rest of a socket
	})
	if err != nil {
		return // Accept has answered
	}
	turns.giveBack()
	s := &socket{handler: h, conn: conn, sub: sub, turns: turns}
	if caller.Kind != "" && caller.Kind != principal.Person {
		s.redact = h.opt.Redact
	}
	// The HTTP server may end before the feed does.
	ctx, cancel := context.WithCancelCause(h.base)
	defer cancel(nil)
	defer context.AfterFunc(r.Context(), func() { cancel(context.Cause(r.Context())) })()
	if errors.Is(s.serve(ctx), errSlow) {
		h.mu.Lock()
		h.dropped++
		h.mu.Unlock()
		h.opt.Logger.Info("feed: dropped a slow reader", "remote", r.RemoteAddr, "cursor", sub.Cursor().String())
	}
}

// admit counts a new socket until leave is called, unless there are too many. What agents and viewers cannot have
// is left for persons, whichever listeners the sockets come from.
func (h *Sockets) admit(p principal.Principal) (leave func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	held, key := p.Kind == principal.Agent || p.Kind == principal.Viewer, p.String()
	switch {
	case h.closed:
		return nil, abi.New(abi.Unavailable, "open socket: the host is going away")
	case held && h.held[key] >= max(h.opt.MaxConns/4, 1):
		err = abi.New(abi.Unavailable, fmt.Sprintf("open socket: %s has %d, the most that one agent or viewer may have", key, h.held[key]))
	case held && h.allHeld >= max(h.opt.MaxConns/2, 1):
		err = abi.New(abi.Unavailable, fmt.Sprintf("open socket: agents and viewers have %d, the most that they may have together", h.allHeld))
	case h.open >= h.opt.MaxConns:
		err = abi.New(abi.Unavailable, "open socket: too many are open")
	}
	if err != nil {
		h.refused++
		return nil, err
	}
	count := func(n int) {
		h.open += n
		if !held {
			return
		}
		h.allHeld += n
		if h.held[key] += n; h.held[key] == 0 {
			delete(h.held, key)
		}
	}
	count(1)
	h.all.Add(1)
	return func() {
		h.mu.Lock()
		count(-1)
		h.mu.Unlock()
		h.all.Done()
	}, nil
}

// queryTopics parses ?topics=a,b&topics=c.
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

// refuse answers a request that gets no socket, with an RFC 9457 problem.
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
	_, _ = io.WriteString(w, string(b)+"\n") // fails only if the client has disconnected
}

var _ http.Handler = (*Sockets)(nil)
