package serve

import (
	"context"

	"github.com/sentinel-runtime/sentinel/host/livefeed"
)

// publishEvents publishes every durable event of the event log on the live feed.
// The feed may lose events; clients that need each one read the event log.
func (s *Server) publishEvents(ctx context.Context) {
	rt := s.host.Runtime()
	for at := rt.EventPosition(); ; {
		e, position, _, err := rt.NextEvent(ctx, "**", at)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.log.Error("events are no longer published to the live feed", "error", err)
			return
		}
		at = position
		s.metrics.Event()
		s.feed.Publish(livefeed.EventTopic(e.Name), e.Name, e)
	}
}
