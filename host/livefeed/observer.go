package livefeed

import (
	"context"
	"errors"

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
// calls published for each, until ctx ends. Events of runs are among them if a
// subscriber has asked for them. Subscribers may lose events; those that need each one
// read the event log.
func (f *Feed) PublishEvents(ctx context.Context, rt *runtime.Runtime, published func(sentinels.Event)) error {
	f.mu.Lock()
	f.expect = rt.ExpectRunEvents
	for pattern := range f.runEvents {
		f.expect(pattern)
	}
	f.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	at := rt.RunEventPosition()
	runs := make(chan error, 1)
	go func() {
		defer cancel()
		runs <- f.publish(ctx, at, rt.NextRunEvent, published)
	}()
	err := f.publish(ctx, rt.EventPosition("**"), func(ctx context.Context, after uint64) (sentinels.Event, uint64, int, error) {
		return rt.NextEvent(ctx, "**", after)
	}, published)
	cancel()
	return errors.Join(err, <-runs)
}

// publish publishes the events of one log.
func (f *Feed) publish(ctx context.Context, at uint64, next func(context.Context, uint64) (sentinels.Event, uint64, int, error), published func(sentinels.Event)) error {
	for {
		e, position, _, err := next(ctx, at)
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

// maxRunPatterns bounds the patterns of events of runs that are kept. Clients can
// subscribe to any.
const maxRunPatterns = 1000

// expectRunEvents has the engine write the events of runs that match a pattern. The
// caller holds f.mu.
func (f *Feed) expectRunEvents(pattern string) {
	if len(f.runEvents) >= maxRunPatterns {
		pattern = sentinels.RunEventPrefix + "*:*"
	}
	if f.runEvents[pattern] {
		return
	}
	f.runEvents[pattern] = true
	if f.expect != nil {
		f.expect(pattern)
	}
}
