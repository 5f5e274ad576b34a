package runtime_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// budgetRun executes one step of a plugin within limits and returns the result and the
// log lines of the run. With parked, every wait unloads the guest, which is replayed.
func budgetRun(t *testing.T, limits runtime.Limits, parked bool, step func(g *runtime.GoGuest) (any, error)) (runtime.Result, []string) {
	t.Helper()
	if parked {
		limits.Resident = -1
	}
	var mu sync.Mutex
	var lines []string
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{Limits: limits, Observer: runtime.Observer{Progress: func(p runtime.Progress) {
		if p.Event == runtime.OnLog {
			mu.Lock()
			lines = append(lines, p.Level+": "+p.Message)
			mu.Unlock()
		}
	}}})
	mod := reach()
	mod.Step = step
	if err := runtime.AddUntrusted(rt, mod); err != nil {
		t.Fatal(err)
	}
	res := runToEnd(t, rt, `{"name":"b","steps":[{"type":"reach","outputTo":"out"}]}`, runtime.StartOptions{})
	mu.Lock()
	defer mu.Unlock()
	return res, lines
}

// unloaded has the guest wait, which unloads it where none is kept in memory.
func unloaded(g *runtime.GoGuest) { g.Call(abi.FuncWait, map[string]any{"durationMs": 1}) }

// TestLogBudget: log lines above the limits of an attempt are dropped and counted, the
// same if the attempt is replayed.
func TestLogBudget(t *testing.T) {
	request := len(`{"level":"info","message":"line 0"}`)
	for _, c := range []struct {
		name   string
		limits runtime.Limits
		kept   int
	}{
		{"lines", runtime.Limits{LogLines: 5}, 5},
		{"bytes", runtime.Limits{LogBytes: int64(4*request + 1)}, 4},
		{"neither", runtime.Limits{LogLines: 8, LogBytes: int64(8 * request)}, 8},
	} {
		for _, parked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, parked %t", c.name, parked), func(t *testing.T) {
				res, lines := budgetRun(t, c.limits, parked, func(g *runtime.GoGuest) (any, error) {
					first := 0
					if len(g.Input.State) > 0 {
						first = 2
					}
					for i := first; i < 8; i++ {
						if i == 2 && first == 0 {
							g.Call(abi.FuncCheckpoint, map[string]any{"state": true})
						}
						if a := g.Call(abi.FuncLog, map[string]any{"level": "info", "message": fmt.Sprintf("line %d", i)}); a.Error != nil {
							return nil, a.Error
						}
						unloaded(g)
					}
					return nil, nil
				})
				if res.Status != sentinels.StatusCompleted {
					t.Fatalf("ended %s: %v", res.Status, res.Error)
				}
				var want []string
				for i := range c.kept {
					want = append(want, fmt.Sprintf("info: line %d", i))
				}
				got := lines
				if dropped := 8 - c.kept; dropped > 0 && len(lines) > 0 {
					if last := lines[len(lines)-1]; !strings.HasPrefix(last, fmt.Sprintf("warn: %d log lines dropped: the limit of an attempt is", dropped)) {
						t.Errorf("the last line is %q, want that %d were dropped", last, dropped)
					}
					got = lines[:len(lines)-1]
				}
				if !cmp.Equal(want, got) {
					t.Error(cmp.Diff(want, got))
				}
			})
		}
	}
}

// TestStoredBudget: what an attempt sets in variables and checkpoints is
// bounded by bytes, the same if the attempt is replayed.
func TestStoredBudget(t *testing.T) {
	text := strings.Repeat("x", 100)
	set := func(g *runtime.GoGuest, _ int) runtime.Answer {
		return g.Call(abi.FuncVar, map[string]any{"set": map[string]any{"v": text}})
	}
	checkpoint := func(g *runtime.GoGuest, n int) runtime.Answer {
		return g.Call(abi.FuncCheckpoint, map[string]any{"state": map[string]any{"n": n + 1, "text": text}})
	}
	const each = 125 // about as many bytes has a request
	for _, c := range []struct {
		name   string
		call   func(g *runtime.GoGuest, n int) runtime.Answer
		limits runtime.Limits
		words  string // of the error, "" for none
	}{
		{"variables", set, runtime.Limits{StoredBytes: 10 * each}, "variables and checkpoints, which is the limit of an attempt"},
		{"variables within", set, runtime.Limits{StoredBytes: 20 * each}, ""},
		{"checkpoints", checkpoint, runtime.Limits{StoredBytes: 10 * each}, "variables and checkpoints, which is the limit of an attempt"},
		{"checkpoints within", checkpoint, runtime.Limits{StoredBytes: 20 * each}, ""},
	} {
		var ends []int // number of calls at the end, unparked and parked
		for _, parked := range []bool{false, true} {
			most := 0
			res, _ := budgetRun(t, c.limits, parked, func(g *runtime.GoGuest) (any, error) {
				var state struct{ N int }
				_ = json.Unmarshal(g.Input.State, &state)
				for n := state.N; n < 15; n++ {
					unloaded(g) // before it, so that a replay behind a checkpoint begins with it
					if a := c.call(g, n); a.Error != nil {
						return nil, a.Error
					}
					most = max(most, n)
				}
				return nil, nil
			})
			ends = append(ends, most)
			if c.words == "" && res.Status != sentinels.StatusCompleted {
				t.Errorf("%s, parked %t: ended %s: %v", c.name, parked, res.Status, res.Error)
			}
			if c.words != "" && (res.Error == nil || res.Error.Code != abi.Limit || !strings.Contains(res.Error.Message, c.words)) {
				t.Errorf("%s, parked %t: ended %s: %v, want code limit and %q", c.name, parked, res.Status, res.Error, c.words)
			}
		}
		if ends[0] != ends[1] {
			t.Errorf("%s: ended at call %d, and at %d when it was replayed", c.name, ends[0], ends[1])
		}
	}
}
