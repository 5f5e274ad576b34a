package api

import (
	"context"
	"errors"
	"net/http"
	stdruntime "runtime"
	"sync"

	"github.com/sentinel-runtime/sentinel/host/principal"
	"github.com/sentinel-runtime/sentinel/internal/fairqueue"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// newPlaces returns the places for the execution of requests of agents and viewers: one fewer than processors,
// and at least one, so that a processor is left for persons, webhooks and probes however many requests
// there are.
func newPlaces() *fairqueue.Queue {
	return fairqueue.New(2 * max(stdruntime.GOMAXPROCS(0)-1, 1)) // all who take one are held, who have half
}

// A place is one for the execution of a request. Principals take places in turn (API.md, G17). A request holds
// its place while it keeps a processor or the disk busy: not while it waits for its body, nor while its
// command waits for something else, nor while the client takes the answer. Nil is the place of a
// request that needs none.
//
// # Concurrency
//
// One goroutine uses it, that of the handler.
type place struct {
	queue *fairqueue.Queue
	owner fairqueue.Owner
	leave func() // nil while it is not held
}

type placeKey struct{}

// placeOf returns the place of a request, nil if it needs none.
func placeOf(ctx context.Context) *place {
	p, _ := ctx.Value(placeKey{}).(*place)
	return p
}

// placeFor returns the place of a request of an agent or viewer, nil for any other request. It is not
// held yet.
func (a *API) placeFor(o owner) *place {
	if !o.limited() {
		return nil
	}
	return &place{queue: a.places, owner: fairqueue.Owner{Name: o.key, Held: true}}
}

// take waits for the place until ctx ends, unless it is held.
func (p *place) take(ctx context.Context) error {
	if p == nil || p.leave != nil {
		return nil
	}
	leave, err := p.queue.Enter(ctx, p.owner)
	if err == nil && ctx.Err() != nil { // what is executed for a client that has gone keeps the others waiting
		leave()
		err = context.Cause(ctx)
	}
	switch {
	case err == nil:
		p.leave = leave
	case !errors.Is(err, principal.ErrRevoked):
		err = abi.New(abi.Cancelled, "the request was cancelled before it was executed")
	}
	return err
}

// busy is [command.Call.Busy].
func (p *place) busy(ctx context.Context) (done func(), err error) {
	if p == nil || p.leave != nil {
		return func() {}, nil
	}
	return p.giveBack, p.take(ctx)
}

// giveBack gives the place back if it is held.
func (p *place) giveBack() {
	if p != nil && p.leave != nil {
		p.leave()
		p.leave = nil
	}
}

// A turn is that of one request without a token, or whose token is refused. There is one at a time, and
// those of one connection come one behind the other, so that connections take turns. Else each with many
// requests in its buffer keeps a processor for milliseconds, and with some hundred of them a person waits for
// seconds. Webhooks have turns of their own, until their secret is accepted.
//
// # Concurrency
//
// One goroutine uses it, that of the handler.
type turn struct {
	queue *fairqueue.Queue
	conn  *limitedConn
	leave func() // nil while it is not held
}

type turnKey struct{}

// turnOf returns the turn of a request to a webhook, nil for another one.
func turnOf(ctx context.Context) *turn {
	t, _ := ctx.Value(turnKey{}).(*turn)
	return t
}

// The owners of turns come alternately: else a probe waits for all requests that are refused.
var (
	openRoutes      = fairqueue.Owner{Name: "open routes"}
	refusedRequests = fairqueue.Owner{Name: "refused"} // and OPTIONS
	hookSenders     = fairqueue.Owner{Name: "webhooks"}
)

// take waits for the turn until ctx ends, unless it is held. The connection may give way meanwhile.
func (t *turn) take(ctx context.Context, o fairqueue.Owner) error {
	if t == nil || t.leave != nil {
		return nil
	}
	defer t.conn.yield()()
	leave, err := t.queue.Enter(ctx, o)
	if err != nil {
		return abi.New(abi.Cancelled, "the request was cancelled before it was executed")
	}
	t.leave = leave
	return nil
}

// giveBack ends the turn if it is held.
func (t *turn) giveBack() {
	if t != nil && t.leave != nil {
		t.leave()
		t.leave = nil
	}
}

// A bodyPlace is the place or turn of a request while its body is read. It is held from the moment that bytes have arrived
// until the connection reads the next ones, or writes, which may wait for the client: a body can have as many chunks as
// bytes, and reading them keeps a processor busy.
//
// # Concurrency
//
// The handler's goroutine uses it, and the server's, which watches a connection whose body has arrived.
type bodyPlace struct {
	take     func(ctx context.Context) error
	giveBack func()

	ctx    context.Context
	cancel context.CancelFunc

	mu    sync.Mutex
	ended bool
}

// placeOfBody has the body of a request read in the place or turn of its sender until end is called. It is nil if the
// sender needs none, or if the program does not limit its connections.
func placeOfBody(r *http.Request) *bodyPlace {
	b, c := &bodyPlace{}, connOf(r.Context())
	held, own := placeOf(r.Context()), turnOf(r.Context())
	switch {
	case c == nil || held == nil && own == nil:
		return nil
	case own != nil:
		b.take, b.giveBack = func(ctx context.Context) error { return own.take(ctx, hookSenders) }, own.giveBack
	default:
		b.take, b.giveBack = held.take, held.giveBack
	}
	b.ctx, b.cancel = context.WithCancel(r.Context())
	c.body.Store(b)
	return b
}

// arrived takes the place, unless it is held.
func (b *bodyPlace) arrived() error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return nil
	}
	return b.take(b.ctx)
}

// wait gives the place back if it is held.
func (b *bodyPlace) wait() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		b.giveBack()
	}
}

// end leaves the place, if it is held, to the handler.
func (b *bodyPlace) end(c *limitedConn) {
	if b == nil {
		return
	}
	c.body.Store(nil)
	b.cancel()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
}

// Busy takes the place of a request of a WebSocket, for what its client has sent; ctx is the request's.
// Those of persons need none. One goroutine at a time may call it for a request. An error is of ctx.
func Busy(ctx context.Context) (done func(), err error) { return placeOf(ctx).busy(ctx) }

// executes reports whether the handler itself of a route is executed in a place. Commands take theirs when they are
// called, and a WebSocket has none.
func (r *Route) executes() bool {
	return r.serve != nil && r.body == "" && r.Status != http.StatusSwitchingProtocols
}
