package api

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/fairqueue"
)

// SetReadTime changes how long a body may take.
func (a *API) SetReadTime(d time.Duration) { a.readTime = d }

// BodyBytes returns how many bytes of bodies are in memory.
func (a *API) BodyBytes() (n int64) {
	for _, b := range []*bodyBudget{a.bodies, a.hookBodies} {
		b.mu.Lock()
		n += b.small.used + b.large.used
		b.mu.Unlock()
	}
	return n
}

// SetPlaces changes how many requests of agents and viewers are executed at the same time.
func (a *API) SetPlaces(n int) { a.places = fairqueue.New(2 * n) }

// Waiting returns how many requests of an agent or viewer wait for a place.
func (a *API) Waiting(owner string) int {
	return a.places.Waiting(fairqueue.Owner{Name: owner, Held: true})
}

// HooksWait returns how many webhooks wait for their turn.
func (a *API) HooksWait() int { return a.hooks.Waiting(hookSenders) }

// HoldHooks takes the turn of webhooks until done is called.
func (a *API) HoldHooks() (done func()) {
	done, _ = a.hooks.Enter(context.Background(), hookSenders) // cannot fail without an end of the context
	return done
}

// WaitForTurn returns how many requests without a token wait for their turn.
func (s *Server) WaitForTurn() (refused, open int) {
	return s.api.turn.Waiting(fairqueue.Owner{Name: "refused"}), s.api.turn.Waiting(fairqueue.Owner{Name: "open routes"})
}

// SourceOf is what the sender of a webhook is counted by.
var SourceOf = sourceOf

// Pattern returns the pattern that the mux has for a request.
func (a *API) Pattern(r *http.Request) string {
	_, pattern := a.mux.Handler(r)
	return pattern
}

// SetNow gives a token file a clock of the test.
func (t *TokenFile) SetNow(now func() time.Time) { t.now = now }

// LimitConnsTo is LimitConns for another number.
func LimitConnsTo(l net.Listener, n int) net.Listener {
	return limitConns(l, n, slog.New(slog.DiscardHandler))
}

// ReadToken reads without making one.
var ReadToken = func(state string) (string, error) { return TokenStore{State: state}.read() }

// Window reads lines as the logs route does.
type Window = window

// NewWindow returns a window.
func NewWindow(offset, limit, tail int) Window { return window{offset, limit, tail} }

// Read reads the lines of a window.
var Read = Window.read

// ConnsFor is the limit of connections that goes with a limit of open files.
var ConnsFor = connsFor

// Valid reports whether a token is valid for anybody.
func (t *TokenFile) Valid(token string) bool {
	_, ok := t.Who(token)
	return ok
}
