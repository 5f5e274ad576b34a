package metrics

import (
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// The outcomes of a step or call.
const (
	ok      = "ok"
	failed  = "failed"
	skipped = "skipped" // its condition was false, or its error was to be skipped
)

// ends are the statuses in which runs end.
var ends = []sentinels.Status{sentinels.StatusCompleted, sentinels.StatusFailed, sentinels.StatusStopped, sentinels.StatusTimedOut}

// Progress counts what the engine tells. It is meant to be a
// [runtime.Observer]'s function.
func (m *Metrics) Progress(p runtime.Progress) {
	switch p.Event {
	case runtime.OnStepEnd:
		kind := m.types.name(string(p.Type))
		m.steps.WithLabelValues(kind, outcome(p)).Inc()
		if p.Skipped != "condition" { // such a step took no time, and would hide those that do
			m.stepSeconds.WithLabelValues(kind).Observe(p.Duration.Seconds())
		}
	case runtime.OnRetry:
		m.retries.WithLabelValues(m.categories.name(p.Category)).Inc()
	case runtime.OnCallEnd:
		m.calls.WithLabelValues(m.functions.name(p.Function), outcome(p)).Inc()
		m.spend(p.Usage)
	case runtime.OnIterationEnd:
		m.iterations.Inc()
	case runtime.OnRunStart:
		of := m.sentinelOf(p)
		for _, status := range ends {
			m.runs.WithLabelValues(of, string(status)) // a series that begins at 1 shows no increase
		}
	case runtime.OnRunEnd:
		// Its usage is the sum of its calls', which have been counted.
		of := m.sentinelOf(p)
		m.runs.WithLabelValues(of, string(p.Status)).Inc()
		m.runSeconds.WithLabelValues(of, string(p.Status)).Observe(p.Duration.Seconds())
	}
}

// sentinelOf returns the label of a run's sentinel. One of an agent's own definition, whose id may be that of a stored
// sentinel, is among the others.
func (m *Metrics) sentinelOf(p runtime.Progress) string {
	if p.Unstored {
		return other
	}
	return m.sentinels.name(string(p.Sentinel))
}

func outcome(p runtime.Progress) string {
	switch {
	case p.Skipped != "":
		return skipped
	case p.Error != nil:
		return failed
	}
	return ok
}

// spend counts what a call used. A counter that gets a negative number
// panics, and what a model's server says is its own affair.
func (m *Metrics) spend(u *sentinels.Usage) {
	if u == nil {
		return
	}
	m.tokensIn.Add(float64(max(u.InputTokens, 0)))
	m.tokensOut.Add(float64(max(u.OutputTokens, 0)))
	if u.CostUSD > 0 { // false for what is not a number, too
		m.cost.Add(u.CostUSD)
	}
}
