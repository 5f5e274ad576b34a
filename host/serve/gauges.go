package serve

import (
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/host/ops/metrics"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// gauges returns the sources of the gauges, which are read at each scrape.
func (s *Server) gauges() metrics.Options {
	return metrics.Options{
		Version: s.opt.Version, Logger: s.log,
		Runs: func() map[sentinels.Status]int {
			counts := map[sentinels.Status]int{}
			for _, r := range s.activeRuns() {
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
		Git: func() (uint64, time.Duration) {
			used := gitexec.Used()
			return used.Commands, used.Busy
		},
		Spans: s.spans(),
		Feed: func() metrics.Feed {
			f, k := s.feed.Stats(), s.sockets.Stats()
			return metrics.Feed{Subscribers: f.Subscribers, Published: f.Published, Gaps: f.Gaps, Lost: f.Lost, Dropped: k.Dropped, Refused: k.Refused}
		},
	}
}

// spans returns the counts of the spans of traces, nil without traces.
func (s *Server) spans() func() metrics.Spans {
	if s.tracer == nil {
		return nil
	}
	return func() metrics.Spans {
		t := s.tracer.Stats()
		return metrics.Spans{Sent: t.Sent, Dropped: t.Dropped, Failed: t.Failed}
	}
}

// activeRuns returns the active runs of this process.
func (s *Server) activeRuns() []runtime.RunInfo {
	runs, err := s.host.Runtime().Runs(runtime.RunFilter{Statuses: runtime.Unfinished()})
	if err != nil {
		s.log.Warn("runs cannot be listed", "error", err)
	}
	return runs
}
