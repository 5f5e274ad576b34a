package runtime_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A loop whose iterations execute no step waits between them, up to a second, and begins again
// when a step is executed.
func TestIdleLoopWaits(t *testing.T) {
	const idle = 4270 * time.Millisecond // 10 ms, doubled six times, and three seconds, before iterations 4 to 13
	for name, tt := range map[string]struct {
		src  string
		want time.Duration
	}{
		"no condition is true": {`{"name":"x","steps":[{"type":"call","command":"world/look","condition":"1 > 2"}],"loop":{"type":"continuous"},"safety":{"maxIterations":13}}`, idle},
		"no step":              {`{"name":"x","steps":[],"loop":{"type":"until","check":"$iteration >= 13"},"safety":{"maxIterations":20}}`, idle},
		"every third":          {`{"name":"x","steps":[{"type":"call","command":"world/look","condition":"$iteration % 3 === 0"}],"loop":{"type":"continuous"},"safety":{"maxIterations":13}}`, 0},
		"a count":              {`{"name":"x","steps":[],"loop":{"type":"count","max":13}}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				warned := 0
				var opt runtime.Options
				opt.Observer.Progress = func(p runtime.Progress) {
					mu.Lock()
					defer mu.Unlock()
					if p.Event == runtime.OnLog && strings.Contains(p.Message, "execute no step") {
						warned++
					}
				}
				rt := open(t, newFakeHost(), store.NewMemory(), opt)
				defer rt.Close()
				begin := time.Now()
				id := start(t, rt, tt.src, runtime.StartOptions{})
				res, err := rt.Wait(t.Context(), id)
				if err != nil || res.Status != sentinels.StatusCompleted {
					t.Fatalf("%s: %v %v", res.Status, err, res.Error)
				}
				if took := time.Since(begin).Round(10 * time.Millisecond); took != tt.want {
					t.Errorf("it took %s, want %s", took, tt.want)
				}
				mu.Lock()
				defer mu.Unlock()
				if want := 1; tt.want > 0 && warned != want {
					t.Errorf("%d warnings, want %d", warned, want)
				}
			})
		})
	}
}

// An edit wakes an idle loop, also after the host was killed; its summary says that it waits.
func TestIdleLoopIsWokenByAnEdit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := store.NewMemory()
		rt := open(t, newFakeHost(), db, runtime.Options{})
		id := start(t, rt, `{"name":"x","steps":[],"loop":{"type":"continuous"},"safety":{"maxIterations":100000}}`, runtime.StartOptions{})
		time.Sleep(time.Minute)
		snap := db.Snapshot()
		rt.Close()
		rt = open(t, newFakeHost(), snap, runtime.Options{})
		defer rt.Close()
		if err := rt.Resume(t.Context(), id, runtime.ResumeOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		info, err := rt.Status(id)
		if err != nil || info.Iteration > 150 || !slices.ContainsFunc(info.Queued, func(w runtime.QueueWait) bool { return strings.Contains(w.Reason, "execute no step") }) {
			t.Errorf("after two minutes: %d iterations, %+v, %v", info.Iteration, info.Queued, err)
		}
		begin := time.Now()
		edited := decode(t, rt, `{"name":"x","steps":[],"loop":{"type":"once"}}`)
		replace := func(*sentinels.Definition) (*sentinels.Definition, error) { return edited, nil }
		if _, err := rt.EditRun(t.Context(), id, runtime.EditRunOptions{}, replace); err != nil {
			t.Fatal(err)
		}
		res, err := rt.Wait(t.Context(), id)
		if err != nil || res.Status != sentinels.StatusCompleted {
			t.Fatalf("%s: %v", res.Status, err)
		}
		if took := time.Since(begin); took > 100*time.Millisecond {
			t.Errorf("the edit counted after %s", took)
		}
	})
}
