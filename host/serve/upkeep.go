package serve

import (
	"context"
	"time"

	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/runtime"
)

// trimAfter is how long after the start what only that needed is given back.
const trimAfter = 2 * time.Second

// upkeep keeps the state folder within its bounds until ctx ends.
func (s *Server) upkeep(ctx context.Context) {
	prune := ticks(s.host.Settings().Retention.Every.Std())
	defer prune.Stop()
	quiet := time.NewTimer(trimAfter)
	defer quiet.Stop()
	for {
		select {
		case <-quiet.C:
			if err := trim(); err != nil {
				s.log.Debug("memory of the start is kept", "error", err)
			}
		case <-prune.C:
			s.prune(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// prune lets go of runs that are over and older, more or larger than settled.
func (s *Server) prune(ctx context.Context) {
	done, err := s.host.Prune(ctx, retention(s.host.Settings().Retention))
	if err != nil && ctx.Err() == nil {
		s.log.Warn("old runs could not be removed", "error", err)
	}
	if done.Runs > 0 {
		s.log.Info("old runs removed", "runs", done.Runs, "bytes", done.Bytes)
	}
}

// retention returns the configured bounds as the engine has them.
func retention(c config.Retention) runtime.Retention {
	return runtime.Retention{MaxAge: c.Age.Std(), MaxRuns: c.Runs, MaxBytes: int64(c.Size), KeepFailed: float64(c.KeepFailed)}
}

// ticks is a ticker that never ticks for 0.
func ticks(every time.Duration) *time.Ticker {
	if every <= 0 {
		t := time.NewTicker(time.Hour)
		t.Stop()
		return t
	}
	return time.NewTicker(every)
}
