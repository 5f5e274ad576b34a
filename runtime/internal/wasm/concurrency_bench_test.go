package wasm_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
)

// BenchmarkConcurrentRuns measures 64 callers of one pooled module. In "compute"
// a host call returns at once; in "wait" it blocks for a millisecond, as one that
// is journaled does, so that all 64 guests are active at the same time. An
// operation is one run of each caller; reused-% is how many runs found an idle
// instance.
func BenchmarkConcurrentRuns(b *testing.B) {
	const callers = 64
	for _, c := range []struct {
		name string
		wait time.Duration
	}{{"compute", 0}, {"wait", time.Millisecond}} {
		b.Run(c.name, func(b *testing.B) {
			h := open(b, wasm.Options{})
			m := load(b, h, watGuest(b, "hostcall"), wasm.LoadOptions{Trusted: true})
			defer m.Release()
			answer := func(context.Context, string, []byte) (wasm.Reply, error) {
				if c.wait > 0 {
					time.Sleep(c.wait)
				}
				return wasm.Reply{Body: []byte(`{"ok":1}`)}, nil
			}
			var reused atomic.Int64
			began, runs := time.Now(), 0
			b.ReportAllocs()
			for b.Loop() {
				var wg sync.WaitGroup
				for range callers {
					wg.Go(func() {
						got, err := m.Run(context.Background(), wasm.Invocation{Input: []byte(`1`), Call: answer})
						if err != nil {
							b.Error(err)
						}
						if got.Reused {
							reused.Add(1)
						}
					})
				}
				wg.Wait()
				runs += callers
			}
			b.ReportMetric(float64(runs)/time.Since(began).Seconds(), "runs/s")
			b.ReportMetric(100*float64(reused.Load())/float64(runs), "reused-%")
			b.ReportMetric(float64(h.MemoryBytes())/(1<<20), "idle-MiB")
		})
	}
}
