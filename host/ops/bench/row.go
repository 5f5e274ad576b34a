package bench

import (
	"math"
	"slices"
	"time"
)

// A Row is one figure. Its JSON form is what the format json prints.
type Row struct {
	Name   string  `json:"name"`
	What   string  `json:"what"`
	Unit   string  `json:"unit"`
	Median float64 `json:"median"`
	P99    float64 `json:"p99,omitempty"` // 0 where a figure is taken once
	// Reference is what the figure stands beside, in the same unit.
	Reference       string  `json:"reference,omitempty"`
	ReferenceMedian float64 `json:"referenceMedian,omitempty"`
	Ratio           float64 `json:"ratio,omitempty"` // of the median to the reference's
	Must            float64 `json:"must"`
	Aim             float64 `json:"aim"`
	Verdict         Verdict `json:"verdict"`
	Note            string  `json:"note,omitempty"` // why a row is skipped, or how it is to be read
}

// Verdict compares a row with its must.
type Verdict string

// The verdicts.
const (
	OK      Verdict = "ok"
	Over    Verdict = "over"
	Skipped Verdict = "skipped"
)

// budget is one line of the design's table of budgets, and of what was asked of
// the host process besides.
type budget struct {
	name, what, unit string
	must, aim        float64
	gate             gate
	measure          func(*bench) (figure, error)
}

// A gate is what is held to the must.
type gate int

const (
	atMost   gate = iota // the median, which is to be small
	atLeast              // the median of a rate
	tail                 // the 99th percentile: the slowest are what people wait for
	allTimes             // every single one: a promise, not a speed
)

// A figure is what a measurement came to.
type figure struct {
	samples   samples
	reference string
	beside    samples
	note      string
	skipped   bool
}

func skip(why string) (figure, error) { return figure{skipped: true, note: why}, nil }

func (b budget) row(f figure) Row {
	r := Row{Name: b.name, What: b.what, Unit: b.unit, Must: b.must, Aim: b.aim, Note: f.note, Verdict: Skipped}
	if f.skipped {
		return r
	}
	r.Median = round(f.samples.at(0.5))
	if len(f.samples) >= 20 {
		r.P99 = round(f.samples.at(0.99))
	}
	if len(f.beside) > 0 {
		r.Reference, r.ReferenceMedian = f.reference, round(f.beside.at(0.5))
		if r.ReferenceMedian != 0 {
			r.Ratio = round(r.Median / r.ReferenceMedian)
		}
	}
	r.Verdict = OK
	if over := b.over(f.samples); over {
		r.Verdict = Over
	}
	return r
}

// over compares what was measured, rounded as it is shown, with the must.
func (b budget) over(s samples) bool {
	switch b.gate {
	case atLeast:
		return round(s.at(0.5)) < b.must
	case tail:
		return round(s.at(0.99)) > b.must
	case allTimes:
		return round(s.at(1)) > b.must
	}
	return round(s.at(0.5)) > b.must
}

// samples are measurements of one thing in the unit of its row.
type samples []float64

func (s samples) at(q float64) float64 {
	sorted := slices.Sorted(slices.Values(s))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// round keeps three digits: a measurement has no more.
func round(v float64) float64 {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0
	}
	scale := math.Pow(10, 2-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}

// repeat measures fn n times, one time more beforehand to warm up. Each sample
// is the duration in units of unit, divided by per.
func repeat(n int, unit time.Duration, per int, fn func() error) (samples, error) {
	if err := fn(); err != nil {
		return nil, err
	}
	s := make(samples, 0, n)
	for range n {
		began := time.Now()
		if err := fn(); err != nil {
			return nil, err
		}
		s = append(s, float64(time.Since(began))/float64(unit)/float64(per))
	}
	return s, nil
}
