package api

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// An API answers HTTP requests.
//
// # Concurrency
//
// All methods are safe for concurrent use. The API starts no goroutines; those
// of a listener belong to its [Server].
type API struct {
	opt        Options
	log        *slog.Logger
	routes     []Route           // the table, mounts behind our own
	byPattern  map[string]*Route // into routes, by what the mux calls them
	mux        *http.ServeMux
	hosts      map[string]bool // exact values of Host
	names      []string        // hosts that are good with the listener's port
	bodies     budget
	hookBodies budget // apart: strangers must not use up the room of others
	readTime   time.Duration
	draining   atomic.Bool

	// document is the newest OpenAPI document and the commands it was made of.
	documentMu  sync.Mutex
	document    []byte
	documentTag string
}

// New returns an API. The error joins everything that is wrong with opt.
func New(opt Options) (*API, error) {
	if opt.Commands == nil {
		return nil, errors.New("new api: no commands")
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.Version == "" {
		opt.Version = "dev"
	}
	// The table is copied for each API, since mounts are added to it.
	a := &API{
		opt: opt, log: opt.Logger, routes: table(), byPattern: map[string]*Route{}, mux: http.NewServeMux(),
		hosts: map[string]bool{}, names: []string{"localhost", "127.0.0.1", "[::1]"}, bodies: budget{max: maxBodies},
		hookBodies: budget{max: maxHookBodies}, readTime: readTime,
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

// mount adds a line to the table for somebody else's handler.
func (a *API) mount(m Mount) error {
	if m.Handler == nil {
		return fmt.Errorf("mount %q: no handler", m.Pattern)
	}
	a.routes = append(a.routes, Route{
		Method: m.Method, Pattern: m.Pattern, Name: m.Name, Access: m.Access, Summary: m.Summary, raw: true, maxBody: maxMountBody,
		serve: func(_ *API, w http.ResponseWriter, r *http.Request) error {
			m.Handler.ServeHTTP(w, r)
			return nil
		},
	})
	return nil
}

// register puts a line of the table into the mux. It is the only place that
// does, which a test holds us to.
func (a *API) register(route *Route) (err error) {
	if err := route.check(); err != nil {
		return err
	}
	if a.byPattern[route.String()] != nil {
		return fmt.Errorf("route %q: is there twice", route)
	}
	defer func() {
		// The mux panics on patterns that clash, and a mount may bring one.
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

// Drain has /ready say that the server is stopping, from now on. A host calls it
// when it begins to end, well before its listeners close, so that whoever sends
// it work goes elsewhere.
func (a *API) Drain() { a.draining.Store(true) }

// Handler serves the API to whoever can connect: it asks for a good Host, a
// good origin and a token.
func (a *API) Handler() http.Handler { return &guard{api: a} }

// Local serves the API to callers whom something else has found to be the user
// of this process, as the owner's socket does. It asks for no Host and no token.
func (a *API) Local() http.Handler { return &guard{api: a, local: true} }
