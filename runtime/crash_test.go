package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// everything uses nested blocks, parallel branches, a loop with checkpoints,
// model turns, a wait, commands in the store, a child run and two iterations.
const everything = `{"name":"everything","steps":[
	{"type":"call","command":"world/act","value":1,"outputTo":"a"},
	{"type":"times","count":3,"steps":[
		{"type":"call","command":"world/act","value":"$index","outputTo":"inner"},
		{"type":"if","check":"$index === 1","then":[{"type":"twice","command":"world/act","outputTo":"mid"}],
			"else":[{"type":"call","command":"world/look","value":"$inner.value"}]}],"outputTo":"loop"},
	{"type":"both","branches":[
		[{"type":"call","command":"world/act","value":"left","outputTo":"left"},{"type":"pause","durationMs":1},{"type":"call","command":"world/note","value":"$left.value","outputTo":"note"}],
		[{"type":"talk","prompt":"hello $iteration","turns":3,"outputTo":"right"}],
		[{"type":"seq","steps":[{"type":"call","command":"world/act","value":"deep","outputTo":"deep"}]}]]},
	{"type":"child","definition":{"name":"kid","steps":[
		{"type":"call","command":"world/act","value":"kid","outputTo":"x"},
		{"type":"pause","durationMs":1},
		{"type":"call","command":"world/act","value":"kid2","outputTo":"y"}],"loop":{"type":"count","max":2}},"outputTo":"kid"},
	{"type":"call","command":"world/act","value":"$deep.value","outputTo":"final"}],
	"loop":{"type":"count","max":2},"safety":{"onInterrupt":"retry"}}`

// stable drops from a result what differs between two honest runs.
func stable(t *testing.T, res runtime.Result) map[string]any {
	t.Helper()
	out := map[string]any{"status": string(res.Status), "iterations": res.Iterations}
	for name, raw := range res.Variables {
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatal(err)
		}
		if m, ok := v.(map[string]any); ok {
			delete(m, "run")
			delete(m, "id")
		}
		out[name] = v
	}
	return out
}

// TestCrashAnywhere kills the process at random points and starts the next one
// on what was committed. Whatever the points are, the result is that of a run
// without crashes, no call with a recorded answer is made again, and no call is
// made twice unless a crash left it in doubt.
func TestCrashAnywhere(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	if n, err := strconv.Atoi(os.Getenv("SENTINEL_CRASH_ROUNDS")); err == nil {
		rounds = n
	}
	want := stable(t, func() runtime.Result {
		w := newFakeHost()
		return runToEnd(t, open(t, w, store.NewMemory(), runtime.Options{}), everything, runtime.StartOptions{Workspace: "/w"})
	}())
	if want["status"] != "completed" {
		t.Fatalf("without a crash: %v", want)
	}
	crashes := 0
	for round := range rounds {
		seed := uint64(round) + 1
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			got, n := crashing(t, seed)
			crashes += n
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("result after %d crashes (-want +got):\n%s", n, diff)
			}
		})
	}
	t.Logf("%d crashes in %d runs", crashes, rounds)
	if crashes == 0 {
		t.Error("nothing was killed")
	}
}

func crashing(t *testing.T, seed uint64) (map[string]any, int) {
	rng := rand.New(rand.NewPCG(seed, 7))
	resident := []int{0, -1, 2}[rng.IntN(3)]
	opt := runtime.Options{OnInterrupt: sentinels.InterruptRetry, Limits: runtime.Limits{Resident: resident, Crashes: 1000}}
	w, db := newFakeHost(), store.NewMemory()
	w.delay = 100 * time.Microsecond
	rt := open(t, w, db, opt)
	ctx := context.Background()
	id, err := rt.Start(ctx, decode(t, rt, everything), runtime.StartOptions{Workspace: "/w"})
	if err != nil {
		t.Fatal(err)
	}
	recorded := map[string]bool{}
	doubts := map[string]int{}
	for crashes := 0; ; crashes++ {
		life := time.Duration(rng.IntN(12_000)) * time.Microsecond
		if crashes > 40 {
			life = time.Minute
		}
		limited, cancel := context.WithTimeout(ctx, life)
		res, err := rt.Wait(limited, id)
		cancel()
		if err == nil {
			for key, n := range w.made {
				if n > 1+doubts[key] {
					t.Errorf("call %s was made %d times and was in doubt %d times", key, n, doubts[key])
				}
			}
			return resultOrTrace(t, rt, res), crashes
		}
		w.freeze()
		snap := db.Snapshot()
		rt.Close()
		for _, key := range endedCalls(t, snap, recorded) {
			if w.count(key) == 0 {
				t.Errorf("call %s has a recorded answer and was never made", key)
			}
		}
		for key, n := range w.made {
			if !recorded[key] {
				doubts[key] = n
			}
		}
		before := w
		w, db = w.next(), snap
		rt = open(t, w, db, opt)
		info, err := rt.Status(id)
		if err != nil {
			// Nothing of the run was committed: it never began.
			if id, err = rt.Start(ctx, decode(t, rt, everything), runtime.StartOptions{Workspace: "/w"}); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if info.Status.Final() {
			res, err := rt.Wait(ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			return resultOrTrace(t, rt, res), crashes
		}
		if err := rt.Resume(ctx, id, runtime.ResumeOptions{}); err != nil {
			t.Fatal(err)
		}
		for key := range recorded {
			if w.count(key) > before.count(key) {
				t.Errorf("call %s has a recorded answer and was made again", key)
			}
		}
	}
}

// resultOrTrace returns the stable part of a result. If the run did not complete, it
// logs the traces of all runs, because a failure that occurs once in thousands of
// crashes leaves nothing else.
func resultOrTrace(t *testing.T, rt *runtime.Runtime, res runtime.Result) map[string]any {
	t.Helper()
	if res.Status == sentinels.StatusCompleted {
		return stable(t, res)
	}
	t.Logf("run ended %s at step %q: limit %q, error %+v", res.Status, res.Step, res.Reason, res.Error)
	runs, err := rt.Runs(runtime.RunFilter{})
	if err != nil {
		t.Error(err)
	}
	for _, info := range runs {
		trace, err := rt.Trace(info.ID)
		if err != nil {
			t.Error(err)
			continue
		}
		text, err := json.MarshalIndent(trace, "", " ")
		t.Logf("trace of run %s of %s, %s, error %+v: %v\n%s", info.ID, info.Sentinel, info.Status, info.Error, err, text)
	}
	return stable(t, res)
}

// endedCalls adds the keys of the commands that have a recorded end to known,
// and returns the new ones.
func endedCalls(t *testing.T, db store.Store, known map[string]bool) []string {
	t.Helper()
	var fresh []string
	err := db.Scan("runs", nil, nil, false, func(key, _ []byte) bool {
		run := string(key)
		iteration := 0
		starts := map[string]string{}
		err := db.Journal(run, 1, func(_ uint64, raw []byte) error {
			rec, err := journal.Decode(raw)
			if err != nil {
				return err
			}
			switch {
			case rec.IterationStart != nil:
				iteration = rec.IterationStart.Iteration
			case rec.CallStart != nil && rec.CallStart.Label == "world/act":
				starts[fmt.Sprint(rec.Path, rec.Attempts, rec.CallStart.Seq)] = runtime.CallKey(run, iteration, rec.Path, rec.CallStart.Seq)
			case rec.CallEnd != nil:
				k, ok := starts[fmt.Sprint(rec.Path, rec.Attempts, rec.CallEnd.Seq)]
				if ok && !known[k] {
					known[k] = true
					fresh = append(fresh, k)
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return fresh
}
