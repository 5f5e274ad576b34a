package runtime_test

import (
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestDefaultStepLimitIsForCallsThatHang: a step that names no limit may wait as
// long as it takes, and so may one that waits for its nested steps; a call that
// hangs may not.
func TestDefaultStepLimitIsForCallsThatHang(t *testing.T) {
	w := newWorld()
	rt := open(t, w, store.NewMemory(), runtime.Options{Limits: runtime.Limits{StepTimeout: 30 * time.Millisecond}})
	res := carryOut(t, rt, `{"name":"patient","steps":[
		{"type":"pause","durationMs":150},
		{"type":"seq","steps":[{"type":"pause","durationMs":100},{"type":"pause","durationMs":100}]}]}`, runtime.StartOptions{})
	if res.Status != sentinels.StatusCompleted {
		t.Errorf("waiting: %s, %v", res.Status, res.Error)
	}
	w.delay = time.Minute
	res = carryOut(t, rt, `{"name":"hanging","steps":[{"type":"call","command":"world/act","value":1}]}`, runtime.StartOptions{})
	if res.Status != sentinels.StatusFailed || codeOf(res.Error) != "timeout" {
		t.Errorf("hanging: %s, %v; want failed with timeout", res.Status, res.Error)
	}
}
