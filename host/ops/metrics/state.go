package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sentinel-runtime/sentinel/runtime"
)

// state is asked when it is scraped: what it tells is kept by others.
type state struct {
	opt Options

	build, runs, definitions, plugins  *prometheus.Desc
	commits, bytes, stalled            *prometheus.Desc
	gitCommands, gitSeconds, spans     *prometheus.Desc
	subscribers, published, gaps, lost *prometheus.Desc
	dropped, refused                   *prometheus.Desc
}

func newState(o Options) *state {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(namespace+"_"+name, help, labels, nil)
	}
	return &state{
		opt:         o,
		build:       desc("build_info", "Always 1; its label is the version.", "version"),
		runs:        desc("runs", "Runs that are not over, by status.", "status"),
		definitions: desc("definitions", "Definitions that are stored."),
		plugins:     desc("plugins", "Plugins that are live."),
		commits:     desc("store_commits_total", "Commits to the store."),
		bytes:       desc("store_bytes", "Size of the store's file."),
		stalled:     desc("store_stalled", "1 while the store takes no writes."),
		gitCommands: desc("git_commands_total", "Commands of git that were started."),
		gitSeconds:  desc("git_seconds_total", "Time in which at least one command of git ran."),
		spans:       desc("trace_spans_total", "Spans of traces that were sent, dropped because too many were waiting, or failed to be sent, by outcome.", "outcome"),
		subscribers: desc("feed_subscribers", "Readers of the live feed."),
		published:   desc("feed_entries_total", "Entries of the live feed."),
		gaps:        desc("feed_gaps_total", "Gaps that were reported to readers of the live feed."),
		lost:        desc("feed_lost_total", "Entries that were lost in those gaps, at most."),
		dropped:     desc("feed_dropped_total", "Readers that were dropped because they were too slow."),
		refused:     desc("feed_refused_total", "Readers that were refused because there were too many."),
	}
}

// Describe names only what is always there: the rest depends on the options.
func (s *state) Describe(ch chan<- *prometheus.Desc) { ch <- s.build }

// Collect asks.
func (s *state) Collect(ch chan<- prometheus.Metric) {
	tell := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) { tell(d, prometheus.GaugeValue, v, labels...) }
	count := func(d *prometheus.Desc, v uint64) { tell(d, prometheus.CounterValue, float64(v)) }
	gauge(s.build, 1, s.opt.Version)
	if s.opt.Runs != nil {
		runs := s.opt.Runs()
		for _, status := range runtime.Unfinished() {
			gauge(s.runs, float64(runs[status]), string(status)) // 0 where there is none: an alert can ask for it
		}
	}
	if s.opt.Definitions != nil {
		gauge(s.definitions, float64(s.opt.Definitions()))
	}
	if s.opt.Plugins != nil {
		gauge(s.plugins, float64(s.opt.Plugins()))
	}
	if s.opt.Store != nil {
		st := s.opt.Store()
		count(s.commits, st.Commits)
		gauge(s.bytes, float64(st.Bytes))
		stalled := 0.0
		if st.Stalled {
			stalled = 1
		}
		gauge(s.stalled, stalled)
	}
	if s.opt.Git != nil {
		commands, busy := s.opt.Git()
		count(s.gitCommands, commands)
		tell(s.gitSeconds, prometheus.CounterValue, busy.Seconds())
	}
	if s.opt.Spans != nil {
		spans := s.opt.Spans()
		for outcome, n := range map[string]uint64{"sent": spans.Sent, "dropped": spans.Dropped, "failed": spans.Failed} {
			tell(s.spans, prometheus.CounterValue, float64(n), outcome)
		}
	}
	if s.opt.Feed != nil {
		f := s.opt.Feed()
		gauge(s.subscribers, float64(f.Subscribers))
		count(s.published, f.Published)
		count(s.gaps, f.Gaps)
		count(s.lost, f.Lost)
		count(s.dropped, f.Dropped)
		count(s.refused, f.Refused)
	}
}

var _ prometheus.Collector = (*state)(nil)
