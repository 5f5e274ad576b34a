package serve

import (
	"context"

	"github.com/sentinel-runtime/sentinel/host/livefeed"
)

// tellEvents hands every event of the log to the feed, as it becomes durable.
// The log is the truth: who needs each event reads it there, by position.
func (s *Server) tellEvents(ctx context.Context) {
	rt := s.host.Runtime()
	for at := rt.EventPosition(); ; {
		e, position, _, err := rt.NextEvent(ctx, "**", at)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.log.Error("events are no longer told to watchers", "error", err)
			return
		}
		at = position
		s.metrics.Event()
		s.feed.Publish(livefeed.EventTopic(e.Name), e.Name, e)
	}
}
