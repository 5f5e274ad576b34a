package runtime_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

func hasCall(label string) func(*journal.Record) bool {
	return func(r *journal.Record) bool { return r.CallStart != nil && r.CallStart.Label == label }
}

const oneAct = `{"name":"d","steps":[{"type":"call","command":"world/act","value":7,"outputTo":"a"}],"loop":{"type":"once"}}`

// cutOff is what a crash leaves that comes while the first call of label is
// under way.
func cutOff(t *testing.T, src, label string, opt runtime.StartOptions) (*recordingStore, sentinels.RunID) {
	t.Helper()
	f := newRecordingStore()
	rt := open(t, newFakeHost(), f, runtime.Options{})
	id := start(t, rt, src, opt)
	wait(t, rt, id)
	rt.Close()
	return f.prefix(t, f.after(t, 1, hasCall(label))), id
}

func decide(t testing.TB, rt *runtime.Runtime, id sentinels.RunID, d runtime.Decision) {
	t.Helper()
	if err := rt.Decide(within(t), id, d); err != nil {
		t.Fatal(err)
	}
}

// For a call that a crash interrupted the run waits for a decision, lists it, and
// follows it.
func TestDoubtIsAsked(t *testing.T) {
	tests := []struct {
		verdict string
		result  string
		status  sentinels.Status
		effects int
		a       string
	}{
		{"retry", "", sentinels.StatusCompleted, 1, `{"success":true,"value":7}`},
		{"skip", `{"value":8}`, sentinels.StatusCompleted, 0, `{"value":8}`},
		{"skip", "", sentinels.StatusCompleted, 0, `null`},
		{"fail", "", sentinels.StatusFailed, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.verdict+tt.result, func(t *testing.T) {
			db, id := cutOff(t, oneAct, "world/act", runtime.StartOptions{})
			w := newFakeHost()
			rt := reopen(t, w, db, id, runtime.Options{}, runtime.ResumeOptions{})
			info := untilStatus(t, rt, id, sentinels.StatusWaiting)
			if len(info.Decisions) != 1 || info.Decisions[0].Kind != runtime.DecisionDoubt || !strings.Contains(info.Decisions[0].Prompt, "world/act") {
				t.Fatalf("decisions %+v; want one doubt that names the command", info.Decisions)
			}
			if err := rt.Decide(within(t), id, runtime.Decision{Verdict: "approve"}); abi.CodeOf(err) != abi.BadFields {
				t.Errorf("approve was taken for an answer: %v", err)
			}
			decide(t, rt, id, runtime.Decision{Verdict: tt.verdict, By: "ann", Result: json.RawMessage(tt.result)})
			res := wait(t, rt, id)
			if res.Status != tt.status || len(w.made) != tt.effects {
				t.Errorf("%s with %d effects, want %s with %d", res.Status, len(w.made), tt.status, tt.effects)
			}
			if tt.a != "" && string(res.Variables["a"]) != tt.a {
				t.Errorf("a = %s, want %s", res.Variables["a"], tt.a)
			}
			if tt.verdict == "fail" && (res.Error == nil || res.Error.Code != abi.Interrupted || res.Step != "0") {
				t.Errorf("error %v at step %q, want interrupted at 0", res.Error, res.Step)
			}
			trace, err := rt.Trace(id)
			if err != nil {
				t.Fatal(err)
			}
			if got := trace.Iterations[0].Steps[0].Attempts[0].Calls[0].Decided; got != tt.verdict {
				t.Errorf("the trace says decided %q, want %q", got, tt.verdict)
			}
			if err := rt.Decide(within(t), id, runtime.Decision{Verdict: tt.verdict}); abi.CodeOf(err) != abi.Conflict {
				t.Errorf("decided twice: %v", err)
			}
		})
	}
}

// Who decides without a person: the step, else the definition, else how the run
// was started or resumed, else the host.
func TestDoubtPolicies(t *testing.T) {
	with := func(step, safety string) string {
		src := oneAct
		if step != "" {
			src = strings.Replace(src, `"value":7`, `"value":7,"onInterrupt":"`+step+`"`, 1)
		}
		if safety != "" {
			src = strings.Replace(src, `"loop"`, `"safety":{"onInterrupt":"`+safety+`"},"loop"`, 1)
		}
		return src
	}
	const retry, fail, ask = sentinels.InterruptRetry, sentinels.InterruptFail, sentinels.InterruptAsk
	tests := []struct {
		name, step, safety  string
		resume, begin, host sentinels.Interrupt
		want                sentinels.Status
	}{
		{"step first", "retry", "fail", fail, fail, fail, sentinels.StatusCompleted},
		{"then the definition", "", "fail", retry, retry, retry, sentinels.StatusFailed},
		{"then the resume", "", "", retry, fail, fail, sentinels.StatusCompleted},
		{"then the start", "", "", "", retry, fail, sentinels.StatusCompleted},
		{"then the host", "", "", "", "", fail, sentinels.StatusFailed},
		{"step asks", "ask", "retry", retry, retry, retry, sentinels.StatusWaiting},
		{"no rule", "", "", "", "", "", sentinels.StatusWaiting},
		{"ask is no silence", "", "", ask, retry, retry, sentinels.StatusWaiting},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			db, id := cutOff(t, with(tt.step, tt.safety), "world/act", runtime.StartOptions{OnInterrupt: tt.begin})
			rt := reopen(t, newFakeHost(), db, id, runtime.Options{OnInterrupt: tt.host}, runtime.ResumeOptions{OnInterrupt: tt.resume})
			if tt.want == sentinels.StatusWaiting {
				untilStatus(t, rt, id, tt.want)
				return
			}
			if res := wait(t, rt, id); res.Status != tt.want {
				t.Errorf("%s, want %s: %v", res.Status, tt.want, res.Error)
			}
		})
	}
}

// A decision about a run that no process executes is kept in its journal, is used
// once, and does not apply to a second crash.
func TestDecisionIsForOneDoubt(t *testing.T) {
	db, id := cutOff(t, oneAct, "world/act", runtime.StartOptions{})
	w := newFakeHost()
	rt := reopen(t, w, db, id, runtime.Options{}, runtime.ResumeOptions{})
	untilStatus(t, rt, id, sentinels.StatusWaiting)
	rt.Close()

	asked := db.prefix(t, db.length())
	rt = open(t, w, asked, runtime.Options{})
	decide(t, rt, id, runtime.Decision{Verdict: "retry", By: "ann"})
	if info := status(t, rt, id); len(info.Decisions) != 0 {
		t.Errorf("still decisions %v", info.Decisions)
	}
	if err := rt.Resume(within(t), id, runtime.ResumeOptions{}); err != nil {
		t.Fatal(err)
	}
	if res := wait(t, rt, id); res.Status != sentinels.StatusCompleted || len(w.made) != 1 {
		t.Errorf("%s with %d effects; want completed with 1", res.Status, len(w.made))
	}
	rt.Close()

	// The process dies again while the call is made again.
	again := asked.prefix(t, asked.after(t, 2, hasCall("world/act")))
	w = newFakeHost()
	rt = reopen(t, w, again, id, runtime.Options{Limits: runtime.Limits{Crashes: 9}}, runtime.ResumeOptions{})
	untilStatus(t, rt, id, sentinels.StatusWaiting)
	if len(w.made) != 0 {
		t.Error("a second doubt was decided by the answer to the first")
	}
}

const approveTwice = `{"name":"ap","steps":[
	{"type":"pause","decision":{"prompt":"go?"},"outputTo":"said"},
	{"type":"call","command":"world/act","value":"$iteration"}],"loop":{"type":"count","max":2},"safety":{"onInterrupt":"retry"}}`

// An approval is for what was asked: it outlives a crash, and it never answers
// the same step of the next pass.
func TestApprovalIsForOneIteration(t *testing.T) {
	f := newRecordingStore()
	w := newFakeHost()
	rt := open(t, w, f, runtime.Options{})
	id := start(t, rt, approveTwice, runtime.StartOptions{})
	untilStatus(t, rt, id, sentinels.StatusWaiting)
	decide(t, rt, id, runtime.Decision{Verdict: "approve", By: "ann"})
	until(t, "the second question", func() bool { i := status(t, rt, id); return i.Iteration == 2 && len(i.Decisions) == 1 })
	rt.Close()

	signal := f.after(t, 1, kind(journal.Signal))
	for n := signal; n < f.after(t, 1, kind(journal.IterationEnd)); n++ {
		rt := reopen(t, newFakeHost(), f.prefix(t, n), id, runtime.Options{}, runtime.ResumeOptions{})
		until(t, "the second question after a crash", func() bool { i := status(t, rt, id); return i.Iteration == 2 && len(i.Decisions) == 1 })
		decide(t, rt, id, runtime.Decision{Verdict: "reject", By: "bob"})
		res := wait(t, rt, id)
		if got := variable(t, res, "said"); !strings.Contains(got, `"reject"`) || !strings.Contains(got, "bob") {
			t.Errorf("crash behind batch %d: the second pass was answered with %s", n, got)
		}
		rt.Close()
	}
}

// A recorded decision counts, also if its caller did not wait.
func TestDecisionOfAnImpatientPerson(t *testing.T) {
	rt := open(t, newFakeHost(), newRecordingStore(), runtime.Options{})
	id := start(t, rt, approveTwice, runtime.StartOptions{})
	untilStatus(t, rt, id, sentinels.StatusWaiting)
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	_ = rt.Decide(gone, id, runtime.Decision{Verdict: "approve", By: "ann"})
	until(t, "the second question", func() bool { i := status(t, rt, id); return i.Iteration == 2 && len(i.Decisions) == 1 })
}

// While a person is asked about a doubt no time limit runs: a step that timed
// out would be tried again, with its call undecided.
func TestDoubtStopsTheClock(t *testing.T) {
	src := strings.Replace(oneAct, `"value":7`, `"value":7,"timeoutMs":150,"onError":{"retry":{"baseDelayMs":1}}`, 1)
	db, id := cutOff(t, src, "world/act", runtime.StartOptions{})
	w := newFakeHost()
	rt := reopen(t, w, db, id, runtime.Options{}, runtime.ResumeOptions{})
	untilStatus(t, rt, id, sentinels.StatusWaiting)
	time.Sleep(300 * time.Millisecond)
	if info := status(t, rt, id); info.Status != sentinels.StatusWaiting || len(w.made) != 0 {
		t.Fatalf("%s with %d effects; want it to wait on", info.Status, len(w.made))
	}
	decide(t, rt, id, runtime.Decision{Verdict: "retry"})
	if res := wait(t, rt, id); res.Status != sentinels.StatusCompleted || len(w.made) != 1 {
		t.Errorf("%s with %d effects; want completed with 1", res.Status, len(w.made))
	}
}

// A model turn in doubt is made again without asking. What the first one may
// have cost is spent, and stays spent over further crashes.
func TestModelTurnInDoubtStaysReserved(t *testing.T) {
	const src = `{"name":"m","steps":[{"type":"talk","prompt":"hi"},{"type":"call","command":"world/act","value":1}],
		"loop":{"type":"once"},"safety":{"onInterrupt":"retry"},"budget":{"tokens":450}}`
	f, id := cutOff(t, src, "world/oracle", runtime.StartOptions{})
	rt := reopen(t, newFakeHost(), f, id, runtime.Options{}, runtime.ResumeOptions{})
	res := wait(t, rt, id)
	rt.Close()
	want := sentinels.Usage{InputTokens: 110, OutputTokens: 105, CostUSD: 0.03, Calls: 2}
	if res.Status != sentinels.StatusCompleted || res.Usage != want {
		t.Errorf("%s with %+v, want completed with %+v", res.Status, res.Usage, want)
	}
	// A crash behind the turn does not forget the first one's price.
	rt = reopen(t, newFakeHost(), f.prefix(t, f.after(t, 1, hasCall("world/act"))), id, runtime.Options{}, runtime.ResumeOptions{})
	if got := wait(t, rt, id).Usage; got != want {
		t.Errorf("after a second crash %+v, want %+v", got, want)
	}
	rt.Close()
	// A crash in the second turn books it a third time, and now it is too much.
	rt = reopen(t, newFakeHost(), f.prefix(t, f.after(t, 2, hasCall("world/oracle"))), id, runtime.Options{}, runtime.ResumeOptions{})
	if got := wait(t, rt, id).Usage; got.Calls != 3 || got.InputTokens != 210 {
		t.Errorf("after a crash in the second turn %+v, want 3 calls and 210 input tokens", got)
	}
}

// Crashes do not count against a step that only waited, or about which a person
// is asked, nor any more against one that came to its end.
func TestNoQuarantine(t *testing.T) {
	crash := func(t *testing.T, f *recordingStore, id sentinels.RunID, at int, opt runtime.Options) *recordingStore {
		t.Helper()
		db := f.prefix(t, at)
		w := newFakeHost()
		w.freeze()
		rt := reopen(t, w, db, id, opt, runtime.ResumeOptions{})
		time.Sleep(5 * time.Millisecond)
		defer rt.Close()
		return db.prefix(t, db.length())
	}
	retry := runtime.Options{OnInterrupt: sentinels.InterruptRetry}
	t.Run("asked", func(t *testing.T) {
		db, id := cutOff(t, oneAct, "world/act", runtime.StartOptions{})
		for range 4 {
			rt := reopen(t, newFakeHost(), db, id, runtime.Options{}, runtime.ResumeOptions{})
			untilStatus(t, rt, id, sentinels.StatusWaiting)
			rt.Close()
			db = db.prefix(t, db.length())
		}
		rt := reopen(t, newFakeHost(), db, id, runtime.Options{}, runtime.ResumeOptions{})
		untilStatus(t, rt, id, sentinels.StatusWaiting)
	})
	t.Run("waiting", func(t *testing.T) {
		f := newRecordingStore()
		rt := open(t, newFakeHost(), f, runtime.Options{})
		id := start(t, rt, `{"name":"w","steps":[{"type":"seq","steps":[{"type":"pause","event":"go"}]}],"loop":{"type":"once"}}`, runtime.StartOptions{})
		until(t, "the wait", func() bool { return f.has(t, hasCall("go")) })
		rt.Close()
		db := f.prefix(t, f.length())
		for range 5 {
			db = crash(t, db, id, db.length(), runtime.Options{})
		}
		rt = reopen(t, newFakeHost(), db, id, runtime.Options{}, runtime.ResumeOptions{})
		if _, err := rt.Emit(within(t), sentinels.Event{Name: "go"}); err != nil {
			t.Fatal(err)
		}
		if res := wait(t, rt, id); res.Status != sentinels.StatusCompleted {
			t.Errorf("%s: %v", res.Status, res.Error)
		}
	})
	t.Run("ended since", func(t *testing.T) {
		const src = `{"name":"p","steps":[{"type":"call","command":"world/act","value":1}],"loop":{"type":"count","max":5}}`
		f := newRecordingStore()
		rt := open(t, newFakeHost(), f, retry)
		id := start(t, rt, src, runtime.StartOptions{})
		wait(t, rt, id)
		rt.Close()
		for n := range 4 { // once in each pass
			f = f.prefix(t, f.after(t, 1, inIteration(n+1, hasCall("world/act"))))
			rt := reopen(t, newFakeHost(), f, id, retry, runtime.ResumeOptions{})
			if res := wait(t, rt, id); res.Status != sentinels.StatusCompleted {
				t.Fatalf("after a crash in pass %d: %s, %v", n+1, res.Status, res.Error)
			}
			rt.Close()
		}
	})
}

// TestDoubtOfInlineChild: an inline definition has what the definition around it says about calls in
// doubt, at any depth, unless it says so itself.
func TestDoubtOfInlineChild(t *testing.T) {
	child := func(safety, step string) string {
		return `{"type":"child","definition":{"name":"kid",` + safety + `"steps":[` + step + `],"loop":{"type":"once"}}}`
	}
	const act = `{"type":"call","command":"world/act","value":7,"outputTo":"a"}`
	parent := func(step string) string {
		return `{"name":"p","safety":{"onInterrupt":"retry"},"steps":[` + step + `],"loop":{"type":"once"}}`
	}
	for name, tt := range map[string]struct {
		src     string
		effects int // the fake step is completed whatever its child is
	}{
		"child":      {parent(child("", act)), 1},
		"grandchild": {parent(child("", child("", act))), 1},
		"its own":    {parent(child(`"safety":{"onInterrupt":"fail"},`, act)), 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newRecordingStore()
			rt := open(t, newFakeHost(), f, runtime.Options{})
			id := start(t, rt, tt.src, runtime.StartOptions{})
			wait(t, rt, id)
			rt.Close()
			w := newFakeHost()
			rt = reopen(t, w, f.prefix(t, f.after(t, 1, hasCall("world/act"))), id, runtime.Options{}, runtime.ResumeOptions{})
			if res := wait(t, rt, id); res.Status != sentinels.StatusCompleted || len(w.made) != tt.effects {
				t.Errorf("%s with %d effects, %v; want %d", res.Status, len(w.made), res.Error, tt.effects)
			}
		})
	}
}
