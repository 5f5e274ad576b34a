package host_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/command"
)

// BenchmarkBesideAgentSchedules reports what a run of a person takes while 200 definitions of an agent fire each
// second: the median and the 95th percentile, in milliseconds.
func BenchmarkBesideAgentSchedules(b *testing.B) {
	h := open(b, host.Options{Workspace: b.TempDir()})
	if err := h.Runtime().Arm(b.Context()); err != nil {
		b.Fatal(err)
	}
	must(b, h, "sentinel/create", `{"definition":{"id":"mine","name":"mine","steps":[{"type":"set","values":{"x":1}}]}}`, nil)
	for i := range 200 {
		params := fmt.Sprintf(`{"definition":{"id":"tick-%d","name":"tick","trigger":{"type":"schedule","cronExpression":"@every 1s"},"steps":[{"type":"set","values":{"x":1}}]}}`, i)
		if _, err := h.CallAs(b.Context(), &command.Call{Command: "sentinel/create", By: command.ByAgent, As: "ci", Attempt: 1, Params: json.RawMessage(params)}); err != nil {
			b.Fatal(err)
		}
	}
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		must(b, h, "sentinel/run", `{"sentinelId":"mine"}`, nil)
		took = append(took, time.Since(began))
		time.Sleep(20 * time.Millisecond) // so that the runs are spread over the seconds
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2].Seconds()*1000, "median-ms")
	b.ReportMetric(took[len(took)*95/100].Seconds()*1000, "p95-ms")
}
