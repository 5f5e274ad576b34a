package serve

import (
	"github.com/sentinel-runtime/sentinel/host/ops/metrics"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// figures are read when somebody looks at the metrics.
func (s *Server) figures() metrics.Options {
	return metrics.Options{
		Version: s.opt.Version, Logger: s.log,
		Runs: func() map[sentinels.Status]int {
			counts := map[sentinels.Status]int{}
			for _, r := range s.live() {
				counts[r.Status]++
			}
			return counts
		},
		Definitions: func() int {
			all, err := s.host.Runtime().Definitions()
			if err != nil {
				s.log.Warn("definitions cannot be counted", "error", err)
			}
			return len(all)
		},
		Plugins: func() int {
			n := 0
			for _, p := range s.host.Runtime().Plugins() {
				if p.State == plugin.Live {
					n++
				}
			}
			return n
		},
		Store: func() metrics.Store {
			h := s.host.Runtime().Health()
			return metrics.Store{Commits: h.Commits, Bytes: h.StoreBytes, Stalled: !h.OK}
		},
		Feed: func() metrics.Feed {
			f, k := s.feed.Stats(), s.sockets.Stats()
			return metrics.Feed{Subscribers: f.Subscribers, Published: f.Published, Gaps: f.Gaps, Lost: f.Lost, Dropped: k.Dropped, Refused: k.Refused}
		},
	}
}

// live are the runs that this process carries out.
func (s *Server) live() []runtime.RunInfo {
	runs, err := s.host.Runtime().Runs(runtime.RunFilter{Statuses: runtime.Unfinished()})
	if err != nil {
		s.log.Warn("runs cannot be listed", "error", err)
	}
	return runs
}
