package serve

import (
	"context"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// publishEvents publishes the event log on the live feed until ctx ends.
func (s *Server) publishEvents(ctx context.Context) {
	err := s.feed.PublishEvents(ctx, s.host.Runtime(), func(sentinels.Event) { s.metrics.Event() })
	if err != nil {
		s.log.Error("events are no longer published to the live feed", "error", err)
	}
}
