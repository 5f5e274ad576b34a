package serve

import (
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
)

// observer passes the engine's reports to the live feed, the metrics, the log and
// the traces, and to the observer of the options. None of them may block.
func (s *Server) observer() runtime.Observer {
	feed, next := s.feed.Observer(), s.opt.Host.Observer
	return runtime.Observer{
		Progress: func(p runtime.Progress) {
			feed.Progress(p)
			s.metrics.Progress(p)
			s.activity.progress(p)
			if s.tracer != nil {
				s.tracer.Progress(p)
			}
			if next.Progress != nil {
				next.Progress(p)
			}
		},
		Definition: func(c runtime.DefinitionChange) {
			feed.Definition(c)
			s.activity.defined(c)
			if next.Definition != nil {
				next.Definition(c)
			}
		},
		Health: func(h runtime.Health) {
			feed.Health(h)
			if next.Health != nil {
				next.Health(h)
			}
		},
		Plugin: func(p plugin.Info) {
			feed.Plugin(p)
			s.activity.plugged(p)
			if next.Plugin != nil {
				next.Plugin(p)
			}
		},
		Trigger: func(f runtime.TriggerFired) {
			feed.Trigger(f)
			s.metrics.Trigger(f.Type, string(f.Outcome))
			s.activity.fired(f)
			if next.Trigger != nil {
				next.Trigger(f)
			}
		},
	}
}
