package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/internal/httpproblem"
	"github.com/sentinel-runtime/sentinel/host/internal/peer"
	"github.com/sentinel-runtime/sentinel/host/principal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// identify records who a request is made by, and refuses what that principal may not do.
// Decisions are refused by the commands, so that all listeners refuse the same. A process
// below a step can read the token of a person, so it is an agent with it, too.
func (g *guard) identify(r *http.Request, route *Route, p principal.Principal) error {
	as, err := p.Narrow(r.Header.Get(principal.Header))
	if person := p.Kind == "" || p.Kind == principal.Person; person || g.local {
		by := peer.Of(r)
		as.Process = principal.Process{PID: by.PID, Program: by.Program}
		switch {
		case person && !g.local && g.api.opt.Sends != nil && g.api.opt.Sends(r.RemoteAddr):
			as = as.Below(principal.BelowStep) // a step of this process sends it, whose process is the host's
			as.Process.Remote = r.RemoteAddr
		case !person || by.Standing == peer.Apart:
		case by.Standing == peer.Below:
			as = as.Below(principal.BelowStep)
		default:
			as = as.Below(principal.Unknown)
		}
	}
	*r = *r.WithContext(principal.With(r.Context(), as))
	if err != nil {
		return err
	}
	return g.api.checkViewer(r, route, as)
}

// checkViewer refuses changes of a viewer.
func (a *API) checkViewer(r *http.Request, route *Route, p principal.Principal) error {
	if p.Kind != principal.Viewer || a.reads(r, route) {
		return nil
	}
	return &httpproblem.Error{Status: http.StatusForbidden, Err: &abi.Error{
		Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("%s may only read", p), Hint: "use the token of a person or an agent: sentinel token new --as agent --name NAME",
	}}
}

// reads reports whether a request changes nothing. Commands that only read are called by
// POST as well.
func (a *API) reads(r *http.Request, route *Route) bool {
	switch {
	case route == nil, r.Method == http.MethodGet, r.Method == http.MethodHead, r.Method == http.MethodOptions:
		return true
	}
	c, ok := a.commandOf(r, route)
	return ok && c.ReadOnly()
}

// commandOf returns the command that a request calls.
func (a *API) commandOf(r *http.Request, route *Route) (command.Command, bool) {
	name := route.Command
	if name == "" {
		name, _ = strings.CutPrefix(r.URL.Path, "/v1/commands/")
	}
	return a.opt.Commands.Lookup(name)
}

// A Denial is a request that the guard refused because of who made it.
type Denial struct {
	// Actor is "unknown" for a request without a valid token, else the kind and the name of
	// the principal: "viewer:ci".
	Actor   string
	Event   string            // the command, else the route, else "other"
	Remote  string            // IP address of the client, empty for the control socket
	Process principal.Process // of the client, where it is known
	Err     error
}

// reportDenial calls Options.Denied for a request that was refused because of who made it.
func (g *guard) reportDenial(r *http.Request, route *Route, err error) {
	a := g.api
	if a.opt.Denied == nil || abi.CodeOf(err) != abi.Denied {
		return
	}
	d := Denial{Actor: "unknown", Event: "other", Err: err}
	if status := (*httpproblem.Error)(nil); !errors.As(err, &status) || status.Status != http.StatusUnauthorized {
		p := principal.From(r.Context())
		d.Actor, d.Process = cmp.Or(p.Header(), "user"), p.Process
	} else if g.local {
		by := peer.Of(r)
		d.Process = principal.Process{PID: by.PID, Program: by.Program}
	}
	if !g.local {
		d.Remote, _, _ = net.SplitHostPort(r.RemoteAddr)
	}
	if route != nil {
		d.Event = route.String()
		if c, ok := a.commandOf(r, route); ok {
			d.Event = c.Name
		}
	}
	a.opt.Denied(d)
}

// callBy completes a call by who its request is made by.
func callBy(r *http.Request, call *command.Call) *command.Call {
	call.By, call.As = command.CallerOf(principal.From(r.Context()))
	return call
}

// whileValid returns a context that ends when the token is not valid any more, with
// [principal.ErrRevoked] as its cause. parent ends when the handler has returned.
func (a *API) whileValid(parent context.Context, token string) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	var timer *time.Timer
	timer = time.AfterFunc(time.Hour, func() { // Reset follows, for it must not run before timer is set
		if _, ok := a.opt.Tokens.Who(token); !ok {
			cancel(principal.ErrRevoked)
		} else if parent.Err() == nil {
			timer.Reset(principal.RevokeCheck)
		}
	})
	timer.Reset(principal.RevokeCheck)
	context.AfterFunc(parent, func() {
		timer.Stop()
		cancel(context.Cause(parent))
	})
	return ctx
}

// errRevoked is the answer to a request whose token was revoked or has expired while it was under way.
var errRevoked = &httpproblem.Error{Status: http.StatusUnauthorized, Err: &abi.Error{
	Code: abi.Denied, Permanent: true, Message: "the token was revoked or has expired while the request was under way", Hint: "runs that it has started go on: sentinel stop ends them",
}}
