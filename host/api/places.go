package api

import (
	"context"
	"errors"
	"net/http"
	stdruntime "runtime"

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
// its place while it keeps a processor or the disk busy: not before its body has arrived, nor while its
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

// Busy takes the place of a request of a WebSocket, for what its client has sent; ctx is the request's.
// Those of persons need none. One goroutine at a time may call it for a request. An error is of ctx.
func Busy(ctx context.Context) (done func(), err error) { return placeOf(ctx).busy(ctx) }

// executes reports whether the handler itself of a route is executed in a place. Commands take theirs when they are
// called, and a WebSocket has none.
func (r *Route) executes() bool {
	return r.serve != nil && r.body == "" && r.Status != http.StatusSwitchingProtocols
}
