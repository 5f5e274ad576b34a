package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/internal/httpproblem"
	"github.com/sentinel-runtime/sentinel/host/principal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// identify records who a request is made by, and refuses what that principal may not do.
// Decisions are refused by the commands, so that all doors refuse the same.
func (a *API) identify(r *http.Request, route *Route, p principal.Principal) error {
	p, err := p.Narrow(r.Header.Get(principal.Header))
	if err != nil {
		return err
	}
	*r = *r.WithContext(principal.With(r.Context(), p))
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
	name := route.Command
	if name == "" {
		name, _ = strings.CutPrefix(r.URL.Path, "/v1/commands/")
	}
	c, ok := a.opt.Commands.Lookup(name)
	return ok && c.ReadOnly
}

// callBy completes a call by who its request is made by.
func callBy(r *http.Request, call *command.Call) *command.Call {
	call.By, call.As = command.CallerOf(principal.From(r.Context()))
	return call
}

// revokeCheck is how often a connection that stays open asks whether its token is valid.
const revokeCheck = 2 * time.Second

// whileValid returns a context that ends when the token is not valid any more, with
// [principal.ErrRevoked] as its cause.
func (a *API) whileValid(parent context.Context, token string) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	go func() {
		tick := time.NewTicker(revokeCheck)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if _, ok := a.opt.Tokens.Who(token); !ok {
					cancel(principal.ErrRevoked)
					return
				}
			case <-parent.Done(): // the handler has returned
				cancel(context.Cause(parent))
				return
			}
		}
	}()
	return ctx
}
