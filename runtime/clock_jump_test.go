package runtime_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestClockJumps: waits, backoff and the interval of a loop end in time when the
// wall clock is set ahead or the machine sleeps, and take no longer when it is set
// back. A jump fires nothing twice.
func TestClockJumps(t *testing.T) {
	const hour = time.Hour
	definitions := map[string]string{
		"wait":     `{"name":"x","steps":[{"type":"pause","durationMs":7200000}]}`,
		"timeout":  `{"name":"x","steps":[{"type":"pause","event":"never","timeoutMs_":7200000}]}`,
		"backoff":  `{"name":"x","steps":[{"type":"call","command":"world/flaky","onError":{"retry":{"maxRetries":1,"backoffType":"linear","baseDelayMs":7200000,"maxDelayMs":7200000}}}]}`,
		"interval": `{"name":"x","steps":[{"type":"call","command":"world/look"}],"loop":{"type":"continuous","intervalMs":7200000},"safety":{"maxIterations":2}}`,
	}
	for _, c := range []struct {
		name string
		jump time.Duration
		want time.Duration // real time that the run takes
	}{
		{"no jump", 0, 2 * hour},
		{"ahead", hour, hour},
		{"beyond the end", 8 * hour, time.Minute},
		{"back", -5 * hour, 2 * hour},
	} {
		for what, src := range definitions {
			t.Run(c.name+"/"+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var offset atomic.Int64
					opt := runtime.WithClock(runtime.Options{}, func() time.Time { return time.Now().Add(time.Duration(offset.Load())) })
					w := newFakeHost()
					rt := open(t, w, store.NewMemory(), opt)
					defer rt.Close()
					begin := time.Now()
					id, err := rt.Start(t.Context(), decode(t, rt, src), runtime.StartOptions{})
					if err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Minute)
					offset.Add(int64(c.jump))
					res, err := rt.Wait(t.Context(), id)
					if err != nil {
						t.Fatal(err)
					}
					took := time.Since(begin)
					if took < c.want-time.Minute || took > c.want+time.Minute {
						t.Errorf("it took %s, want %s", took, c.want)
					}
					if res.Status != sentinels.StatusCompleted {
						t.Errorf("it ended %s: %v", res.Status, res.Error)
					}
					if want := map[string]int{"interval": 2}[what]; res.Iterations != max(want, 1) {
						t.Errorf("%d iterations", res.Iterations)
					}
				})
			})
		}
	}
}
