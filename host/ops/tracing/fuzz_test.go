package tracing_test

import (
	"context"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/ops/tracing"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// FuzzProgress: whatever the engine tells, in whatever order, a collector that
// is strict takes all of it, and at the end of the run nothing is remembered.
func FuzzProgress(f *testing.F) {
	f.Add("step.end", "0#0.then.0", "llm", "m\x00", int64(1), int64(2), "took \xff")
	f.Add("retry", "", "", "", int64(-1), int64(1<<62), "")
	f.Fuzz(func(t *testing.T, event, path, kind, label string, attempt, took int64, message string) {
		c := collect(t)
		tr := c.tracer(tracing.Options{Every: time.Hour})
		for _, e := range []string{event, "step.start", event, "call.end", "run.end"} {
			p := told(1, runtime.Progress{
				Event: runtime.ProgressKind(e), Path: path, Address: path, Type: sentinels.StepType(kind), Label: label, Function: label,
				Attempt: int(attempt), Iteration: int(attempt), Duration: time.Duration(took), Message: message,
				Usage: &sentinels.Usage{CostUSD: float64(took) / float64(attempt)},
			})
			if message != "" {
				p.Error = abi.New(abi.Code(kind), message)
			}
			tr.Progress(p)
		}
		if n := tracing.Open(tr); n != 0 {
			t.Errorf("%d steps are remembered", n)
		}
		if err := tr.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if st := tr.Stats(); st.Failed+st.Dropped != 0 || st.Sent == 0 {
			t.Errorf("%+v", st)
		}
	})
}
