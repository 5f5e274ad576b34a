package host_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
)

// BenchmarkWorker reports which share of a worker's time is the engine: all that is neither
// the model, nor git, nor checks. A ticket takes two attempts with a tool call each, which
// is four replies of the model; the model takes no time or one second for each.
func BenchmarkWorker(b *testing.B) {
	for _, reply := range []time.Duration{0, time.Second} {
		b.Run("reply="+reply.String(), func(b *testing.B) {
			ws, _ := project(b)
			var model atomic.Int64
			newModelServer(b, func(r chatRequest) answer {
				began := time.Now()
				defer func() { model.Add(int64(time.Since(began))) }()
				time.Sleep(reply)
				return writes(func(n int, _ string) []answer {
					return []answer{fileOf("a.txt", map[int]string{1: "red\n"}[n]+map[int]string{2: "green\n"}[n])}
				})(r)
			})
			h := open(b, host.Options{Workspace: ws, Dir: filepath.Join(b.TempDir(), ".sentinel")})
			forge(b, h, ws) // compiles the plugins
			model.Store(0)
			var all, others time.Duration
			tickets := 0
			for b.Loop() {
				tickets++
				must(b, h, "ticket/create", strings.Replace(wantsGreen, "T-1", fmt.Sprintf("T-%d", tickets), 1), nil)
				began := time.Now()
				id := startShipped(b, h, ws, "forge-worker", nil)
				if _, err := h.Runtime().Wait(context.Background(), id); err != nil {
					b.Fatal(err)
				}
				all += time.Since(began)
				if got := ticketOf(b, h, fmt.Sprintf("T-%d", tickets)).Ticket; got.State != "in_review" {
					b.Fatalf("the ticket: %+v", got)
				}
				others += outside(b, h, id)
			}
			asked := time.Duration(model.Load())
			engine := all - others - asked
			b.ReportMetric(float64(engine.Microseconds())/1000/float64(tickets), "engine-ms/ticket")
			b.ReportMetric(float64(others.Microseconds())/1000/float64(tickets), "git+checks-ms/ticket")
			b.ReportMetric(100*float64(engine)/float64(all), "engine-%")
		})
	}
}

// outside adds the times of the calls of a run, and of its children, that are git, checks
// or a forge.
func outside(b *testing.B, h *host.Host, run any) (sum time.Duration) {
	b.Helper()
	var trace any
	must(b, h, "sentinel/trace", map[string]any{"run": run}, &trace)
	seen := map[string]bool{} // the call that starts a child and the one that waits for it name it
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			label, _ := v["label"].(string)
			for _, family := range []string{"worktree/", "verify/", "forge/"} {
				if ms, ok := v["durationMs"].(float64); ok && strings.HasPrefix(label, family) {
					sum += time.Duration(ms * float64(time.Millisecond))
					return
				}
			}
			if child, ok := v["child"].(string); ok && !seen[child] {
				seen[child] = true
				sum += outside(b, h, child)
			}
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(trace)
	return sum
}
