package serve

import (
	"github.com/sentinel-runtime/sentinel/host/livefeed"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
)

// observer passes the engine's reports to the live feed, the metrics and the
// traces, and to the observer of the options. None of them may block.
func (s *Server) observer() runtime.Observer {
	next := s.opt.Host.Observer
	return runtime.Observer{
		Progress: func(p runtime.Progress) {
			s.feed.Progress(p)
			s.metrics.Progress(p)
			if s.tracer != nil {
				s.tracer.Progress(p)
			}
			if next.Progress != nil {
				next.Progress(p)
			}
		},
		Definition: func(c runtime.DefinitionChange) {
			kind := "saved"
			if c.Deleted {
				kind = "deleted"
			}
			s.feed.Publish(livefeed.TopicSentinels, kind, c)
			if next.Definition != nil {
				next.Definition(c)
			}
		},
		Health: func(h runtime.Health) {
			kind := "ok"
			if !h.OK {
				kind = "unwell" // the engine has logged it
			}
			s.feed.Publish(livefeed.TopicHealth, kind, h)
			if next.Health != nil {
				next.Health(h)
			}
		},
		Plugin: func(p plugin.Info) {
			s.feed.Publish(livefeed.TopicPlugins, string(p.State), p)
			if next.Plugin != nil {
				next.Plugin(p)
			}
		},
		Trigger: func(f runtime.TriggerFired) {
			s.feed.Publish(livefeed.TopicTriggers, string(f.Outcome), f)
			s.metrics.Trigger(f.Type, string(f.Outcome))
			if next.Trigger != nil {
				next.Trigger(f)
			}
		},
	}
}
