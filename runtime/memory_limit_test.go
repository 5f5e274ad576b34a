package runtime_test

import (
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	runs "github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestMemoryLimitOfVariables: a run that reaches a limit of memory fails, names the limit as its
// reason everywhere, and the hint names the field and the setting that hold for this run.
func TestMemoryLimitOfVariables(t *testing.T) {
	steps := `"steps":[{"type":"call","command":"world/act","value":[` + strings.Repeat(`"`+strings.Repeat("x", 200<<10)+`",`, 3) + `1],"outputTo":"large"},{"type":"call","command":"world/act","value":"$large","outputTo":"larger"}]}`
	within := runtime.StartOptions{Within: []string{"world/*"}, Workspace: t.TempDir()}
	cases := map[string]struct {
		definition, hint string
		start            runtime.StartOptions
		limits           runtime.Limits
	}{
		"a definition with the field": {`{"name":"d","safety":{"maxMemoryMb":1},` + steps, `raise safety.maxMemoryMb of "d"`, runtime.StartOptions{}, runtime.Limits{}},
		"a definition without it": {`{"name":"d",` + steps, `set safety.maxMemoryMb of "d", or raise the setting limits.variableMemory`,
			runtime.StartOptions{}, runtime.Limits{VariableMemory: 1 << 20}},
		"a definition of a model": {`{"name":"d",` + steps, `set safety.maxMemoryMb of "d", or raise the setting limits.agentMemory`, within, runtime.Limits{AgentMemory: 1 << 20}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{Limits: c.limits})
			res := runToEnd(t, rt, c.definition, c.start)
			if res.Status != sentinels.StatusFailed || res.Reason != runs.ReasonMemory || res.Error == nil || res.Error.Hint != c.hint {
				t.Errorf("%s, reason %q, error %+v; want failed with the hint %q", res.Status, res.Reason, res.Error, c.hint)
			}
			info, err := rt.Status(res.Run)
			if err != nil || info.Status != res.Status || info.Reason != runs.ReasonMemory {
				t.Errorf("the status is %s, reason %q, error %v", info.Status, info.Reason, err)
			}
		})
	}
}

// TestMemoryLimitNamesStep: a run whose processes take too much memory failed at the step with the largest process.
func TestMemoryLimitNamesStep(t *testing.T) {
	w := newFakeHost()
	w.memory, w.largest = 3<<20, "1"
	rt := open(t, w, store.NewMemory(), runtime.Options{})
	res := runToEnd(t, rt, `{"name":"d","safety":{"maxMemoryMb":2},"steps":[{"type":"call","command":"world/act","value":1},{"type":"pause","event":"go"}]}`, runtime.StartOptions{})
	if res.Status != sentinels.StatusFailed || res.Reason != runs.ReasonMemory || res.Step != "1" {
		t.Errorf("%s, reason %q, at step %q; want failed by the limit at step 1", res.Status, res.Reason, res.Step)
	}
	if info, err := rt.Status(res.Run); err != nil || info.Step != "1" {
		t.Errorf("the status names step %q, error %v", info.Step, err)
	}
}
