package serve

import (
	"context"
	"sync/atomic"

	"github.com/sentinel-runtime/sentinel/host/api"
)

// state is where in its life the server is.
type state struct{ phase atomic.Int32 }

const (
	phaseStarting int32 = iota
	phaseUp
	phaseStopping
)

func (s *state) up()       { s.phase.Store(phaseUp) }
func (s *state) stopping() { s.phase.Store(phaseStopping) }

// ready says whether new work is welcome: everything is up and nothing ends. A
// server that cannot write takes none.
func (s *Server) ready(ctx context.Context) api.Health {
	switch s.state.phase.Load() {
	case phaseStarting:
		return api.Health{Status: "starting"}
	case phaseStopping:
		return api.Health{Status: "stopping"}
	}
	return s.health(ctx)
}

// health says whether the process does what it is there for.
func (s *Server) health(context.Context) api.Health {
	h := s.host.Runtime().Health()
	if h.OK {
		return api.Health{OK: true, Status: "ok", Detail: h}
	}
	if h.ReadOnly {
		return api.Health{Status: "read_only", Detail: h}
	}
	return api.Health{Status: "unwell", Detail: h}
}
