package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/sentinel-runtime/sentinel/host/internal/httpproblem"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Message is one thing that the live feed told.
type Message struct {
	Cursor string          `json:"cursor"`          // where the stream is with it
	Topic  string          `json:"topic,omitempty"` // as it was asked for
	Also   []string        `json:"also,omitempty"`  // further topics that it fits
	Kind   string          `json:"kind,omitempty"`
	Time   time.Time       `json:"time,omitzero"`
	Event  json.RawMessage `json:"event,omitempty"`
	// Progress is set in place of Event by an engine in this process, for progress that
	// need not be encoded. It must not be changed.
	Progress *run.Progress `json:"-"`
	Gap      *Gap          `json:"gap,omitempty"` // in place of an event
}

// A Gap says that messages of the topics are missing at this place.
type Gap struct {
	Lost   int64  `json:"lost"`           // how many; -1 if unknown, as after a restart
	UpTo   bool   `json:"upTo,omitempty"` // Lost is a bound
	Cursor string `json:"cursor"`
}

// WatchOptions say what to watch.
type WatchOptions struct {
	Topics []string // run:ID, run:ID/tree, runs, sentinels, triggers, events:PATTERN, plugins, health
	// Cursor is that of the last message seen. Default: what happens from now on.
	Cursor string
	// Patience is how long the server may be out of reach before Watch gives up.
	// Default 1 min.
	Patience time.Duration
}

// Bounds of a watch.
const (
	standardPatience = time.Minute
	silence          = time.Minute // a server that neither tells nor pings for this long is gone
	firstPause       = 100 * time.Millisecond
	longestPause     = 5 * time.Second
	maxMessage       = 32 << 20 // bytes
)

// Watch calls fn with everything that happens on the topics until ctx ends or fn
// fails, whose error it returns. A connection that breaks, or that the server
// drops because fn is too slow, is made again where it ended: nothing is missed
// that no gap tells of, and nothing comes twice.
func (c *Client) Watch(ctx context.Context, opt WatchOptions, fn func(Message) error) error {
	return c.watch(ctx, opt, func() error { return nil }, fn)
}

// errOver ends a watch from inside.
var errOver = errors.New("over")

// watch is Watch that also calls hello whenever a connection is made.
func (c *Client) watch(ctx context.Context, opt WatchOptions, hello func() error, fn func(Message) error) error {
	if opt.Patience <= 0 {
		opt.Patience = standardPatience
	}
	reached, pause := time.Now(), firstPause
	for {
		w := watcher{client: c, topics: opt.Topics, cursor: &opt.Cursor, hello: hello, fn: fn}
		err := w.once(ctx)
		switch final := (*finalError)(nil); {
		case errors.As(err, &final):
			return final.err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case w.greeted:
			reached, pause = time.Now(), firstPause
		case time.Since(reached) > opt.Patience:
			return err
		}
		// Clients that lost the same server must not all come back at once.
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		pause = min(2*pause, longestPause)
	}
}

// finalError ends a watch: another connection would not help.
type finalError struct{ err error }

func (e *finalError) Error() string { return e.err.Error() }

// againError is an error that another connection may help.
type againError struct{ err error }

func (e *againError) Error() string { return e.err.Error() }

// final makes the error of fn and hello one that ends the watch, unless it says
// that it does not.
func final(err error) error {
	if again := (*againError)(nil); err == nil || errors.As(err, &again) {
		return err
	}
	return &finalError{err}
}

// watcher is one connection of a watch.
type watcher struct {
	client  *Client
	topics  []string
	cursor  *string // goes on with every message
	hello   func() error
	fn      func(Message) error
	greeted bool
}

// once connects and reads until the connection or the watch ends. It always
// returns an error.
func (w *watcher) once(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	alive := time.AfterFunc(silence, cancel)
	defer alive.Stop()
	conn, err := w.dial(ctx, func() { alive.Reset(silence) })
	if err != nil {
		return err
	}
	defer conn.CloseNow() //nolint:errcheck // what was read is read
	conn.SetReadLimit(maxMessage)
	for {
		_, text, err := conn.Read(ctx)
		if err != nil {
			return w.closed(err)
		}
		alive.Reset(silence)
		if err := w.take(text); err != nil {
			_ = conn.Close(websocket.StatusNormalClosure, "") // out of courtesy
			return err
		}
		alive.Reset(silence) // fn may have taken long
	}
}

// dial opens the connection. A server that refuses it for good is final.
func (w *watcher) dial(ctx context.Context, onPing func()) (*websocket.Conn, error) {
	c := w.client
	query := url.Values{"topics": {strings.Join(w.topics, ",")}}
	if *w.cursor != "" {
		query.Set("cursor", *w.cursor)
	}
	r := request{path: []string{"ws"}, query: query}
	u := c.url(r.path, r.query)
	u.Scheme = strings.Replace(u.Scheme, "http", "ws", 1)
	header := http.Header{}
	c.authorize(header)
	conn, res, err := websocket.Dial(ctx, u.String(), &websocket.DialOptions{
		HTTPClient: c.http, HTTPHeader: header, Subprotocols: []string{"sentinel.v1"},
		OnPingReceived: func(context.Context, []byte) bool { onPing(); return true },
	})
	if err == nil {
		return conn, nil
	}
	if res == nil {
		return nil, c.connectionError(ctx, r, err)
	}
	body, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10)) // what cannot be read tells nothing
	refusal := httpproblem.Read(c.server, res.StatusCode, res.Header.Get("Content-Type"), body)
	if refusal.Code == abi.Unavailable {
		return nil, refusal
	}
	return nil, final(refusal)
}

// closed judges why a connection ended. 1008 is the server's word that what we
// asked for is wrong; all else may be better next time.
func (w *watcher) closed(err error) error {
	var closing websocket.CloseError
	if errors.As(err, &closing) && closing.Code == websocket.StatusPolicyViolation {
		return final(&abi.Error{Code: abi.BadFields, Permanent: true, Message: "watch: " + closing.Reason})
	}
	return abi.New(abi.Unavailable, fmt.Sprintf("watch: the connection ended: %v", err))
}

// take hands one message on.
func (w *watcher) take(text []byte) error {
	var m struct {
		Message
		Hello *struct{ Cursor string } `json:"hello"`
	}
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&m); err != nil {
		return final(abi.New(abi.Output, fmt.Sprintf("watch: read message: %v", err)))
	}
	switch {
	case m.Hello != nil:
		w.greeted = true
		if *w.cursor == "" {
			*w.cursor = m.Hello.Cursor // a connection that breaks now goes on from here
		}
		return final(w.hello())
	case m.Gap != nil:
		m.Cursor = m.Gap.Cursor
	case m.Event == nil:
		if m.Cursor != "" {
			*w.cursor = m.Cursor
		}
		return nil // only how far the stream has come
	}
	if err := w.fn(m.Message); err != nil {
		return final(err)
	}
	if m.Cursor != "" {
		*w.cursor = m.Cursor
	}
	return nil
}
