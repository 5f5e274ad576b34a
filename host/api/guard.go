package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/httpproblem"
	"github.com/sentinel-runtime/sentinel/host/principal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// guard checks requests before the mux. The order of its checks is specified
// (API.md, G1): Host, origin, token, path, method, content type. A refused
// request learns nothing from later checks.
type guard struct {
	api   *API
	local bool // the control socket, whose clients are no pages and name no host
}

// ServeHTTP passes a request to its route or responds with a problem.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a, began := g.api, time.Now()
	conn := connOf(r.Context())
	conn.begin()
	defer conn.end()
	answer := &answerWriter{ResponseWriter: w}
	header(answer.Header())
	// An earlier request of the connection may have left a deadline. Not every
	// writer has deadlines.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
	a.timed(w, r)
	// The lookup has no effect that a client could see; admit decides whether
	// the client may use the route.
	route := a.find(r)
	defer func() {
		if p := recover(); p != nil {
			a.panicked(answer, r, p)
		}
		a.observe(r, route, answer, began)
	}()
	own := &turn{queue: a.turn, conn: conn}
	defer own.giveBack()
	var err error
	if r.Method == http.MethodOptions { // admit asks for the routes of all methods
		err = own.take(r.Context(), refusedRequests)
	}
	if err == nil {
		err = g.admit(r, route)
	}
	if err != nil {
		defer conn.yield()()
	}
	if err != nil || route != nil && route.Access == AccessOpen {
		owner := openRoutes
		if err != nil {
			owner = refusedRequests
		}
		if cancelled := own.take(r.Context(), owner); cancelled != nil {
			a.fail(answer, r, cancelled)
			return
		}
	}
	if err != nil {
		if g.local || !a.refuseSocket(answer, r, route, err) {
			a.fail(answer, r, err)
		}
		return
	}
	if r.Method == http.MethodOptions {
		answer.Header().Set("Allow", strings.Join(a.allowed(r), ", "))
		answer.WriteHeader(http.StatusNoContent)
		return
	}
	if route == nil {
		a.fail(answer, r, a.nothing(r))
		return
	}
	if route.Access == AccessToken {
		o := ownerOf(r, route)
		leave, err := conn.enter(o)
		if err != nil {
			a.fail(answer, r, err)
			return
		}
		defer leave()
		if answer.place = a.placeFor(o); answer.place != nil {
			defer answer.place.giveBack()
			r = r.WithContext(context.WithValue(r.Context(), placeKey{}, answer.place))
		}
	}
	if route.Access == AccessHook {
		hook := &turn{queue: a.hooks, conn: conn}
		defer hook.giveBack()
		r = r.WithContext(context.WithValue(r.Context(), turnKey{}, hook))
	}
	a.mux.ServeHTTP(answer, r)
}

// header sets the headers of every response. There are no CORS headers: pages
// of other origins have no access.
func header(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
}

// admit makes all checks of the guard in their order.
func (g *guard) admit(r *http.Request, route *Route) error {
	a := g.api
	if !g.local {
		if err := a.checkHost(r); err != nil {
			return err
		}
		if err := a.checkOrigin(r); err != nil {
			return err
		}
	}
	if err := g.checkAccess(r, route); err != nil {
		g.reportDenial(r, route, err)
		return err
	}
	if err := checkPath(r); err != nil {
		return err
	}
	if route == nil || r.Method == http.MethodOptions {
		return nil
	}
	return g.checkContent(r, route)
}

// find returns the route of a request, nil if there is none.
func (a *API) find(r *http.Request) *Route {
	if !slices.Contains(methods, r.Method) || checkPath(r) != nil {
		return nil
	}
	_, pattern := a.mux.Handler(r)
	route := a.byPattern[pattern]
	if route != nil && r.Method == http.MethodHead && route.Access == AccessHook {
		return nil // a GET of a hook has an effect; HEAD must not
	}
	return route
}

// allowed returns the methods of a path, including OPTIONS.
func (a *API) allowed(r *http.Request) []string {
	var list []string
	// find asks the mux, so this cannot differ from what is served.
	for _, m := range methods {
		as := *r
		as.Method = m
		if m == http.MethodOptions || a.find(&as) != nil {
			list = append(list, m)
		}
	}
	return list
}

// noRoute is the error of a request without a route.
func (a *API) nothing(r *http.Request) error {
	list := a.allowed(r)
	if len(list) <= 1 {
		return &abi.Error{Code: abi.NotFound, Message: fmt.Sprintf("%s %.200q: no such route", r.Method, r.URL.Path),
			Hint: "/openapi.json lists all routes"}
	}
	return &methodError{allow: list, err: &httpproblem.Error{
		Status: http.StatusMethodNotAllowed,
		Err:    abi.New(abi.BadFields, fmt.Sprintf("%s %.200q: takes %s", r.Method, r.URL.Path, strings.Join(list, ", "))),
	}}
}

// methodError also has the values of the Allow header.
type methodError struct {
	allow []string
	err   error
}

// Error returns the text of the cause.
func (e *methodError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *methodError) Unwrap() error { return e.err }

// checkAccess requires a token unless no route of the path does. Unknown paths
// require one too, so that clients without a token cannot find out which routes
// exist. On the control socket a webhook requires one, because nothing that sends
// webhooks uses the socket, and NoAuth does not hold there.
func (g *guard) checkAccess(r *http.Request, route *Route) error {
	a := g.api
	if r.Method == http.MethodOptions {
		// OPTIONS has no routes: it requires what the other methods of the path
		// require.
		route = a.strictest(r)
	}
	if route != nil && (route.Access == AccessOpen || route.Access == AccessHook && !g.local) {
		return nil
	}
	if a.opt.NoAuth && !g.local {
		if err := fromHere(r); err != nil {
			return err
		}
		return g.identify(r, route, principal.Principal{})
	}
	// A missing and an invalid token have the same status, but different
	// messages for the user.
	token, ok := presented(r, route)
	if a.opt.Tokens != nil {
		// An empty token is never valid. To ask has a token created that could not be yet.
		if p, valid := a.opt.Tokens.Who(token); valid && ok {
			connOf(r.Context()).trusted(p)
			ctx := a.whileValid(r.Context(), token)
			if p.Name != "" {
				ctx = principal.WithValidity(ctx, func() bool { _, valid := a.opt.Tokens.Who(token); return valid })
			}
			*r = *r.WithContext(ctx)
			return g.identify(r, route, p)
		}
	}
	e := &abi.Error{Code: abi.Denied, Message: noToken, Hint: "send the header Authorization: Bearer TOKEN; `sentinel token` prints the token"}
	if ok {
		e.Message = "the token is not valid for this server"
	}
	if g.local {
		e.Hint = "the file token in the state folder has it; `sentinel token` prints it, and makes one if there is none"
	}
	return &httpproblem.Error{Status: http.StatusUnauthorized, Err: e}
}

const noToken = "the request has no token"

// refuseSocket closes the WebSocket of a client that has no access, and reports whether
// the request is for one.
func (a *API) refuseSocket(w http.ResponseWriter, r *http.Request, route *Route, err error) bool {
	var problem *httpproblem.Error
	if a.opt.RefuseSocket == nil || route == nil || route.Pattern != "/ws" || !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") ||
		!errors.As(err, &problem) || problem.Status != http.StatusUnauthorized {
		return false
	}
	e := abi.As(problem.Err)
	a.opt.RefuseSocket(w, r, e == nil || e.Message != noToken)
	return true
}

// strictest returns a route of the path that requires a token, or else any
// route of it.
func (a *API) strictest(r *http.Request) *Route {
	var found *Route
	for _, m := range a.allowed(r) {
		as := *r
		as.Method = m
		if route := a.find(&as); route != nil && (found == nil || route.Access == AccessToken) {
			found = route
		}
	}
	return found
}

// checkLoopback refuses callers from other machines, for servers without
// tokens.
func fromHere(r *http.Request) error {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if ip := net.ParseIP(host); err == nil && ip.IsLoopback() {
		return nil
	}
	return &abi.Error{Code: abi.Denied, Message: "this server runs without tokens and accepts requests from its own machine only"}
}

// checkPath refuses paths that the mux would clean (API.md, G4).
func checkPath(r *http.Request) error {
	p := r.URL.Path
	clean := path.Clean(p)
	if strings.HasSuffix(p, "/") && clean != "/" {
		clean += "/"
	}
	if !strings.HasPrefix(p, "/") || clean != p || len(p) > 2048 || strings.ContainsFunc(p, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return &abi.Error{Code: abi.BadFields, Permanent: true, Message: fmt.Sprintf("path %.80q: is not in its canonical form", p)}
	}
	return nil
}
