package api

import (
	"net/http"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// word is the status for a caller without a token.
var word = lazyregexp.New(`^[a-z][a-z_]{0,31}$`)

// wellness is the answer of the open routes: a word and nothing else.
type wellness struct {
	Status string `json:"status"`
}

// health is for a supervisor that restarts a process that fails.
func (a *API) health(w http.ResponseWriter, r *http.Request) error {
	h := Health{OK: true, Status: "ok"}
	if a.opt.Health != nil {
		h = a.opt.Health(r.Context())
	}
	return writeWord(w, h)
}

// ready is for a load balancer in front of several processes.
func (a *API) ready(w http.ResponseWriter, r *http.Request) error {
	return writeWord(w, a.readiness(r))
}

// readiness is what ready tells. A server that is closing is not ready whatever
// its host reports, so that balancers send no client to a process that stops.
func (a *API) readiness(r *http.Request) Health {
	switch {
	case a.draining.Load():
		return Health{Status: "stopping"}
	case a.opt.Ready != nil:
		return a.opt.Ready(r.Context())
	}
	return Health{OK: true, Status: "ok"}
}

// writeWord answers 200 or 503, for supervisors and load balancers.
func writeWord(w http.ResponseWriter, h Health) error {
	status := http.StatusOK
	if !h.OK {
		status = http.StatusServiceUnavailable
	}
	// A host that says more than a word here would tell strangers.
	if !word.MatchString(h.Status) {
		h.Status = "ok"
		if !h.OK {
			h.Status = "unwell"
		}
	}
	return writeJSON(w, status, wellness{h.Status})
}

// detail is what callers with a token see.
type detail struct {
	Version string    `json:"version"`
	Time    time.Time `json:"time"`
	Health  Health    `json:"health"`
	Ready   Health    `json:"ready"`
}

// healthDetail is always 200: who has a token wants to read it, above all when
// the host is not well.
func (a *API) healthDetail(w http.ResponseWriter, r *http.Request) error {
	d := detail{Version: a.opt.Version, Time: time.Now().UTC(), Health: Health{OK: true, Status: "ok"}, Ready: a.readiness(r)}
	if a.opt.Health != nil {
		d.Health = a.opt.Health(r.Context())
	}
	return writeJSON(w, http.StatusOK, d)
}

// metrics calls the handler of the options.
func (a *API) metrics(w http.ResponseWriter, r *http.Request) error {
	if a.opt.Metrics == nil {
		return abi.New(abi.NotFound, "this server has no metrics")
	}
	a.opt.Metrics.ServeHTTP(w, r)
	return nil
}

// feed hands the connection over. A token among the subprotocols goes no
// further, whether the guard needed it or not.
func (a *API) feed(w http.ResponseWriter, r *http.Request) error {
	if a.opt.Feed == nil {
		return abi.New(abi.NotFound, "this server has no live feed")
	}
	protocolToken(r.Header)
	r.Header.Del("Authorization")
	a.opt.Feed.ServeHTTP(w, r)
	return nil
}
