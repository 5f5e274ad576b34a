package serve

import (
	"context"
	"sync/atomic"

	"github.com/sentinel-runtime/sentinel/host/api"
)

// state is the phase of the server.
type state struct{ phase atomic.Int32 }

const (
	phaseStarting int32 = iota
	phaseUp
	phaseStopping
)

func (s *state) up()       { s.phase.Store(phaseUp) }
func (s *state) stopping() { s.phase.Store(phaseStopping) }

// ready reports whether the server accepts work: it has started, is not stopping
// and can write.
func (s *Server) ready(ctx context.Context) api.Health {
	switch s.state.phase.Load() {
	case phaseStarting:
		return api.Health{Status: "starting"}
	case phaseStopping:
		return api.Health{Status: "stopping"}
	}
	return s.health(ctx)
}

// health reports whether the process works.
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
