package metrics_test

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/ops/metrics"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// scrape reads the metrics over HTTP: the series of each family, and the type
// that was announced for it.
func scrape(t testing.TB, m *metrics.Metrics) (series map[string]float64, kinds map[string]string) {
	t.Helper()
	srv := httptest.NewServer(m.Handler())
	defer srv.Close()
	answer, err := http.Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK || !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/plain") {
		t.Fatalf("%d %s %v", answer.StatusCode, b, err)
	}
	series, kinds = map[string]float64{}, map[string]string{}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, kind, _ := strings.Cut(rest, " ")
			kinds[name] = kind
			continue
		}
		if strings.HasPrefix(line, "#") {
			continue
		}
		cut := strings.LastIndexByte(line, ' ')
		v, err := strconv.ParseFloat(line[cut+1:], 64)
		if _, twice := series[line[:cut]]; err != nil || twice {
			t.Errorf("line %q: %v", line, err)
		}
		series[line[:cut]] = v
	}
	return series, kinds
}

// ours keeps the series of this package that have a name, without buckets.
func ours(series map[string]float64) map[string]float64 {
	out := map[string]float64{}
	for name, v := range series {
		if strings.HasPrefix(name, "sentinel_") && !strings.Contains(name, "_bucket{") {
			out[name] = v
		}
	}
	return out
}

func TestEverythingIsCounted(t *testing.T) {
	m := metrics.New(metrics.Options{
		Version: "1.2.3",
		Runs: func() map[sentinels.Status]int {
			return map[sentinels.Status]int{sentinels.StatusRunning: 3, sentinels.StatusQueued: 2}
		},
		Definitions: func() int { return 4 },
		Plugins:     func() int { return 5 },
		Store:       func() metrics.Store { return metrics.Store{Commits: 6, Bytes: 7, Stalled: true} },
		Git:         func() (uint64, time.Duration) { return 14, 1500 * time.Millisecond },
		Spans:       func() metrics.Spans { return metrics.Spans{Sent: 21, Dropped: 22, Failed: 23} },
		Feed: func() metrics.Feed {
			return metrics.Feed{Subscribers: 8, Published: 9, Gaps: 10, Lost: 11, Dropped: 12, Refused: 13}
		},
	})
	for _, p := range []runtime.Progress{
		{Event: runtime.OnRunStart, Sentinel: "a"}, {Event: runtime.OnStepStart, Type: "shell"}, {Event: runtime.OnText, Message: "x"},
		{Event: runtime.OnStepEnd, Type: "shell", Duration: 2 * time.Second},
		{Event: runtime.OnStepEnd, Type: "shell", Duration: time.Second, Error: abi.New(abi.Timeout, "x")},
		{Event: runtime.OnStepEnd, Type: "shell", Skipped: "condition"},
		{Event: runtime.OnStepEnd, Type: "llm", Skipped: "error", Error: abi.New(abi.Timeout, "x"), Duration: time.Second},
		{Event: runtime.OnRetry, Category: "transient"},
		{Event: runtime.OnCallEnd, Function: "sentinel_llm", Usage: &sentinels.Usage{InputTokens: 100, OutputTokens: 20, CostUSD: 0.5, Calls: 1}},
		{Event: runtime.OnCallEnd, Function: "sentinel_llm", Usage: &sentinels.Usage{InputTokens: -1, OutputTokens: -1, CostUSD: math.NaN()}},
		{Event: runtime.OnCallEnd, Function: "sentinel_command", Error: abi.New(abi.Denied, "x")},
		{Event: runtime.OnIterationEnd},
		{Event: runtime.OnRunEnd, Sentinel: "a", Status: sentinels.StatusCompleted, Duration: time.Minute, Usage: &sentinels.Usage{InputTokens: 100}},
	} {
		m.Progress(p)
	}
	m.Trigger("schedule", "started")
	m.Event()
	m.TicketRetried("timeout", 2*time.Second)
	m.HTTP("GET /v1/runs/{id}", 200, time.Second)
	m.HTTP("GET /v1/runs/{id}", 404, time.Second)
	m.HTTP("GET /v1/runs/{id}", -7, time.Second)

	series, kinds := scrape(t, m)
	want := map[string]float64{
		`sentinel_build_info{version="1.2.3"}`: 1,
		`sentinel_runs{status="running"}`:      3, `sentinel_runs{status="paused"}`: 0, `sentinel_runs{status="waiting"}`: 0, `sentinel_runs{status="queued"}`: 2,
		`sentinel_runs_total{sentinel="a",status="completed"}`: 1, `sentinel_runs_total{sentinel="a",status="failed"}`: 0, `sentinel_runs_total{sentinel="a",status="stopped"}`: 0,
		`sentinel_runs_total{sentinel="a",status="timed_out"}`: 0, `sentinel_runs{status="quarantined"}`: 0,
		`sentinel_run_seconds_sum{sentinel="a",status="completed"}`: 60, `sentinel_run_seconds_count{sentinel="a",status="completed"}`: 1,
		`sentinel_iterations_total`:                           1,
		`sentinel_steps_total{outcome="ok",type="shell"}`:     1,
		`sentinel_steps_total{outcome="failed",type="shell"}`: 1, `sentinel_steps_total{outcome="skipped",type="shell"}`: 1,
		`sentinel_steps_total{outcome="skipped",type="llm"}`: 1,
		`sentinel_step_seconds_sum{type="shell"}`:            3, `sentinel_step_seconds_count{type="shell"}`: 2,
		`sentinel_step_seconds_sum{type="llm"}`: 1, `sentinel_step_seconds_count{type="llm"}`: 1,
		`sentinel_retries_total{category="transient"}`:                       1,
		`sentinel_calls_total{function="sentinel_llm",outcome="ok"}`:         2,
		`sentinel_calls_total{function="sentinel_command",outcome="failed"}`: 1,
		`sentinel_model_tokens_total{direction="input"}`:                     100,
		`sentinel_model_tokens_total{direction="output"}`:                    20,
		`sentinel_model_cost_usd_total`:                                      0.5,
		`sentinel_trigger_fires_total{outcome="started",type="schedule"}`:    1,
		`sentinel_events_total`:                                              1,
		`sentinel_definitions`:                                               4,
		`sentinel_plugins`:                                                   5,
		`sentinel_store_commits_total`:                                       6,
		`sentinel_store_bytes`:                                               7,
		`sentinel_store_stalled`:                                             1,
		`sentinel_feed_subscribers`:                                          8,
		`sentinel_feed_entries_total`:                                        9,
		`sentinel_feed_gaps_total`:                                           10,
		`sentinel_feed_lost_total`:                                           11,
		`sentinel_feed_dropped_total`:                                        12,
		`sentinel_feed_refused_total`:                                        13,
		`sentinel_retry_delay_seconds_count`:                                 1,
		`sentinel_retry_delay_seconds_sum`:                                   2,
		`sentinel_tickets_retried_total{category="timeout"}`:                 1,
		`sentinel_tickets_retry_exhausted_total`:                             0,
		`sentinel_trace_spans_total{outcome="sent"}`:                         21,
		`sentinel_trace_spans_total{outcome="dropped"}`:                      22,
		`sentinel_trace_spans_total{outcome="failed"}`:                       23,
		`sentinel_git_commands_total`:                                        14,
		`sentinel_git_seconds_total`:                                         1.5,
		`sentinel_http_requests_total{code="200",route="GET /v1/runs/{id}"}`: 1,
		`sentinel_http_requests_total{code="404",route="GET /v1/runs/{id}"}`: 1,
		`sentinel_http_requests_total{code="0",route="GET /v1/runs/{id}"}`:   1,
		`sentinel_http_request_seconds_sum{route="GET /v1/runs/{id}"}`:       3,
		`sentinel_http_request_seconds_count{route="GET /v1/runs/{id}"}`:     3,
	}
	if diff := cmp.Diff(want, ours(series)); diff != "" {
		t.Error(diff)
	}
	if got := series[`sentinel_step_seconds_bucket{type="shell",le="0.5"}`]; got != 0 {
		t.Errorf("%v steps within half a second", got)
	}
	if got := series[`sentinel_step_seconds_bucket{type="shell",le="2"}`]; got != 2 {
		t.Errorf("%v steps within two seconds", got)
	}
	for name, kind := range map[string]string{
		"sentinel_runs": "gauge", "sentinel_runs_total": "counter", "sentinel_step_seconds": "histogram",
		"sentinel_store_commits_total": "counter", "go_goroutines": "gauge", "process_resident_memory_bytes": "gauge",
	} {
		if kinds[name] != kind {
			t.Errorf("%s is a %q, not a %s", name, kinds[name], kind)
		}
	}
}

// TestNothingIsAskedFor has a host that keeps neither a feed nor a store.
func TestNothingIsAskedFor(t *testing.T) {
	series, _ := scrape(t, metrics.New(metrics.Options{}))
	for name := range ours(series) {
		for _, absent := range []string{"sentinel_store", "sentinel_feed", "sentinel_runs{", "sentinel_plugins", "sentinel_definitions"} {
			if strings.HasPrefix(name, absent) {
				t.Errorf("%s is exported, though it is unknown", name)
			}
		}
	}
	if series[`sentinel_build_info{version="unknown"}`] != 1 {
		t.Error("no build info")
	}
}

// TestLabelsAreBounded has more names than there is room for, from several
// goroutines.
func TestLabelsAreBounded(t *testing.T) {
	m := metrics.New(metrics.Options{Types: 10})
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			for i := range 5000 {
				m.Progress(runtime.Progress{Event: runtime.OnStepEnd, Type: sentinels.StepType(fmt.Sprintf("type_%d", i))})
				m.Progress(runtime.Progress{Event: runtime.OnRetry, Category: fmt.Sprint(i)})
				m.Trigger(fmt.Sprint(i), fmt.Sprint(i))
				m.HTTP(fmt.Sprint(i), i, 0)
			}
		})
	}
	m.Progress(runtime.Progress{Event: runtime.OnStepEnd, Type: "\xff"})
	m.Progress(runtime.Progress{Event: runtime.OnStepEnd, Type: sentinels.StepType(strings.Repeat("x", 1000))})
	work.Wait()
	series, _ := scrape(t, m)
	perFamily, steps := map[string]int{}, 0.0
	for name, v := range ours(series) {
		family, _, _ := strings.Cut(name, "{")
		perFamily[family]++
		if family == "sentinel_steps_total" {
			steps += v
		}
	}
	if n := perFamily["sentinel_steps_total"]; n != 11 {
		t.Errorf("%d step types", n)
	}
	if steps != 4*5000+2 {
		t.Errorf("%v steps: what has no label of its own is to be counted too", steps)
	}
	for family, n := range perFamily {
		if n > 33*33 && family != "sentinel_http_requests_total" {
			t.Errorf("%s has %d series", family, n)
		}
	}
}

func BenchmarkProgress(b *testing.B) {
	m := metrics.New(metrics.Options{})
	p := runtime.Progress{Event: runtime.OnStepEnd, Type: "shell", Duration: time.Second}
	b.ReportAllocs()
	for b.Loop() {
		m.Progress(p)
	}
}

// TestNothingIsNaN: what cannot be known yet is left out. Everything has the prefix but the metrics of
// the process.
func TestNothingIsNaN(t *testing.T) {
	m := metrics.New(metrics.Options{})
	for _, rate := range []float64{-1, 1, 0.5} {
		series, _ := scrape(t, m)
		got, found := series["sentinel_retry_success_rate"]
		if found != (rate >= 0) || found && got != rate {
			t.Errorf("rate %v %v, want %v", got, found, rate)
		}
		for name, v := range series {
			if math.IsNaN(v) || !strings.HasPrefix(name, "sentinel_") && !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
				t.Errorf("%s %v", name, v)
			}
		}
		if rate < 0 {
			m.TicketRecovered()
		} else {
			m.TicketExhausted()
		}
	}
}

// TestSentinelsAreBounded: sentinels beyond the bound are counted together.
func TestSentinelsAreBounded(t *testing.T) {
	m := metrics.New(metrics.Options{Sentinels: 2})
	for _, id := range []sentinels.ID{"a", "b", "c", "d", "a"} {
		m.Progress(runtime.Progress{Event: runtime.OnRunEnd, Sentinel: id, Status: sentinels.StatusFailed})
	}
	series, _ := scrape(t, m)
	for id, want := range map[string]float64{"a": 2, "b": 1, "other": 2} {
		if got := series[`sentinel_runs_total{sentinel="`+id+`",status="failed"}`]; got != want {
			t.Errorf("%s: %v, want %v", id, got, want)
		}
	}
}

// TestOwnDefinitionsAreAmongTheOthers: a run of an agent's own definition has no label of a stored sentinel.
func TestOwnDefinitionsAreAmongTheOthers(t *testing.T) {
	m := metrics.New(metrics.Options{})
	m.Progress(runtime.Progress{Event: runtime.OnRunEnd, Sentinel: "build", Unstored: true, Status: sentinels.StatusFailed})
	m.Progress(runtime.Progress{Event: runtime.OnRunEnd, Sentinel: "build", Status: sentinels.StatusCompleted})
	series, _ := scrape(t, m)
	if series[`sentinel_runs_total{sentinel="other",status="failed"}`] != 1 || series[`sentinel_runs_total{sentinel="build",status="failed"}`] != 0 {
		t.Error(series)
	}
}
