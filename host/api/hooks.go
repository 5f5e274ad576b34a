package api

import (
	"fmt"
	"net/http"

	"github.com/sentinel-runtime/sentinel/host/internal/httpproblem"
	"github.com/sentinel-runtime/sentinel/host/internal/peer"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// hookRoutes are where other services call. Which methods a hook takes is for
// its trigger to say.
func hookRoutes() []Route {
	var list []Route
	for _, m := range []struct{ method, name string }{{http.MethodGet, "Get"}, {http.MethodPost, "Post"}, {http.MethodPut, "Put"}} {
		method, name := m.method, m.name
		list = append(list,
			// Raw: a signature is over the very bytes that were sent.
			Route{
				Method: method, Pattern: "/v1/hooks/{sentinel}", Name: "hook" + name, Access: AccessHook, Status: http.StatusAccepted,
				Summary: "Fire the webhook of a sentinel that has one.", serve: (*API).hook, raw: true, maxBody: triggers.MaxBody,
			},
			Route{
				Method: method, Pattern: "/v1/hooks/{sentinel}/{trigger}", Name: "hookTrigger" + name, Access: AccessHook, Status: http.StatusAccepted,
				Summary: "Fire a webhook of a sentinel, by the trigger's name or index.", serve: (*API).hook, raw: true, maxBody: triggers.MaxBody,
			},
		)
	}
	return list
}

// admissions is what a webhook's sender gets to know.
type admissions struct {
	Admissions []triggers.Admission `json:"admissions"`
}

// hook hands a request to its trigger, which checks the secret.
func (a *API) hook(w http.ResponseWriter, r *http.Request) error {
	id, trigger := sentinels.ID(r.PathValue("sentinel")), r.PathValue("trigger")
	if a.opt.Hooks == nil {
		return refusedHook()
	}
	body, charge, release, err := a.readCharged(r, &Route{Access: AccessHook, maxBody: triggers.MaxBody})
	if err != nil {
		return err
	}
	defer release()
	own := turnOf(r.Context())
	if err := own.take(r.Context(), hookSenders); err != nil {
		return err
	}
	list, err := a.opt.Hooks.Receive(r.Context(), id, trigger, triggers.Request{
		Method: r.Method, Header: r.Header, Query: r.URL.Query(), Body: body, Chain: a.chainOf(r), Charge: charge, Accepted: own.giveBack,
	})
	// A sender is a stranger until its trigger accepts its secret. Until then the
	// answer is the same whether there is such a webhook or not.
	switch code := abi.CodeOf(err); code {
	case "":
		if len(list) == 0 { // accepted, and it reports no event
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
		return writeJSON(w, hookStatus(list), admissions{list})
	case abi.NotFound, abi.Denied:
		a.refused.add(a.log, id, trigger, err)
		return refusedHook()
	case abi.Internal:
		return fmt.Errorf("receive webhook: %w", hidden{err})
	}
	return err
}

// chainOf returns what finds the chain of the run whose step sent a request.
func (a *API) chainOf(r *http.Request) func() (hops int, path []string) {
	if a.opt.Chain == nil {
		return nil
	}
	return func() (int, []string) {
		process := 0
		if by := peer.Of(r); by.Standing == peer.Below {
			process = by.PID
		}
		return a.opt.Chain(process, r.RemoteAddr)
	}
}

// refusedHook is the answer to a request that no webhook accepts.
func refusedHook() error {
	return &httpproblem.Error{Status: http.StatusUnauthorized,
		Err: abi.New(abi.Denied, "no webhook matches, or its secret or signature is missing or wrong")}
}

// hookStatus is 202, or 200 if all that the request fired had been admitted before:
// nothing new will happen.
func hookStatus(list []triggers.Admission) int {
	for _, adm := range list {
		if adm.Outcome != triggers.Duplicate {
			return http.StatusAccepted
		}
	}
	return http.StatusOK
}

// hidden keeps a fault of the host from strangers: the log gets it, they get
// its kind.
type hidden struct{ cause error }

// Error has the kind on its first line, which is all that leaves the host.
func (h hidden) Error() string { return "a fault of the host\n" + h.cause.Error() }
