package runtime_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// The status of a run shows until when a step waits for its next attempt. What a
// server asks for is capped, also where it would overflow.
func TestStatusShowsRetryWait(t *testing.T) {
	for name, asked := range map[string]int64{"1e9 seconds": 1e12, "overflow": math.MaxInt64 / 2} {
		t.Run(name, func(t *testing.T) {
			db := store.NewMemory()
			waiting := func(rt *runtime.Runtime) {
				t.Helper()
				err := runtime.AddModule(rt, &runtime.GoModule{
					Name: "busy", Types: []wasm.StepType{{Type: "busy", Fields: json.RawMessage(`{"type":"object"}`)}},
					Step: func(*runtime.GoGuest) (any, error) {
						return nil, &abi.Error{Code: abi.Unavailable, Message: "come back", RetryAfterMs: asked}
					},
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			rt := open(t, newFakeHost(), db, runtime.Options{})
			waiting(rt)
			id, err := rt.Start(t.Context(), decode(t, rt, `{"name":"r","steps":[{"type":"busy","onError":"retry"}]}`), runtime.StartOptions{})
			if err != nil {
				t.Fatal(err)
			}
			shown := func(rt *runtime.Runtime) time.Time {
				t.Helper()
				var info runtime.RunInfo
				until(t, "the wait", func() bool {
					info, err = rt.Status(id)
					return err != nil || len(info.Retries) > 0
				})
				if err != nil {
					t.Fatal(err)
				}
				w := info.Retries[0]
				if wait := time.Until(w.At); len(info.Retries) != 1 || w.Step != "0" || w.Attempt != 1 || w.Error == nil || w.Error.Message != "come back" ||
					wait > 24*time.Hour || wait < 23*time.Hour {
					t.Errorf("%+v in %s", info.Retries, wait)
				}
				return w.At
			}
			at := shown(rt)
			// The wait goes on after a restart.
			rt.Close()
			rt = open(t, newFakeHost(), db.Snapshot(), runtime.Options{})
			waiting(rt)
			if err := rt.Resume(t.Context(), id, runtime.ResumeOptions{}); err != nil {
				t.Fatal(err)
			}
			if again := shown(rt); again.Sub(at).Abs() > time.Millisecond {
				t.Errorf("it waits until %s, before until %s", again, at)
			}
			if err := rt.Stop(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			if info, err := rt.Status(id); err != nil || len(info.Retries) > 0 {
				t.Errorf("after the stop: %+v, %v", info.Retries, err)
			}
		})
	}
}
