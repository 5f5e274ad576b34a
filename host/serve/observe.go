package serve

import (
	"github.com/sentinel-runtime/sentinel/host/livefeed"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
)

// observer hands on what the engine tells: to the feed for whoever watches, to
// the figures, and to the traces. None of them blocks.
func (s *Server) observer() runtime.Observer {
	told := s.opt.Host.Observer
	return runtime.Observer{
		Progress: func(p runtime.Progress) {
			s.feed.Progress(p)
			s.metrics.Progress(p)
			if s.tracer != nil {
				s.tracer.Progress(p)
			}
			if told.Progress != nil {
				told.Progress(p)
			}
		},
		Definition: func(c runtime.DefinitionChange) {
			kind := "saved"
			if c.Deleted {
				kind = "deleted"
			}
			s.feed.Publish(livefeed.TopicSentinels, kind, c)
			if told.Definition != nil {
				told.Definition(c)
			}
		},
		Health: func(h runtime.Health) {
			kind := "ok"
			if !h.OK {
				kind = "unwell" // the engine has logged it
			}
			s.feed.Publish(livefeed.TopicHealth, kind, h)
			if told.Health != nil {
				told.Health(h)
			}
		},
		Plugin: func(p plugin.Info) {
			s.feed.Publish(livefeed.TopicPlugins, string(p.State), p)
			if told.Plugin != nil {
				told.Plugin(p)
			}
		},
		Trigger: func(f runtime.TriggerFired) {
			s.feed.Publish(livefeed.TopicTriggers, string(f.Outcome), f)
			s.metrics.Trigger(f.Type, string(f.Outcome))
			if told.Trigger != nil {
				told.Trigger(f)
			}
		},
	}
}
