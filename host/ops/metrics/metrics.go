package metrics

import (
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Options configure [New]. The functions are called at each scrape, by several
// scrapes at once, and must be quick; nil ones leave their metrics out.
type Options struct {
	// Version is the label of sentinel_build_info. Default: "unknown".
	Version string
	// Runs counts runs that are not over, by status.
	Runs func() map[sentinels.Status]int
	// Definitions counts the definitions.
	Definitions func() int
	// Plugins counts the plugins that are live.
	Plugins func() int
	// Store tells how the store fares.
	Store func() Store
	// Git returns how many commands of git were started, and the time in which at least one ran.
	Git func() (commands uint64, busy time.Duration)
	// Feed tells how the live feed fares.
	Feed func() Feed
	// Spans tells how the spans of traces fare. Default: there are no traces.
	Spans func() Spans
	// Types is how many step types have a label of their own. Default: 100.
	Types int
	// Sentinels is how many sentinels have a label of their own in the metrics of runs; the others
	// are "other". Default: 100.
	Sentinels int
	// Logger receives failed scrapes. Default: none.
	Logger *slog.Logger
}

// Store is how a store fares.
type Store struct {
	Commits uint64 // since the process began
	Bytes   int64  // size of its file
	Stalled bool   // it takes no writes, as on a full disk
}

// Feed is how a live feed fares. All but the first count from the process's
// start.
type Feed struct {
	Subscribers int    // now
	Published   uint64 // entries
	Gaps        uint64 // that were reported to readers
	Lost        uint64 // entries in those gaps
	Dropped     uint64 // readers, because they were too slow
	Refused     uint64 // readers, because there were too many
}

// Spans is how the spans of traces fare, from the process's start.
type Spans struct {
	Sent    uint64
	Dropped uint64 // because too many were waiting to be sent
	Failed  uint64 // could not be sent, or were refused
}

// Metrics counts. All methods are safe for concurrent use and return at once.
type Metrics struct {
	registry *prometheus.Registry
	handler  http.Handler

	runs        *prometheus.CounterVec
	runSeconds  *prometheus.HistogramVec
	iterations  prometheus.Counter
	steps       *prometheus.CounterVec
	stepSeconds *prometheus.HistogramVec
	retries     *prometheus.CounterVec
	calls       *prometheus.CounterVec
	tokensIn    prometheus.Counter
	tokensOut   prometheus.Counter
	cost        prometheus.Counter
	fires       *prometheus.CounterVec
	events      prometheus.Counter
	requests    *prometheus.CounterVec
	reqSeconds  *prometheus.HistogramVec

	tickets *tickets

	types, sentinels, categories, functions, kinds, outcomes, routes *names
}

// New makes the metrics and their registry.
func New(o Options) *Metrics {
	if o.Version == "" {
		o.Version = "unknown"
	}
	if o.Types <= 0 {
		o.Types = 100
	}
	if o.Sentinels <= 0 {
		o.Sentinels = 100
	}
	r := prometheus.NewRegistry()
	m := &Metrics{
		registry:    r,
		runs:        counters(r, "runs_total", "Runs that ended, by sentinel and status.", "sentinel", "status"),
		runSeconds:  seconds(r, "run_seconds", "How long runs took, from their start to their end.", runBuckets, "sentinel", "status"),
		iterations:  counter(r, "iterations_total", "Iterations that ended."),
		steps:       counters(r, "steps_total", "Steps that ended, by type and outcome.", "type", "outcome"),
		stepSeconds: seconds(r, "step_seconds", "How long steps took, retries and waits included.", stepBuckets, "type"),
		retries:     counters(r, "retries_total", "Further attempts of steps, by the category of the error.", "category"),
		calls:       counters(r, "calls_total", "Host calls that take time, by function and outcome.", "function", "outcome"),
		cost:        counter(r, "model_cost_usd_total", "What model calls cost, US dollars."),
		fires:       counters(r, "trigger_fires_total", "Triggers that fired, by type and what became of it.", "type", "outcome"),
		events:      counter(r, "events_total", "Events that were emitted."),
		requests:    counters(r, "http_requests_total", "HTTP requests, by route and status code.", "route", "code"),
		reqSeconds:  seconds(r, "http_request_seconds", "How long HTTP requests took.", httpBuckets, "route"),

		types: newNames(o.Types), sentinels: newNames(o.Sentinels), categories: newNames(32), functions: newNames(32),
		kinds: newNames(32), outcomes: newNames(32), routes: newNames(300),
	}
	tokens := counters(r, "model_tokens_total", "Tokens of model calls.", "direction")
	m.tickets = newTickets(r)
	m.tokensIn, m.tokensOut = tokens.WithLabelValues("input"), tokens.WithLabelValues("output")
	r.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		newState(o),
	)
	m.handler = promhttp.HandlerFor(r, promhttp.HandlerOpts{
		ErrorHandling:       promhttp.ContinueOnError, // half of the metrics are better than none
		ErrorLog:            errorLog{o.Logger},
		MaxRequestsInFlight: 8,
		Timeout:             10 * time.Second,
	})
	return m
}

// Buckets, in seconds. Steps run from a lookup to an hour of tests; runs for
// days.
var (
	stepBuckets = []float64{.001, .005, .02, .1, .5, 2, 10, 60, 300, 1800, 7200}
	runBuckets  = []float64{.01, .1, 1, 10, 60, 300, 1800, 7200, 43200, 259200}
	httpBuckets = []float64{.0005, .001, .005, .02, .1, .5, 2, 10, 60}
)

// Handler serves the metrics in the formats that Prometheus asks for.
func (m *Metrics) Handler() http.Handler { return m.handler }

// Trigger counts a trigger that fired, with its type and the outcome.
func (m *Metrics) Trigger(kind, outcome string) {
	m.fires.WithLabelValues(m.kinds.name(kind), m.outcomes.name(outcome)).Inc()
}

// Event counts an event that was emitted.
func (m *Metrics) Event() { m.events.Inc() }

// HTTP counts a request by its route's pattern, never by its path, and its
// answer's status.
func (m *Metrics) HTTP(route string, code int, took time.Duration) {
	if code < 100 || code > 599 {
		code = 0
	}
	route = m.routes.name(route)
	m.requests.WithLabelValues(route, strconv.Itoa(code)).Inc()
	m.reqSeconds.WithLabelValues(route).Observe(took.Seconds())
}

const namespace = "sentinel"

func counter(r prometheus.Registerer, name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
	r.MustRegister(c)
	return c
}

func counters(r prometheus.Registerer, name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	r.MustRegister(c)
	return c
}

func seconds(r prometheus.Registerer, name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels)
	r.MustRegister(h)
	return h
}

// errorLog passes the handler's complaints on.
type errorLog struct{ to *slog.Logger }

func (l errorLog) Println(v ...any) {
	if l.to != nil {
		l.to.Warn("metrics are incomplete", "error", v)
	}
}
