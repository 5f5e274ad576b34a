package runtime_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// setBytes is what one call of a setter takes: its request and its result {}.
var setBytes = int64(len(setRequest(0)) + len("{}"))

func setRequest(n int) string {
	return fmt.Sprintf(`{"set":{"n":"%04d%s"}}`, n, strings.Repeat("x", 1000))
}

// setters has a step type that sets the variable n, each time to the number of the
// call, as often as before says; then it waits or makes a checkpoint if it is to,
// and sets it again as often as after says.
func setters() *runtime.GoModule {
	return &runtime.GoModule{Name: "setters", Types: []wasm.StepType{{Type: "setter", Fields: json.RawMessage(
		`{"type":"object","properties":{"before":{"type":"integer"},"wait":{"type":"string"},"checkpoint":{"type":"boolean"},"after":{"type":"integer"}}}`)}},
		Step: func(g *runtime.GoGuest) (any, error) {
			var f struct {
				Before, After int
				Wait          string
				Checkpoint    bool
			}
			b, err := json.Marshal(g.Input.Step.Fields)
			if err != nil {
				return nil, err
			}
			if err := json.Unmarshal(b, &f); err != nil {
				return nil, err
			}
			n := 0
			set := func(times int) {
				for range times {
					n++
					g.Call(abi.FuncVar, json.RawMessage(setRequest(n)))
				}
			}
			if g.Input.State == nil {
				set(f.Before)
			} else {
				n = f.Before
			}
			if f.Checkpoint && g.Input.State == nil {
				g.Call(abi.FuncCheckpoint, map[string]any{"state": 1})
			}
			if f.Wait != "" {
				g.Call(abi.FuncWait, map[string]any{"event": f.Wait})
			}
			set(f.After)
			return nil, nil
		}}
}

// lastSet is the number of the last call that a setter was allowed to make.
func lastSet(t *testing.T, res runtime.Result) string {
	t.Helper()
	var v string
	if err := json.Unmarshal(res.Variables["n"], &v); err != nil {
		t.Fatal(err)
	}
	return v[:4]
}

// TestCallBytes: the requests and results of an attempt's calls since its last
// checkpoint have so many bytes, also when a crash interrupts it.
func TestCallBytes(t *testing.T) {
	const slack = 1000 // more than a wait for an event takes, less than a setter's call
	for name, tt := range map[string]struct {
		fields string
		limit  int64
		last   string // call that was allowed
		fails  bool
	}{
		"at the limit":                    {`"before":3`, 3*setBytes - 2, "0003", false},
		"one byte less":                   {`"before":3`, 3*setBytes - 3, "0002", true},
		"with a wait":                     {`"before":2,"wait":"go","after":2`, 4*setBytes + slack, "0004", false},
		"with a wait, and too many":       {`"before":2,"wait":"go","after":3`, 4*setBytes + slack, "0004", true},
		"after a checkpoint":              {`"before":3,"checkpoint":true,"wait":"go","after":3`, 3*setBytes + slack, "0006", false},
		"after a checkpoint, a call more": {`"before":3,"checkpoint":true,"wait":"go","after":4`, 3*setBytes + slack, "0006", true},
	} {
		for _, crash := range []bool{false, true} {
			if crash && !strings.Contains(tt.fields, "wait") {
				continue
			}
			t.Run(fmt.Sprintf("%s, crash %t", name, crash), func(t *testing.T) {
				db := store.NewMemory()
				opt := runtime.Options{Limits: runtime.Limits{CallBytes: tt.limit}}
				rt := open(t, newFakeHost(), db, opt)
				if err := runtime.AddModule(rt, setters()); err != nil {
					t.Fatal(err)
				}
				id := start(t, rt, `{"name":"s","steps":[{"type":"setter",`+tt.fields+`}],"loop":{"type":"once"}}`, runtime.StartOptions{})
				if crash {
					until(t, "the step to wait", func() bool { return runtime.Subscribers(rt) == 1 })
					commit(t, rt)
					snap := db.Snapshot()
					rt.Close()
					rt = open(t, newFakeHost(), snap, opt)
					if err := runtime.AddModule(rt, setters()); err != nil {
						t.Fatal(err)
					}
					if err := rt.Resume(within(t), id, runtime.ResumeOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				emit(t, rt, "go", "")
				res := wait(t, rt, id)
				if got := lastSet(t, res); got != tt.last {
					t.Errorf("the last call was %s, want %s", got, tt.last)
				}
				failed := res.Status == sentinels.StatusFailed && res.Error.Code == abi.Limit && strings.Contains(res.Error.Message, "callBytes")
				if failed != tt.fails {
					t.Errorf("run ended %s: %v", res.Status, res.Error)
				}
			})
		}
	}
}
