package runtime_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A second stop of a run ends its finally too.
func TestStopTwiceEndsFinally(t *testing.T) {
	s := &scriptedHost{Commands: map[string][]response{"test/hang": {{Hang: true}}, "test/hang2": {{Hang: true}}}}
	seen := newWatcher()
	rt := openBuiltin(t, store.NewMemory(), runtime.Options{Commands: s, Observer: runtime.Observer{Progress: seen.progress}})
	id := start(t, rt, `{"name":"p","steps":[{"command":"test/hang"}],
		"finally":[{"type":"group","steps":[{"command":"test/hang2"}],"finally":[{"command":"test/echo","params":{"inner":"$result.status"}}]},{"command":"test/echo","params":{"never":1}}],
		"safety":{"finallyTimeoutMs":3600000}}`, runtime.StartOptions{Workspace: "/w"})
	began := func(label string) {
		if _, ok := seen.await(action{On: moment{Event: runtime.OnCallStart, Label: label}}, 0); !ok {
			t.Fatalf("%s did not begin", label)
		}
	}
	began("test/hang")
	first := make(chan error, 1)
	go func() { first <- rt.Stop(within(t), id) }()
	began("test/hang2")
	if err := rt.Stop(within(t), id); err != nil {
		t.Fatal(err)
	}
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	res := wait(t, rt, id)
	if res.Status != sentinels.StatusStopped || res.Error == nil || res.Error.Message != "run was stopped" || res.Finally == nil {
		t.Errorf("got %s %v, finally %v", res.Status, res.Error, res.Finally)
	}
	if calls := fmt.Sprint(s.happened()); strings.Contains(calls, "never") || strings.Contains(calls, "inner") {
		t.Errorf("finally continued: %s", calls)
	}
}

// ends uses everything that can end or run side by side. Its run fails, and every list is executed.
const ends = `{"name":"all","onError":"skip","variables":{"n":0},"steps":[
	{"command":"test/red","outputTo":"red"},
	{"type":"loop","each":{"from":1,"to":5},"maxConcurrent":2,"onItemError":"continue","outputTo":"items","steps":[
		{"command":"test/act","params":{"item":"$item"},"outputTo":"own"},
		{"type":"fail","message":"no $item","condition":"$item === 3","onError":"fail"}],
		"finally":[{"command":"test/act","params":{"loop":"$result.status"}}]},
	{"type":"parallel","allowFailure":true,"outputTo":"par","branches":{
		"lint":[{"command":"test/act","params":{"branch":"lint"},"outputTo":"a"}],
		"test":[{"type":"group","steps":[{"type":"fail","message":"red","onError":"fail"}],"onFailure":[{"command":"test/act","params":{"group":"$result.error.message"}}]}]}},
	{"type":"loop","each":{"expr":"[1,2].map(x => x * 10)"},"onItemError":"stop","outputTo":"stopped","steps":[
		{"type":"set","values":{"n":{"expr":"$n + $item"}}},{"type":"fail","message":"at $item","condition":"$item === 20","onError":"fail"}]},
	{"type":"group","steps":[{"type":"stop","status":"failed","message":"enough after $n"}],"finally":[{"command":"test/act","params":{"inner":"$result.status"}}]},
	{"command":"test/act","params":{"never":true}}],
	"onFailure":[{"command":"test/act","params":{"failed":"$result.error.message"}}],
	"finally":[{"command":"test/act","params":{"last":"$items.results.length"},"outputTo":"x"},{"type":"fail","message":"in $x","onError":"fail"},{"command":"test/act","params":{"never":true}}],
	"safety":{"onInterrupt":"retry"}}`

// TestCrashAnywhereWithEnds goes on from the states that crashes leave in loops whose items are executed side by
// side, named branches, groups, onFailure and finally.
func TestCrashAnywhereWithEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("compiled guests are replayed a hundred times")
	}
	opt := func() (runtime.Options, *scriptedHost) {
		s := &scriptedHost{Commands: map[string][]response{"test/act": {{Result: []byte(`{"done":true}`)}}}}
		return runtime.Options{Commands: s, OnInterrupt: sentinels.InterruptRetry, Limits: runtime.Limits{Crashes: 1000}}, s
	}
	f := newRecordingStore()
	o, s := opt()
	rt := openBuiltin(t, f, o)
	id := start(t, rt, ends, runtime.StartOptions{Workspace: "/w"})
	outcome := func(rt *runtime.Runtime) string {
		res := wait(t, rt, id)
		return mask(renderResult(t, res)) + fmt.Sprint("finally ", res.Finally)
	}
	want := outcome(rt)
	if !strings.Contains(want, "all failed") || !strings.Contains(want, "enough after 30") || !strings.Contains(want, "finally: in ") {
		t.Fatalf("without a crash: %s", want)
	}
	if calls := strings.Join(s.happened(), "\n"); strings.Contains(calls, "never") || !strings.Contains(calls, `{"inner":"failed"}`) || !strings.Contains(calls, `{"last":5}`) {
		t.Errorf("calls: %s", calls)
	}
	rt.Close()
	for n := f.after(t, 1, kind(journal.RunStart)); n < f.length(); n += 2 {
		o, s := opt()
		rt := openBuiltin(t, f.prefix(t, n), o)
		if !status(t, rt, id).Status.Final() {
			if err := rt.Resume(within(t), id, runtime.ResumeOptions{}); err != nil {
				t.Fatalf("crash behind batch %d: %v", n, err)
			}
		}
		got := outcome(rt)
		rt.Close()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("crash behind batch %d (-want +got):\n%s", n, diff)
		}
		if strings.Contains(strings.Join(s.happened(), "\n"), "never") {
			t.Errorf("crash behind batch %d: %q", n, s.happened())
		}
	}
}

// TestItemsAreExecutedOnce crashes a loop at random places, again and again, with items that fail at random: the results are in
// the order of the list, none is lost, and no item whose end was durable is executed again.
func TestItemsAreExecutedOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(47, 1))
	for round := range 6 {
		items, fails := 20+rng.IntN(30), map[int]bool{}
		var failing []string
		for i := range items {
			if rng.IntN(6) == 0 {
				fails[i] = true
				failing = append(failing, fmt.Sprint(i))
			}
		}
		src := fmt.Sprintf(`{"name":"p","steps":[{"type":"loop","each":{"from":0,"to":%d},"maxConcurrent":%d,"onItemError":"continue","outputTo":"all","steps":[
			{"command":"test/echo","params":{"item":"$item"}},{"type":"fail","message":"no $item","condition":"[%s].includes($item)"},{"type":"set","values":{"v":"$item"}}]}],"safety":{"onInterrupt":"retry"}}`,
			items-1, 1+rng.IntN(9), strings.Join(failing, ","))
		opt := func(s *scriptedHost) runtime.Options {
			return runtime.Options{Commands: s, OnInterrupt: sentinels.InterruptRetry, Limits: runtime.Limits{Crashes: 1000}}
		}
		s, f := &scriptedHost{}, newRecordingStore()
		rt := openBuiltin(t, f, opt(s))
		id := start(t, rt, src, runtime.StartOptions{Workspace: "/w"})
		wait(t, rt, id)
		rt.Close()
		for range 3 {
			if first := f.after(t, 1, kind(journal.RunStart)); first < f.length()-1 {
				f = f.prefix(t, first+rng.IntN(f.length()-1-first))
			}
			ended := f.count(t, func(rec *journal.Record) bool {
				return rec.Kind == journal.StepEnd && strings.HasSuffix(rec.Path, "steps.0")
			})
			s = &scriptedHost{}
			rt = openBuiltin(t, f, opt(s))
			if !status(t, rt, id).Status.Final() {
				if err := rt.Resume(within(t), id, runtime.ResumeOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			res := wait(t, rt, id)
			rt.Close()
			var all struct {
				Iterations int
				Results    []any
				Failed     []struct{ Index int }
			}
			if err := json.Unmarshal(res.Variables["all"], &all); err != nil {
				t.Fatalf("round %d: %v in %+v", round, err, res)
			}
			if all.Iterations != items || len(all.Results) != items || len(all.Failed) != len(fails) {
				t.Fatalf("round %d: %d iterations, %d results, %d failed; want %d and %d", round, all.Iterations, len(all.Results), len(all.Failed), items, len(fails))
			}
			for _, failed := range all.Failed {
				if !fails[failed.Index] {
					t.Errorf("round %d: item %d failed", round, failed.Index)
				}
			}
			if n := len(s.happened()); n > items-ended {
				t.Errorf("round %d: %d items were executed, %d of %d had ended before the crash", round, n, ended, items)
			}
		}
	}
}

// Lists of 100,000 items and items of 1 MB are executed side by side within the limits of messages and of calls.
func TestManyAndLargeItems(t *testing.T) {
	if testing.Short() {
		t.Skip("100,000 items")
	}
	rt := openBuiltin(t, store.NewMemory(), runtime.Options{Commands: &scriptedHost{}})
	for _, tt := range []struct{ name, src, want string }{
		{"many", `{"name":"p","safety":{"maxSteps":200000},"steps":[{"type":"loop","each":{"from":1,"to":100000},"maxConcurrent":64,"outputTo":"all","steps":[{"type":"wait","condition":"$item < 0","durationMs":1}]},
			{"type":"set","values":{"n":{"expr":"$all.results.length + $all.failed.length"}}}]}`, "100000"},
		{"large", `{"name":"p","steps":[{"type":"set","values":{"list":{"expr":"Array.from({length: 9}, (_, i) => ({i, text: 'x'.repeat(1 << 20)}))"}}},
			{"type":"loop","each":"$list","maxConcurrent":4,"outputTo":"all","steps":[{"type":"set","values":{"size":{"expr":"$item.i + $item.text.length"}}},{"command":"test/echo","params":{"size":"$size"}}]},
			{"type":"set","values":{"n":{"expr":"$all.results[8].size"}}}]}`, fmt.Sprint(8 + 1<<20)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res := wait(t, rt, start(t, rt, tt.src, runtime.StartOptions{Workspace: "/w"}))
			if res.Status != sentinels.StatusCompleted || string(res.Variables["n"]) != tt.want {
				t.Errorf("%s %v: n is %.100s, want %s", res.Status, res.Error, res.Variables["n"], tt.want)
			}
		})
	}
}

// A time limit of the run has its finally too. A finally that never ends ends at its own limit, and what is behind it is
// executed.
func TestFinallyThatNeverEnds(t *testing.T) {
	s := &scriptedHost{Commands: map[string][]response{"test/hang": {{Hang: true}}}}
	rt := openBuiltin(t, store.NewMemory(), runtime.Options{Commands: s})
	res := wait(t, rt, start(t, rt, `{"name":"p","safety":{"timeoutMs":30},"steps":[{"command":"test/hang"}],
		"onFailure":[{"command":"test/echo","params":{"status":"$result.status","reason":"$result.reason"}},
			{"type":"group","steps":[],"finally":[{"command":"test/hang"}],"finallyTimeoutMs":30}],
		"finally":[{"command":"test/echo","params":{"last":"$result.error.code"}}]}`, runtime.StartOptions{Workspace: "/w"}))
	want := []string{`test/echo {"last":"timeout"}`, `test/echo {"reason":"timeoutMs","status":"timed_out"}`}
	if diff := cmp.Diff(want, s.happened()); diff != "" || res.Status != sentinels.StatusTimedOut || res.Finally != nil {
		t.Errorf("%s %v, finally %v, calls (-want +got):\n%s", res.Status, res.Error, res.Finally, diff)
	}
}
