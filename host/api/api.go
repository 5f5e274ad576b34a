package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/fairqueue"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// API serves the commands of a host over HTTP.
//
// # Concurrency
//
// All methods are safe for concurrent use. The API starts no goroutines; those
// of a listener belong to its [Server].
type API struct {
	opt        Options
	log        *slog.Logger
	routes     []Route           // the table; mounts come last
	byPattern  map[string]*Route // into routes, by pattern of the mux
	mux        *http.ServeMux
	hosts      map[string]bool // exact values of Host
	names      []string        // hosts that are allowed with the listener's port
	bodies     *bodyBudget
	answers    *bodyBudget // results of commands until they are sent
	hookBodies *bodyBudget // separate: requests without a token must not use up the memory of others
	refused    refusals
	readTime   time.Duration
	draining   atomic.Bool

	searching   context.Context // ends with the first Drain
	endSearches context.CancelCauseFunc

	places *fairqueue.Queue // for the execution of requests of agents and viewers
	turn   *fairqueue.Queue // of requests without a token; refused ones are one owner, those of open routes another
	hooks  *fairqueue.Queue // of webhooks that are not accepted yet

	document rendering // of OpenAPI
	commands rendering // the list of commands
}

// New returns an API. The error joins all problems of opt.
func New(opt Options) (*API, error) {
	if opt.Commands == nil {
		return nil, errors.New("new api: no commands")
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.AwaitTime <= 0 {
		opt.AwaitTime = awaitTime
	}
	if opt.Version == "" {
		opt.Version = "dev"
	}
	searching, endSearches := context.WithCancelCause(context.Background())
	// The table is copied for each API, since mounts are added to it.
	a := &API{
		opt: opt, log: opt.Logger, routes: table(), byPattern: map[string]*Route{}, mux: http.NewServeMux(),
		hosts: map[string]bool{}, names: []string{"localhost", "127.0.0.1", "[::1]"}, bodies: newBodyBudget(maxBodies), answers: newBodyBudget(maxAnswers),
		hookBodies: newBodyBudget(maxHookBodies), readTime: readTime, searching: searching, endSearches: endSearches,
		places: newPlaces(), turn: fairqueue.New(1), hooks: fairqueue.New(1),
	}
	var errs []error
	for _, h := range opt.Hosts {
		errs = append(errs, a.allowHost(h))
	}
	for _, m := range opt.Mounts {
		errs = append(errs, a.mount(m))
	}
	for i := range a.routes {
		errs = append(errs, a.register(&a.routes[i]))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("new api: %w", err)
	}
	return a, nil
}

// mount adds a route for a handler of the caller.
func (a *API) mount(m Mount) error {
	if m.Handler == nil {
		return fmt.Errorf("mount %q: no handler", m.Pattern)
	}
	a.routes = append(a.routes, Route{
		Method: m.Method, Pattern: m.Pattern, Name: m.Name, Access: m.Access, Summary: m.Summary, Query: m.Query, raw: true, maxBody: maxMountBody,
		serve: func(_ *API, w http.ResponseWriter, r *http.Request) error {
			m.Handler.ServeHTTP(w, r)
			return nil
		},
	})
	return nil
}

// register adds a route to the mux. Only this function may do so, which a test
// checks.
func (a *API) register(route *Route) (err error) {
	if err := route.check(); err != nil {
		return err
	}
	if a.byPattern[route.String()] != nil {
		return fmt.Errorf("route %q: declared twice", route)
	}
	defer func() {
		// The mux panics on patterns that clash, and a mount may have one.
		if p := recover(); p != nil {
			err = fmt.Errorf("route %q: %v", route, p)
		}
	}()
	a.mux.Handle(route.String(), a.handler(route))
	a.byPattern[route.String()] = route
	return nil
}

// Routes returns the table, mounts included, by pattern.
func (a *API) Routes() []Route {
	list := slices.Clone(a.routes)
	slices.SortFunc(list, func(x, y Route) int {
		return strings.Compare(x.Pattern+" "+x.Method, y.Pattern+" "+y.Method)
	})
	return list
}

// Drain makes /ready report that the server is stopping. A host calls it when
// its shutdown begins, before its listeners close, so that load balancers send
// work to other processes. It ends searches: they change nothing, and the server would wait
// for them.
func (a *API) Drain() {
	a.draining.Store(true)
	a.endSearches(&abi.Error{Code: abi.Unavailable, Message: "the search was ended: the server is stopping", RetryAfterMs: 1000, Hint: "send it again when the server is up"})
}

// Handler serves the API to any client: it requires an allowed Host, an allowed
// origin and a token.
func (a *API) Handler() http.Handler { return &guard{api: a} }

// Local serves the API on the control socket. Its clients are no pages, so
// neither Host nor Origin is checked. Every route but the open ones requires a
// token, also with NoAuth.
func (a *API) Local() http.Handler { return &guard{api: a, local: true} }
