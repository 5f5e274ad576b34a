package runtime_test

import (
	"cmp"
	"encoding/json"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestOnlyTheProgramEndsRuns: the error of a step that is part of the program ends its run with a status, or has a code of the
// definition's author, as ABI clause A5.4 says. That of another plugin does neither.
func TestOnlyTheProgramEndsRuns(t *testing.T) {
	for name, tt := range map[string]struct {
		add    func(*runtime.Runtime, *runtime.GoModule) error
		fault  abi.Error
		status sentinels.Status
		code   abi.Code
		state  string
	}{
		"end":            {runtime.AddModule, abi.Error{End: "completed"}, sentinels.StatusCompleted, "", "stopped"},
		"end, unknown":   {runtime.AddModule, abi.Error{End: "paused"}, sentinels.StatusFailed, "failed", "stopped"},
		"end, untrusted": {runtime.AddUntrusted, abi.Error{End: "completed"}, sentinels.StatusFailed, abi.Plugin, "failed"},
		"code":           {runtime.AddModule, abi.Error{Code: "red"}, sentinels.StatusFailed, "red", "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{})
			err := tt.add(rt, &runtime.GoModule{
				Name: "ends", Types: []wasm.StepType{{Type: "ends", Fields: json.RawMessage(`{"type":"object"}`)}},
				Step: func(*runtime.GoGuest) (any, error) {
					e := tt.fault
					e.Code, e.Message, e.Permanent = cmp.Or(e.Code, abi.Plugin), "enough", true
					return nil, &e
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			id := start(t, rt, `{"name":"s","steps":[{"type":"ends"},{"type":"call","command":"world/act","value":1}],"loop":{"type":"once"}}`, runtime.StartOptions{})
			res := wait(t, rt, id)
			var code abi.Code
			if res.Error != nil {
				code = res.Error.Code
				if res.Error.End != "" {
					t.Errorf("error %+v", res.Error)
				}
			}
			tr, err := rt.Trace(id)
			if err != nil {
				t.Fatal(err)
			}
			if state := tr.Iterations[0].Steps[0].State(); res.Status != tt.status || code != tt.code || state != tt.state || len(tr.Iterations[0].Steps) != 1 {
				t.Errorf("%s %v, step %s of %d; want %s %s, %s", res.Status, res.Error, state, len(tr.Iterations[0].Steps), tt.status, tt.code, tt.state)
			}
		})
	}
}
