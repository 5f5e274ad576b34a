package serve

import (
	"context"
	"time"

	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/runtime"
)

// trimAfter is the time from the start to [trim].
const trimAfter = 2 * time.Second

// upkeep trims memory once and prunes runs regularly, until ctx ends.
func (s *Server) upkeep(ctx context.Context) {
	prune := ticks(s.host.Settings().Retention.Every.Std())
	defer prune.Stop()
	trimming := time.NewTimer(trimAfter)
	defer trimming.Stop()
	for {
		select {
		case <-trimming.C:
			if err := trim(); err != nil {
				s.log.Debug("memory cannot be trimmed", "error", err)
			}
		case <-prune.C:
			s.prune(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// prune deletes ended runs beyond the configured retention.
func (s *Server) prune(ctx context.Context) {
	done, err := s.host.Prune(ctx, retention(s.host.Settings().Retention))
	if err != nil && ctx.Err() == nil {
		s.log.Warn("old runs could not be removed", "error", err)
	}
	if done.Runs > 0 {
		s.log.Info("old runs removed", "runs", done.Runs, "bytes", done.Bytes)
	}
}

// retention converts the configured bounds.
func retention(c config.Retention) runtime.Retention {
	return runtime.Retention{MaxAge: c.Age.Std(), MaxRuns: c.Runs, MaxBytes: int64(c.Size), KeepFailed: float64(c.KeepFailed)}
}

// ticks returns a ticker, which never ticks if every is 0.
func ticks(every time.Duration) *time.Ticker {
	if every <= 0 {
		t := time.NewTicker(time.Hour)
		t.Stop()
		return t
	}
	return time.NewTicker(every)
}
