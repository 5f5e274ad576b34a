package livefeed

import (
	"context"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Observer returns an observer of an engine that publishes its reports: progress,
// definitions, health, plugins and triggers. Its functions do not block. Events of
// the event log are published by [Feed.PublishEvents].
func (f *Feed) Observer() runtime.Observer {
	return runtime.Observer{
		Progress: f.Progress,
		Definition: func(c runtime.DefinitionChange) {
			kind := "saved"
			if c.Deleted {
				kind = "deleted"
			}
			f.Publish(TopicSentinels, kind, c)
		},
		Health: func(h runtime.Health) {
			kind := "ok"
			if !h.OK {
				kind = "unwell" // the engine has logged it
			}
			f.Publish(TopicHealth, kind, h)
		},
		Plugin:  func(p plugin.Info) { f.Publish(TopicPlugins, string(p.State), p) },
		Trigger: func(t runtime.TriggerFired) { f.Publish(TopicTriggers, string(t.Outcome), t) },
	}
}

// PublishEvents publishes every durable event of rt's event log from now on and
// calls published for each, until ctx ends. Subscribers may lose events; those that
// need each one read the event log.
func (f *Feed) PublishEvents(ctx context.Context, rt *runtime.Runtime, published func(sentinels.Event)) error {
	for at := rt.EventPosition(); ; {
		e, position, _, err := rt.NextEvent(ctx, "**", at)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		at = position
		if published != nil {
			published(e)
		}
		f.Publish(EventTopic(e.Name), e.Name, e)
	}
}
