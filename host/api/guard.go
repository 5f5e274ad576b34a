package api

import (
	"fmt"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/httpproblem"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A guard stands in front of the mux. Its order is a promise (API.md, G1): Host,
// origin, token, path, method, content type. What comes later tells nothing to
// those whom what comes earlier refused.
type guard struct {
	api   *API
	local bool // the caller is known to be our user
}

// ServeHTTP lets a request through to its route or answers it with a problem.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a, began := g.api, time.Now()
	answer := &answerWriter{ResponseWriter: w}
	header(answer.Header())
	// A deadline that an earlier request of the connection left is not ours; not
	// every writer has them.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
	a.timed(w, r)
	// Looking up the route changes nothing and tells nobody; who may know what was
	// found is decided below.
	route := a.find(r)
	defer func() {
		if p := recover(); p != nil {
			a.panicked(answer, r, p)
		}
		a.observe(r, route, answer, began)
	}()
	if err := g.admit(r, route); err != nil {
		a.fail(answer, r, err)
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
	a.mux.ServeHTTP(answer, r)
}

// header sets what every answer carries. There is no header of CORS among it:
// pages of other origins have no business here.
func header(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
}

// admit is the whole of the guard's decisions, in their order.
func (g *guard) admit(r *http.Request, route *Route) error {
	a := g.api
	if !g.local {
		if err := a.checkHost(r); err != nil {
			return err
		}
		if err := a.checkOrigin(r); err != nil {
			return err
		}
		if err := a.checkAccess(r, route); err != nil {
			return err
		}
	}
	if err := checkPath(r); err != nil {
		return err
	}
	if route == nil || r.Method == http.MethodOptions {
		return nil
	}
	return g.checkContent(r, route)
}

// find returns the line of the table that answers a request, nil if none does.
func (a *API) find(r *http.Request) *Route {
	if !slices.Contains(methods, r.Method) || checkPath(r) != nil {
		return nil
	}
	_, pattern := a.mux.Handler(r)
	route := a.byPattern[pattern]
	if route != nil && r.Method == http.MethodHead && route.Access == AccessHook {
		return nil // a hook that takes GET acts on it; HEAD must not
	}
	return route
}

// allowed returns the methods that a path has, OPTIONS among them.
func (a *API) allowed(r *http.Request) []string {
	var list []string
	// The mux is asked rather than the table, so that both cannot differ.
	for _, m := range methods {
		as := *r
		as.Method = m
		if m == http.MethodOptions || a.find(&as) != nil {
			list = append(list, m)
		}
	}
	return list
}

// nothing is the error of a request that no route answers.
func (a *API) nothing(r *http.Request) error {
	list := a.allowed(r)
	if len(list) <= 1 {
		return &abi.Error{Code: abi.NotFound, Message: fmt.Sprintf("%s %.200q: there is nothing here", r.Method, r.URL.Path),
			Hint: "/openapi.json lists what there is"}
	}
	return &methodError{allow: list, err: &httpproblem.Error{
		Status: http.StatusMethodNotAllowed,
		Err:    abi.New(abi.BadFields, fmt.Sprintf("%s %.200q: takes %s", r.Method, r.URL.Path, strings.Join(list, ", "))),
	}}
}

// methodError also carries what the Allow header has to say.
type methodError struct {
	allow []string
	err   error
}

// Error returns the text of the cause.
func (e *methodError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *methodError) Unwrap() error { return e.err }

// checkAccess asks for a token unless every route of the path does without.
// Paths that lead nowhere ask for one too: what there is, is no stranger's
// business.
func (a *API) checkAccess(r *http.Request, route *Route) error {
	if r.Method == http.MethodOptions {
		// It has no line of its own: asking what a path takes needs what taking it
		// needs.
		route = a.strictest(r)
	}
	if route != nil && (route.Access == AccessOpen || route.Access == AccessHook) {
		return nil
	}
	if a.opt.NoAuth {
		return fromHere(r)
	}
	// No token at all and a wrong one get the same status, but people need to know
	// which it was.
	token, ok := presented(r, route)
	if ok && a.opt.Tokens != nil && a.opt.Tokens.Valid(token) {
		connOf(r.Context()).trusted()
		return nil
	}
	e := &abi.Error{Code: abi.Denied, Message: "no token was given", Hint: "send the header Authorization: Bearer TOKEN; `sentinel token` prints the token"}
	if ok {
		e.Message = "the token is not the one of this server"
	}
	return &httpproblem.Error{Status: http.StatusUnauthorized, Err: e}
}

// strictest returns a route of the path that wants a token, or any other one.
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

// fromHere refuses callers from other machines where no token is asked for.
func fromHere(r *http.Request) error {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if ip := net.ParseIP(host); err == nil && ip.IsLoopback() {
		return nil
	}
	return &abi.Error{Code: abi.Denied, Message: "this server asks for no token and answers only its own machine"}
}

// checkPath refuses paths that the mux would clean: a path that is not what it
// seems has no meaning here (API.md, G4).
func checkPath(r *http.Request) error {
	p := r.URL.Path
	clean := path.Clean(p)
	if strings.HasSuffix(p, "/") && clean != "/" {
		clean += "/"
	}
	if !strings.HasPrefix(p, "/") || clean != p || len(p) > 2048 || strings.ContainsFunc(p, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return &abi.Error{Code: abi.BadFields, Permanent: true, Message: fmt.Sprintf("path %.80q: is not in its plain form", p)}
	}
	return nil
}
