package runtime_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// rerun has three passes of four effects; the third step of the third pass
// fails until the fault is repaired.
const rerun = `{"name":"rerun","inputs":{"n":{"type":"integer","default":5}},"steps":[
	{"type":"call","command":"world/act","value":"$iteration","id":"first","outputTo":"a"},
	{"type":"times","name":"Twice","count":2,"steps":[{"type":"call","command":"world/act","value":"$index","name":"inner","outputTo":"b"}]},
	{"type":"call","command":"world/fail","value":"$a.value","id":"weak","outputTo":"c"},
	{"type":"call","command":"world/act","value":"$n","outputTo":"d"}],"loop":{"type":"count","max":4},"safety":{"onInterrupt":"retry"}}`

// failing runs rerun in w until its third pass fails.
func failing(t testing.TB, w *fakeHost, db store.Store, opt runtime.Options) (*runtime.Runtime, sentinels.RunID) {
	t.Helper()
	w.fail = func(value string, _ int) error {
		if value == "3" {
			return &abi.Error{Code: abi.Denied, Message: "not today"}
		}
		return nil
	}
	rt := open(t, w, db, opt)
	def := decode(t, rt, rerun)
	if _, err := rt.Save(within(t), def, 0); err != nil {
		t.Fatal(err)
	}
	id, err := rt.Start(within(t), def, runtime.StartOptions{Workspace: "/w", Revision: 1, Event: &sentinels.Event{Name: "e", Data: json.RawMessage(`{"k":1}`)}})
	if err != nil {
		t.Fatal(err)
	}
	if res := wait(t, rt, id); res.Status != sentinels.StatusFailed || res.Step != "2" || res.Iterations != 3 {
		t.Fatalf("%s at step %s in iteration %d: %v; want failed at 2 in 3", res.Status, res.Step, res.Iterations, res.Error)
	}
	w.mu.Lock()
	w.made, w.order = map[string]int{}, nil
	w.fail = func(string, int) error { return nil }
	w.mu.Unlock()
	return rt, id
}

func fork(t testing.TB, rt *runtime.Runtime, id sentinels.RunID, opt runtime.ForkOptions) sentinels.RunID {
	t.Helper()
	next, err := rt.Fork(within(t), id, opt)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// states renders the top-level steps of each pass: address and state.
func states(t testing.TB, rt *runtime.Runtime, id sentinels.RunID) []string {
	t.Helper()
	trace, err := rt.Trace(id)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, it := range trace.Iterations {
		line := fmt.Sprint(it.Number)
		for _, s := range it.Steps {
			line += fmt.Sprintf(" %s:%s", s.Address, s.State())
		}
		out = append(out, line)
	}
	return out
}

// A run that failed is begun again where it is wanted, with what it had, and
// does what is left exactly once.
func TestForkGoesOnWhereItIsWanted(t *testing.T) {
	tests := map[string]struct {
		opt     runtime.ForkOptions
		trace   []string
		effects int
		from    string
	}{
		"from the start":     {runtime.ForkOptions{}, []string{"1 0:ok 1:ok 2:ok 3:ok", "2 0:ok 1:ok 2:ok 3:ok", "3 0:ok 1:ok 2:ok 3:ok", "4 0:ok 1:ok 2:ok 3:ok"}, 20, ""},
		"from a step":        {runtime.ForkOptions{From: "2"}, []string{"3 0:reused 1:reused 2:ok 3:ok", "4 0:ok 1:ok 2:ok 3:ok"}, 7, "2"},
		"by its id":          {runtime.ForkOptions{From: "weak"}, []string{"3 0:reused 1:reused 2:ok 3:ok", "4 0:ok 1:ok 2:ok 3:ok"}, 7, "2"},
		"by its name":        {runtime.ForkOptions{From: "Twice"}, []string{"3 0:reused 1:ok 2:ok 3:ok", "4 0:ok 1:ok 2:ok 3:ok"}, 9, "1"},
		"an iteration":       {runtime.ForkOptions{Iteration: 2}, []string{"2 0:ok 1:ok 2:ok 3:ok", "3 0:ok 1:ok 2:ok 3:ok", "4 0:ok 1:ok 2:ok 3:ok"}, 15, "0"},
		"a step of one":      {runtime.ForkOptions{Iteration: 1, From: "3"}, []string{"1 0:reused 1:reused 2:reused 3:ok", "2 0:ok 1:ok 2:ok 3:ok", "3 0:ok 1:ok 2:ok 3:ok", "4 0:ok 1:ok 2:ok 3:ok"}, 16, "3"},
		"the last iteration": {runtime.ForkOptions{Iteration: 3}, []string{"3 0:ok 1:ok 2:ok 3:ok", "4 0:ok 1:ok 2:ok 3:ok"}, 10, "0"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newFakeHost()
			rt, old := failing(t, w, store.NewMemory(), runtime.Options{})
			tt.opt.By = "ann"
			id := fork(t, rt, old, tt.opt)
			res := wait(t, rt, id)
			if res.Status != sentinels.StatusCompleted || res.Iterations != 4 {
				t.Fatalf("%s after %d iterations: %v", res.Status, res.Iterations, res.Error)
			}
			if diff := cmp.Diff(tt.trace, states(t, rt, id)); diff != "" {
				t.Errorf("trace (-want +got):\n%s", diff)
			}
			if len(w.order) != tt.effects {
				t.Errorf("%d effects, want %d", len(w.order), tt.effects)
			}
			for name, want := range map[string]string{"a": `{"success":true,"value":4}`, "b": `{"success":true,"value":1}`, "d": `{"success":true,"value":5}`} {
				if got := variable(t, res, name); got != want {
					t.Errorf("%s is %s, want %s", name, got, want)
				}
			}
			info := status(t, rt, id)
			if info.RetryOf != old || info.RetryIteration != tt.opt.Iteration && tt.opt.Iteration != 0 || info.RetryFrom != tt.from || info.Workspace != "/w" || info.Root != id {
				t.Errorf("summary: %+v", info)
			}
			if old := status(t, rt, old); old.Status != sentinels.StatusFailed {
				t.Errorf("the other run is %s", old.Status)
			}
		})
	}
}

// What is reused is what the other run's step had come to, in the trace too, and
// variables are those of the moment: not what later steps made of them.
func TestForkHasTheVariablesOfTheMoment(t *testing.T) {
	w := newFakeHost()
	rt, old := failing(t, w, store.NewMemory(), runtime.Options{})
	id := fork(t, rt, old, runtime.ForkOptions{Iteration: 2, From: "1", Edit: func(d *sentinels.Definition) (*sentinels.Definition, error) {
		next := *d
		next.Loop = sentinels.Loop{Type: sentinels.LoopCount, Max: json.RawMessage("2")}
		next.Steps = slices.Clone(d.Steps[:3])
		next.Steps[2] = sentinels.Step{Type: "call", OutputTo: "seen", Fields: map[string]json.RawMessage{
			"command": json.RawMessage(`"world/look"`), "value": json.RawMessage(`{"a":"$a.value","d":"$d.value","last":"$last.passes","event":"$event.k","n":"$n"}`)}}
		return &next, nil
	}, Inputs: map[string]json.RawMessage{"n": json.RawMessage("6")}})
	res := wait(t, rt, id)
	if res.Status != sentinels.StatusCompleted {
		t.Fatalf("%s: %v", res.Status, res.Error)
	}
	if got, want := variable(t, res, "seen"), `{"success":true,"value":{"a":2,"d":5,"event":1,"last":2,"n":6}}`; !sameText(got, want) {
		t.Errorf("seen is %s, want %s", got, want)
	}
	if info := status(t, rt, id); info.Revision != 0 {
		t.Errorf("revision %d of an edited definition, want none", info.Revision)
	}
	trace, err := rt.Trace(id)
	if err != nil {
		t.Fatal(err)
	}
	first := trace.Iterations[0].Steps[0]
	if !first.Reused || string(first.Output) != `{"success":true,"value":2}` || first.Type != "call" || len(first.Attempts) != 0 {
		t.Errorf("the reused step: %+v with output %s", first, first.Output)
	}
}

func sameText(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && cmp.Equal(x, y)
}

// A newer revision may have steps that the other run did not have; the run stays
// with an old revision, and follows the newest one if that is asked for.
func TestForkWithARevision(t *testing.T) {
	w := newFakeHost()
	rt, old := failing(t, w, store.NewMemory(), runtime.Options{})
	second := strings.Replace(rerun, `{"type":"call","command":"world/fail"`, `{"type":"call","command":"world/act","value":"new","id":"new","outputTo":"e"},{"type":"call","command":"world/fail"`, 1)
	if _, err := rt.Save(within(t), decode(t, rt, second), 1); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		opt   runtime.ForkOptions
		trace []string
		rev   int
	}{
		"its own":            {runtime.ForkOptions{From: "2"}, []string{"3 0:reused 1:reused 2:ok 3:ok", "4 0:ok 1:ok 2:ok 3:ok"}, 1},
		"the newest":         {runtime.ForkOptions{From: "new", Latest: true}, []string{"3 0:reused 1:reused 2:ok 3:ok 4:ok", "4 0:ok 1:ok 2:ok 3:ok 4:ok"}, 2},
		"behind what is new": {runtime.ForkOptions{From: "weak", Revision: 2}, []string{"3 0:reused 1:reused 2:reused 3:ok 4:ok", "4 0:ok 1:ok 2:ok 3:ok 4:ok"}, 2},
		"the first":          {runtime.ForkOptions{From: "weak", Revision: 1}, []string{"3 0:reused 1:reused 2:ok 3:ok", "4 0:ok 1:ok 2:ok 3:ok"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			id := fork(t, rt, old, tt.opt)
			if res := wait(t, rt, id); res.Status != sentinels.StatusCompleted {
				t.Fatalf("%s: %v", res.Status, res.Error)
			}
			if diff := cmp.Diff(tt.trace, states(t, rt, id)); diff != "" {
				t.Errorf("trace (-want +got):\n%s", diff)
			}
			if got := status(t, rt, id).Revision; got != tt.rev {
				t.Errorf("revision %d, want %d", got, tt.rev)
			}
		})
	}
}

// TestForkWithInputsOnly: a run without variables is continued at a step with inputs.
func TestForkWithInputsOnly(t *testing.T) {
	w := newFakeHost()
	rt := open(t, w, store.NewMemory(), runtime.Options{})
	id := start(t, rt, `{"name":"bare","inputs":{"n":{"type":"integer"}},"steps":[{"type":"call","command":"world/act","value":"1","id":"one"},{"type":"call","command":"world/act","value":"2","id":"two"}],"loop":{"type":"once"}}`, runtime.StartOptions{})
	wait(t, rt, id)
	next := fork(t, rt, id, runtime.ForkOptions{Iteration: 1, From: "1", Inputs: map[string]json.RawMessage{"n": json.RawMessage("7")}})
	if res := wait(t, rt, next); res.Status != sentinels.StatusCompleted || string(res.Variables["n"]) != "7" {
		t.Errorf("%s, n = %s, %v", res.Status, res.Variables["n"], res.Error)
	}
}

func TestForkRefuses(t *testing.T) {
	rt, old := failing(t, newFakeHost(), store.NewMemory(), runtime.Options{Limits: runtime.Limits{KeepIterations: 1}})
	for name, tt := range map[string]struct {
		opt  runtime.ForkOptions
		code abi.Code
		want string
		hint string
	}{
		"nested address":       {runtime.ForkOptions{From: "1.steps.0"}, abi.BadFields, "it is a nested step", "begin with the step around it, 1"},
		"nested name":          {runtime.ForkOptions{From: "inner"}, abi.BadFields, "it is a nested step", "begin with the step around it, 1"},
		"no such step":         {runtime.ForkOptions{From: "unknown"}, abi.NotFound, `want the address, id or name of a step`, ""},
		"behind the end":       {runtime.ForkOptions{From: "4"}, abi.NotFound, "4 steps", ""},
		"not done":             {runtime.ForkOptions{From: "3"}, abi.Conflict, "iteration 3 had not completed step 2", "begin with step 2 at the latest"},
		"not made":             {runtime.ForkOptions{Iteration: 4}, abi.NotFound, "has executed 3 iterations, not 4", ""},
		"gone":                 {runtime.ForkOptions{Iteration: 1}, abi.NotFound, "the records of iteration 1 were removed", "iterations 3 to 3 are kept"},
		"its start is gone":    {runtime.ForkOptions{Iteration: 2}, abi.NotFound, "the records of iteration 2 were removed", "iterations 3 to 3 are kept"},
		"no such revision":     {runtime.ForkOptions{Revision: 9}, abi.NotFound, "no revision 9", "revisions 1 to 1 are kept"},
		"two definitions":      {runtime.ForkOptions{Revision: 1, Latest: true}, abi.BadFields, "exclude each other", ""},
		"an unknown input":     {runtime.ForkOptions{Inputs: map[string]json.RawMessage{"m": json.RawMessage("1")}}, abi.BadFields, `has no input "m"`, ""},
		"a bad input":          {runtime.ForkOptions{Inputs: map[string]json.RawMessage{"n": json.RawMessage(`"x"`)}}, abi.BadFields, `input "n" of sentinel "`, ""},
		"another's definition": {runtime.ForkOptions{Definition: &sentinels.Definition{ID: "x"}}, abi.BadFields, "the definition has the id \"x\"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := rt.Fork(within(t), old, tt.opt)
			e := abi.As(err)
			if e == nil || e.Code != tt.code || !strings.Contains(err.Error(), tt.want) || !strings.Contains(e.Hint, tt.hint) {
				t.Errorf("%v (hint %q)", err, hintOf(e))
			}
		})
	}
	if _, err := rt.Fork(within(t), "01a1fe26-6143-78e9-87e1-a28c300b88de", runtime.ForkOptions{}); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("a run that is not there: %v", err)
	}
	if n := len(ids(t, rt, runtime.RunFilter{})); n != 1 {
		t.Errorf("%d runs, want only the old one", n)
	}
}

func hintOf(e *abi.Error) string {
	if e == nil {
		return ""
	}
	return e.Hint
}

// A run that goes on can be forked, and so can a fork; a second start with a key
// gives the first run.
func TestForkOfALivingRunAndOfAFork(t *testing.T) {
	w, db := newFakeHost(), newRecordingStore()
	rt := open(t, w, db, runtime.Options{})
	old := start(t, rt, `{"name":"l","steps":[{"type":"call","command":"world/act","value":"$iteration","outputTo":"a"},{"type":"pause","event":"go"},
		{"type":"call","command":"world/act","value":"$a.value"}],"loop":{"type":"once"}}`, runtime.StartOptions{})
	until(t, "the run to wait", func() bool { return db.count(t, hasCall("go")) == 1 })
	id := fork(t, rt, old, runtime.ForkOptions{From: "1", Key: "k"})
	if again := fork(t, rt, old, runtime.ForkOptions{From: "1", Key: "k"}); again != id {
		t.Errorf("started twice with one key: %s and %s", id, again)
	}
	until(t, "both to wait", func() bool { return db.count(t, hasCall("go")) == 2 })
	third := fork(t, rt, id, runtime.ForkOptions{Iteration: 1, From: "1"})
	until(t, "all to wait", func() bool { return db.count(t, hasCall("go")) == 3 })
	if _, err := rt.Emit(within(t), sentinels.Event{Name: "go"}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []sentinels.RunID{old, id, third} {
		if res := wait(t, rt, id); res.Status != sentinels.StatusCompleted {
			t.Errorf("%s: %v", res.Status, res.Error)
		}
	}
	if len(w.order) != 4 { // one before the fork, one behind it in each run
		t.Errorf("%d effects, want 4", len(w.order))
	}
	if diff := cmp.Diff([]string{"1 0:reused 1:ok 2:ok"}, states(t, rt, third)); diff != "" {
		t.Error(diff)
	}
}

// A fork goes on from every state that a crash can leave, and its result is that
// of one without a crash, also when the run that it was made from is gone.
func TestForkAtEveryCrash(t *testing.T) {
	opt := runtime.Options{OnInterrupt: sentinels.InterruptRetry, Limits: runtime.Limits{Crashes: 1000}}
	f := newRecordingStore()
	rt, old := failing(t, newFakeHost(), f, opt)
	before := f.length()
	id := fork(t, rt, old, runtime.ForkOptions{From: "2"})
	want := stable(t, wait(t, rt, id))
	trace := states(t, rt, id)
	rt.Close()
	if want["status"] != "completed" {
		t.Fatalf("without a crash: %v", want)
	}
	first := before + 1
	for ; !f.prefix(t, first).has(t, func(r *journal.Record) bool { return r.RunStart != nil && r.RunStart.Fork != nil }); first++ {
	}
	for n := first; n < f.length(); n++ {
		db := f.prefix(t, n)
		if err := db.Enqueue(store.Batch{Trims: []store.Trim{{Run: string(old), To: store.All}}}).Wait(within(t)); err != nil {
			t.Fatal(err)
		}
		w := newFakeHost()
		w.fail = func(string, int) error { return nil }
		rt := open(t, w, db, opt)
		if !status(t, rt, id).Status.Final() {
			if err := rt.Resume(within(t), id, runtime.ResumeOptions{}); err != nil {
				t.Fatalf("crash behind batch %d: %v", n, err)
			}
		}
		if diff := cmp.Diff(want, stable(t, wait(t, rt, id))); diff != "" {
			t.Errorf("crash behind batch %d (-want +got):\n%s", n, diff)
		}
		if diff := cmp.Diff(trace, states(t, rt, id)); diff != "" {
			t.Errorf("crash behind batch %d, trace (-want +got):\n%s", n, diff)
		}
		rt.Close()
	}
}

// TestEditAndForkOfConstructs edits a run while a construct of it waits for an approval with a deadline: the iteration ends
// with the definition that it began with, the next one has the new one. A fork behind the construct executes nothing of it
// again, and one that begins with it executes all of it once. The finally of the definition is executed in each run.
func TestEditAndForkOfConstructs(t *testing.T) {
	const gate = `{"type":"approve","prompt":"VER?","timeoutMs":3600000}`
	const request = `{"url":"http://service.test/VER","method":"POST","idempotencyKey":"VER"}`
	for name, construct := range map[string]string{
		"items side by side": `{"type":"loop","each":[1,2,3],"maxConcurrent":2,"onItemError":"continue","steps":[{"type":"group","condition":"$item === 2","steps":[` + gate + `]},
			{"command":"test/echo","params":{"v":"VER","item":"$item"}},{"type":"fail","message":"no","condition":"$item === 3"}]}`,
		"named branches": `{"type":"parallel","branches":{"a":[` + gate + `,{"command":"test/echo","params":{"v":"VER"}}],"b":[{"command":"test/echo","params":{"v":"VER"}}]}}`,
		"finally":        `{"type":"group","steps":[` + gate + `],"finally":[{"command":"test/echo","params":{"v":"VER"}}]}`,
		"in finally":     `{"type":"group","steps":[],"finally":[` + gate + `,{"command":"test/echo","params":{"v":"VER"}}]}`,
		"onFailure":      `{"type":"group","onError":"skip","steps":[` + gate + `,{"type":"fail","message":"VER"}],"onFailure":[{"command":"test/echo","params":{"v":"$result.error.message"}}]}`,
		"http":           `{"type":"group","steps":[` + gate + `,` + request + `]}`,
	} {
		t.Run(name, func(t *testing.T) {
			def := func(version string) string {
				return strings.ReplaceAll(`{"id":"ed","name":"ed","steps":[`+construct+`,{"command":"test/echo","params":{"end":"VER"}}],
					"finally":[{"command":"test/echo","params":{"finally":"VER"}}],"loop":{"type":"count","max":2}}`, "VER", version)
			}
			s := &scriptedHost{Commands: map[string][]response{"http/request": {{Result: json.RawMessage(`{"status":200,"headers":{},"body":"","url":"http://service.test/"}`)}}}}
			rt := openBuiltin(t, store.NewMemory(), runtime.Options{Commands: s})
			save := func(version string) *sentinels.Definition {
				d := decode(t, rt, def(version))
				if _, err := rt.Save(within(t), d, -1); err != nil {
					t.Fatal(err)
				}
				return d
			}
			counts := func() string {
				calls := strings.Join(s.happened(), "\n")
				of := func(version string) int {
					return strings.Count(calls, `"v":"`+version+`"`) + strings.Count(calls, "service.test/"+version)
				}
				return fmt.Sprint("v1 ", of("v1"), ", v2 ", of("v2"), ", finally ", strings.Count(calls, `{"finally":"v2"}`), " of ", strings.Count(calls, `"finally"`))
			}
			approve := func(id sentinels.RunID, iteration int) {
				until(t, fmt.Sprint("the question of iteration ", iteration), func() bool {
					info := status(t, rt, id)
					return info.Iteration == iteration && len(info.Decisions) == 1
				})
				if q := status(t, rt, id).Decisions[0]; q.Deadline.IsZero() {
					t.Errorf("the question has no deadline: %+v", q)
				}
				if err := rt.Decide(within(t), id, runtime.Decision{Verdict: "approve", By: "ann"}); err != nil {
					t.Fatal(err)
				}
			}
			once := map[string]int{"items side by side": 3, "named branches": 2}[name]
			once = max(once, 1)
			id, err := rt.Start(within(t), save("v1"), runtime.StartOptions{Workspace: "/w", Revision: 1})
			if err != nil {
				t.Fatal(err)
			}
			until(t, "the first question", func() bool { return len(status(t, rt, id).Decisions) == 1 })
			save("v2")
			approve(id, 1)
			approve(id, 2)
			if res := wait(t, rt, id); res.Status != sentinels.StatusCompleted {
				t.Fatalf("%s: %v", res.Status, res.Error)
			}
			if got, want := counts(), fmt.Sprint("v1 ", once, ", v2 ", once, ", finally 1 of 1"); got != want {
				t.Errorf("edited: %s, want %s", got, want)
			}
			behind := fork(t, rt, id, runtime.ForkOptions{Iteration: 2, From: "1"})
			if res := wait(t, rt, behind); res.Status != sentinels.StatusCompleted {
				t.Errorf("fork behind it: %s: %v", res.Status, res.Error)
			}
			if diff := cmp.Diff([]string{"2 0:reused 1:ok end:ok"}, states(t, rt, behind)); diff != "" {
				t.Errorf("fork behind it (-want +got):\n%s", diff)
			}
			if got, want := counts(), fmt.Sprint("v1 ", once, ", v2 ", once, ", finally 2 of 2"); got != want {
				t.Errorf("fork behind it: %s, want %s", got, want)
			}
			again := fork(t, rt, id, runtime.ForkOptions{Iteration: 2, From: "0"})
			approve(again, 2)
			if res := wait(t, rt, again); res.Status != sentinels.StatusCompleted {
				t.Errorf("fork of it: %s: %v", res.Status, res.Error)
			}
			if got, want := counts(), fmt.Sprint("v1 ", once, ", v2 ", 2*once, ", finally 3 of 3"); got != want {
				t.Errorf("fork of it: %s, want %s", got, want)
			}
		})
	}
}

// A fork begins with a step of an iteration: one of the definition's onFailure or finally is refused by its address, id or
// name, and the fork of a run that ended in them executes them again.
func TestForkFromTheEndOfARun(t *testing.T) {
	w := newFakeHost()
	w.fail = func(string, int) error { return &abi.Error{Code: abi.Plugin, Message: "broken"} }
	rt := open(t, w, newRecordingStore(), runtime.Options{})
	const src = `{"id":"e","name":"e","loop":{"type":"once"},"steps":[{"type":"call","command":"world/fail","value":1,"id":"first"}],
		"onFailure":[{"type":"call","command":"world/look","value":2,"id":"why"}],"finally":[{"type":"call","command":"world/look","value":3,"name":"last one"}]}`
	res := runToEnd(t, rt, src, runtime.StartOptions{})
	if res.Status != sentinels.StatusFailed {
		t.Fatal(res.Status, res.Error)
	}
	for from, at := range map[string]string{"end.onFailure.0": "end.onFailure.0", "why": "end.onFailure.0", "last one": "end.finally.0"} {
		_, err := rt.Fork(within(t), res.Run, runtime.ForkOptions{Iteration: 1, From: from})
		if abi.CodeOf(err) != abi.BadFields || !strings.Contains(err.Error(), "it is part of "+at+", in onFailure or finally of the definition") {
			t.Errorf("from %q: %v", from, err)
		}
	}
	id, err := rt.Fork(within(t), res.Run, runtime.ForkOptions{Iteration: 1, From: "first"})
	if err != nil {
		t.Fatal(err)
	}
	if again := wait(t, rt, id); again.Status != sentinels.StatusFailed || again.Finally != nil {
		t.Errorf("%s %v, finally %v", again.Status, again.Error, again.Finally)
	}
	trace, err := rt.Trace(id)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := json.Marshal(trace); err != nil || strings.Count(string(text), `"address":"end.onFailure.0"`) != 1 || strings.Count(string(text), `"address":"end.finally.0"`) != 1 {
		t.Errorf("%v: %s", err, text)
	}
}
