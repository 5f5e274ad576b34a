package runtime_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
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
	"finally":[{"command":"test/act","params":{"last":"$items.results.length"},"outputTo":"x"},{"type":"fail","message":"in $x","onError":"fail"},{"command":"test/act","params":{"behind":true}}],
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
	if calls := strings.Join(s.happened(), "\n"); strings.Contains(calls, "never") || !strings.Contains(calls, `{"inner":"failed"}`) || !strings.Contains(calls, `{"last":5}`) ||
		!strings.Contains(calls, `{"behind":true}`) {
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
		if calls := strings.Join(s.happened(), "\n"); strings.Contains(calls, "never") || strings.Contains(calls, `{"last":5}`) && !strings.Contains(calls, `{"behind":true}`) {
			t.Errorf("crash behind batch %d: %q", n, s.happened())
		}
	}
}

// TestItemsAreExecutedOnce crashes a loop at random places, again and again, with items that fail at random: the results are in
// the order of the list, none is lost, and no item whose end was durable is executed again. After fail and stop the results
// end where an item did not begin, and an item behind a failed one is only there if it had begun with it.
func TestItemsAreExecutedOnce(t *testing.T) {
	rounds := 6
	if testing.Short() {
		rounds = 2 // all of them are of the part `long` of .ci/run
	}
	for k, onItem := range []string{"continue", "stop", "fail"} {
		t.Run(onItem, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(47, uint64(k)+1))
			for range rounds {
				itemsOnce(t, rng, onItem)
			}
		})
	}
}

func itemsOnce(t *testing.T, rng *rand.Rand, onItem string) {
	t.Helper()
	items, fails, at := 20+rng.IntN(30), map[int]bool{}, 1+rng.IntN(9)
	failing := []string{}
	for i := range items {
		if rng.IntN(map[string]int{"continue": 6, "stop": 20, "fail": 20}[onItem]) == 0 {
			fails[i] = true
			failing = append(failing, fmt.Sprint(i))
		}
	}
	src := fmt.Sprintf(`{"name":"p","steps":[{"type":"loop","each":{"from":0,"to":%d},"maxConcurrent":%d,"onItemError":%q,"outputTo":"all","steps":[
		{"command":"test/echo","params":{"item":"$item"}},{"type":"group","steps":[{"type":"fail","message":"no $item","condition":"[%s].includes($item)"}]},
		{"type":"set","values":{"v":"$item"}}]}],"safety":{"onInterrupt":"retry"}}`,
		items-1, at, onItem, strings.Join(failing, ","))
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
		begun, ended, failed := -1, map[string]bool{}, false // items begin in their order
		f.count(t, func(rec *journal.Record) bool {
			item, step, _ := strings.Cut(rec.Path, ".")
			var i int
			if _, err := fmt.Sscanf(item, "0#%d", &i); err == nil && step == "steps.0" {
				begun = max(begun, i)
			}
			ended[item] = ended[item] || step == "steps.0" && rec.Kind == journal.StepEnd
			failed = failed || rec.StepEnd != nil && rec.StepEnd.Error != nil
			return false
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
		executed := map[int]bool{}
		for _, call := range s.happened() {
			var item int
			if _, err := fmt.Sscanf(call, `test/echo {"item":%d}`, &item); err != nil || executed[item] {
				t.Errorf("%s: executed twice, or %v", call, err)
			}
			executed[item] = true
			switch key := fmt.Sprintf("0#%d", item); {
			case ended[key]:
				t.Errorf("item %d had ended before the crash and was executed again", item)
			case failed && item > begun && onItem != "continue":
				t.Errorf("item %d began after a failure was durable", item)
			}
		}
		if onItem == "fail" && len(fails) > 0 {
			var item int
			if _, err := fmt.Sscanf(res.Error.Message, "item %d:", &item); res.Status != sentinels.StatusFailed || err != nil || !fails[item] {
				t.Errorf("%s %v, want the failure of one of the items %v", res.Status, res.Error, failing)
			}
			continue
		}
		var all struct {
			Iterations int
			Results    []*struct{ V int }
			Failed     []struct{ Index, Item int }
		}
		if err := json.Unmarshal(res.Variables["all"], &all); err != nil {
			t.Fatalf("%v in %+v", err, res)
		}
		in := map[int]bool{}
		for _, one := range all.Failed {
			if in[one.Index] || !fails[one.Index] || one.Item != one.Index {
				t.Errorf("item %d is twice among the failed ones, or did not fail: item %d", one.Index, one.Item)
			}
			in[one.Index] = true
		}
		for i, r := range all.Results {
			if in[i] != (r == nil) || r != nil && r.V != i || fails[i] != (r == nil) {
				t.Errorf("result %d is %v; failed: %v, want %v", i, r, in[i], fails[i])
			}
		}
		whole := onItem == "continue" || len(fails) == 0
		if n := len(all.Results); all.Iterations != n || whole && n != items || !whole && (len(in) == 0 || n > items) {
			t.Errorf("%d iterations, %d results, %d failed of %d items, of which %v fail", all.Iterations, n, len(in), items, failing)
		}
	}
}

// TestNoItemBeginsAfterDurableFailure crashes between the durable failure of a step within an item and that of the item: with
// onItemError fail and stop no further item begins. Where the steps around handle the failure, all items are executed.
func TestNoItemBeginsAfterDurableFailure(t *testing.T) {
	const nested = `{"type":"group","steps":[{"type":"group","steps":[{"type":"group","steps":[{"command":"test/red","condition":"$item === 1"}]}]}]%s}`
	red := response{Error: &abi.Error{Code: abi.Unavailable, Message: "no"}}
	for _, tt := range []struct{ name, onItem, group, after string }{
		{"fail", "fail", "", ""},
		{"stop", "stop", "", ""},
		{"finally", "fail", `,"finally":[{"command":"test/echo","params":{"finally":"$item"}}]`, ""},
		{"skip", "fail", `,"onError":"skip"`, "234"},
		{"retry", "fail", `,"onError":{"retry":{"maxRetries":1,"baseDelayMs":1}}`, "234"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			src := fmt.Sprintf(`{"name":"p","steps":[{"type":"loop","each":{"from":0,"to":4},"maxConcurrent":2,"onItemError":%q,"steps":[
				{"command":"test/first","condition":"$item === 0"},`+nested+`,{"command":"test/echo","params":{"item":"$item"}}]}],"safety":{"onInterrupt":"retry"}}`, tt.onItem, tt.group)
			f, failed := newRecordingStore(), make(chan struct{})
			innermost := func(rec *journal.Record) bool {
				return rec.StepEnd != nil && rec.StepEnd.Error != nil && strings.Count(rec.Path, "#") == 4
			}
			var once sync.Once
			f.onEnqueue(func(b store.Batch) {
				for _, a := range b.Appends {
					if rec, err := journal.Decode(a.Record); err == nil && innermost(rec) {
						once.Do(func() { close(failed) })
					}
				}
			})
			rt := openBuiltin(t, f, runtime.Options{Commands: &scriptedHost{Commands: map[string][]response{"test/first": {{Hang: true}}, "test/red": {red}}}, OnInterrupt: sentinels.InterruptRetry})
			id := start(t, rt, src, runtime.StartOptions{Workspace: "/w"})
			<-failed
			rt.Close()
			n := f.after(t, 1, innermost)
			for k := range 4 {
				// In every second one nothing of item 0 was durable, although it had begun before item 1.
				db := f.without(t, n, func(rec *journal.Record) bool { return k%2 == 1 && strings.HasPrefix(rec.Path, "0#0.") })
				s := &scriptedHost{Commands: map[string][]response{"test/first": {{Result: []byte("{}")}}, "test/red": {{Result: []byte("{}")}}}}
				rt := openBuiltin(t, db, runtime.Options{Commands: s, OnInterrupt: sentinels.InterruptRetry})
				if err := rt.Resume(within(t), id, runtime.ResumeOptions{}); err != nil {
					t.Fatal(err)
				}
				res := wait(t, rt, id)
				rt.Close()
				calls := strings.Join(s.happened(), " ")
				if n := strings.Count(calls, "test/first"); n != 1 {
					t.Errorf("item 0 began %d times; %s %v, calls %s", n, res.Status, res.Error, calls)
				}
				for _, item := range "234" {
					if began := strings.Contains(calls, fmt.Sprintf(`{"item":%c}`, item)); began != strings.ContainsRune(tt.after, item) {
						t.Errorf("item %c began: %v; %s %v, calls %s", item, began, res.Status, res.Error, calls)
					}
				}
			}
		})
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
