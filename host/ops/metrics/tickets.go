package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// tickets are the metrics of retries of tickets.
type tickets struct {
	retried   *prometheus.CounterVec
	exhausted prometheus.Counter
	delay     prometheus.Histogram

	recovered, held atomic.Int64
}

// delayBuckets are those of the delays of strategies: 1 s to 64 s, and longer ones that
// servers ask for.
var delayBuckets = []float64{0, 1, 2, 5, 10, 20, 64, 300, 3600}

func newTickets(r prometheus.Registerer) *tickets {
	t := &tickets{
		retried:   counters(r, "tickets_retried_total", "Retries of tickets, by the category of the error; review is a rejection.", "category"),
		exhausted: counter(r, "tickets_retry_exhausted_total", "Tickets that were held since their retries were used up."),
		delay:     prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Name: "retry_delay_seconds", Help: "Delays before retries of tickets.", Buckets: delayBuckets}),
	}
	r.MustRegister(t.delay, t)
	return t
}

var successRate = prometheus.NewDesc(prometheus.BuildFQName(namespace, "", "retry_success_rate"), "Share of retried tickets that were done, of those that were done or held, since the process began; none before the first.", nil, nil)

// Describe implements [prometheus.Collector].
func (t *tickets) Describe(ch chan<- *prometheus.Desc) { ch <- successRate }

// Collect implements [prometheus.Collector].
func (t *tickets) Collect(ch chan<- prometheus.Metric) {
	if done, held := float64(t.recovered.Load()), float64(t.held.Load()); done+held > 0 {
		ch <- prometheus.MustNewConstMetric(successRate, prometheus.GaugeValue, done/(done+held))
	}
}

// TicketRetried counts a retry of a ticket.
func (m *Metrics) TicketRetried(category string, delay time.Duration) {
	m.tickets.retried.WithLabelValues(m.categories.name(category)).Inc()
	m.tickets.delay.Observe(delay.Seconds())
}

// TicketExhausted counts a ticket whose retries are used up.
func (m *Metrics) TicketExhausted() {
	m.tickets.exhausted.Inc()
	m.tickets.held.Add(1)
}

// TicketRecovered counts a ticket that is done after at least one retry.
func (m *Metrics) TicketRecovered() { m.tickets.recovered.Add(1) }
