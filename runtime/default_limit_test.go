package runtime_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestDefaultStepLimitIsForCallsThatHang: a step that names no limit may wait as
// long as it takes, and so may one that waits for its nested steps; a call that
// hangs may not.
func TestDefaultStepLimitIsForCallsThatHang(t *testing.T) {
	w := newFakeHost()
	rt := open(t, w, store.NewMemory(), runtime.Options{Limits: runtime.Limits{StepTimeout: 30 * time.Millisecond}})
	res := runToEnd(t, rt, `{"name":"patient","steps":[
		{"type":"pause","durationMs":150},
		{"type":"seq","steps":[{"type":"pause","durationMs":100},{"type":"pause","durationMs":100}]}]}`, runtime.StartOptions{})
	if res.Status != sentinels.StatusCompleted {
		t.Errorf("waiting: %s, %v", res.Status, res.Error)
	}
	w.delay = time.Minute
	res = runToEnd(t, rt, `{"name":"hanging","steps":[{"type":"call","command":"world/act","value":1}]}`, runtime.StartOptions{})
	if res.Status != sentinels.StatusFailed || codeOf(res.Error) != "timeout" {
		t.Errorf("hanging: %s, %v; want failed with timeout", res.Status, res.Error)
	}
}

// TestDefaultStepLimitAfterAWait: a step has all of the limit left when its wait ends,
// also if that is when the limit was due; a call that hangs after it may not take more.
func TestDefaultStepLimitAfterAWait(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newFakeHost()
			rt := open(t, w, store.NewMemory(), runtime.Options{Limits: runtime.Limits{StepTimeout: time.Minute}})
			defer rt.Close()
			w.delay = 40 * time.Second
			if hangs {
				w.delay = time.Hour
			}
			mod := reach(permission(abi.UseCommand, "*"))
			mod.Step = func(g *runtime.GoGuest) (any, error) {
				g.Call(abi.FuncWait, map[string]any{"durationMs": 90_000}) // half a limit is over
				if a := g.Call(abi.FuncCommand, map[string]any{"command": "world/act", "params": map[string]any{"value": 1}}); a.Error != nil {
					return nil, a.Error
				}
				return nil, nil
			}
			if err := runtime.AddModule(rt, mod); err != nil {
				t.Fatal(err)
			}
			id, err := rt.Start(t.Context(), decode(t, rt, `{"name":"x","steps":[{"type":"reach"}]}`), runtime.StartOptions{})
			if err != nil {
				t.Fatal(err)
			}
			res, err := rt.Wait(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if want := map[bool]sentinels.Status{false: sentinels.StatusCompleted, true: sentinels.StatusFailed}[hangs]; res.Status != want {
				t.Errorf("hangs %t: ended %s: %v, want %s", hangs, res.Status, res.Error, want)
			}
		})
	}
}
