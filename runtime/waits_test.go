package runtime_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// crashIn starts src and lets the process die once a record that fits is
// durable. edit may change what the crash leaves.
func crashIn(t *testing.T, src string, fits func(*journal.Record) bool, edit func(db *recordingStore, id string) error) (*recordingStore, sentinels.RunID) {
	t.Helper()
	f, w := newRecordingStore(), newFakeHost()
	rt := open(t, w, f, runtime.Options{})
	id := start(t, rt, src, runtime.StartOptions{})
	until(t, "the moment of the crash", func() bool { return f.has(t, fits) })
	w.freeze()
	rt.Close()
	db := f.prefix(t, f.after(t, 1, fits))
	if edit != nil {
		if err := edit(db, string(id)); err != nil {
			t.Fatal(err)
		}
	}
	return db, id
}

func waiting(r *journal.Record) bool {
	return r.CallStart != nil && r.CallStart.Function == abi.FuncWait
}

func downFor(d time.Duration) func(*recordingStore, string) error {
	return func(db *recordingStore, id string) error { return runtime.ShiftJournal(db, id, -d) }
}

// What is calendar time goes on while the host is down.
func TestCalendarTimeGoesOnWhileDown(t *testing.T) {
	tests := map[string]struct {
		src  string
		fits func(*journal.Record) bool
	}{
		"a wait": {`{"name":"w","steps":[{"type":"pause","durationMs":3600000,"timeoutMs":7200000},{"type":"call","command":"world/act","value":1,"outputTo":"a"}],"loop":{"type":"once"}}`, waiting},
		"a retry delay": {`{"name":"r","steps":[{"type":"call","command":"world/flaky","value":1,"onError":{"retry":{"baseDelayMs":3600000,"maxDelayMs":3600000}},"outputTo":"a"}],"loop":{"type":"once"}}`,
			kind(journal.Retry)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			db, id := crashIn(t, tt.src, tt.fits, downFor(2*time.Hour))
			rt := reopen(t, newFakeHost(), db.Memory, id, runtime.Options{}, runtime.ResumeOptions{})
			if res := wait(t, rt, id); res.Status != sentinels.StatusCompleted {
				t.Errorf("%s: %v", res.Status, res.Error)
			}
		})
		t.Run(name+" that is not due", func(t *testing.T) {
			db, id := crashIn(t, tt.src, tt.fits, downFor(time.Minute))
			w := newFakeHost()
			rt := reopen(t, w, db.Memory, id, runtime.Options{}, runtime.ResumeOptions{})
			time.Sleep(50 * time.Millisecond)
			if info := status(t, rt, id); info.Status != sentinels.StatusRunning || len(w.made) != 0 {
				t.Errorf("%s with %d effects, want it to wait on", info.Status, len(w.made))
			}
		})
	}
}

// An event that is emitted while no process executes the run is not missed.
func TestEventWhileDown(t *testing.T) {
	const src = `{"name":"e","steps":[{"type":"pause","event":"git:*","outputTo":"e"},{"type":"pause","event":"git:*","outputTo":"f"}],"loop":{"type":"once"}}`
	db, id := crashIn(t, src, waiting, nil)
	rt := open(t, newFakeHost(), db, runtime.Options{})
	for _, n := range []string{"1", "2"} {
		if _, err := rt.Emit(within(t), sentinels.Event{Name: "git:push", Data: json.RawMessage(`{"n":` + n + `}`)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := rt.Resume(within(t), id, runtime.ResumeOptions{}); err != nil {
		t.Fatal(err)
	}
	res := wait(t, rt, id)
	if e, f := variable(t, res, "e"), variable(t, res, "f"); !strings.Contains(e, `"n":1`) || !strings.Contains(f, `"n":2`) {
		t.Errorf("saw %s and %s", e, f)
	}
}

// Limits of runs and steps count the time in which the host was up: a crash
// neither restarts them nor uses them up.
func TestLimitsOverACrash(t *testing.T) {
	const runLimit = `{"name":"l","steps":[{"type":"pause","event":"go"}],"loop":{"type":"once"},"timeoutMs":60000}`
	const stepLimit = `{"name":"l","steps":[{"type":"seq","timeoutMs":60000,"steps":[{"type":"pause","event":"go"}]}],"loop":{"type":"once"}}`
	used := func(d time.Duration) func(*recordingStore, string) error {
		return func(db *recordingStore, id string) error {
			return runtime.EditJournal(db, id, func(r *journal.Record) {
				if waiting(r) {
					r.Elapsed += d.Microseconds()
				}
			})
		}
	}
	tests := []struct {
		name, src, limit string
		status           sentinels.Status
	}{{"run", runLimit, "timeoutMs", sentinels.StatusTimedOut}, {"step", stepLimit, "", sentinels.StatusFailed}}
	for _, tt := range tests {
		t.Run(tt.name+" is not reset", func(t *testing.T) {
			db, id := crashIn(t, tt.src, waiting, used(60*time.Second))
			rt := reopen(t, newFakeHost(), db.Memory, id, runtime.Options{}, runtime.ResumeOptions{})
			res := wait(t, rt, id)
			if res.Status != tt.status || res.Reason != tt.limit || res.Error == nil || res.Error.Code != abi.Timeout {
				t.Errorf("%s at limit %q with %v, want %s at %q", res.Status, res.Reason, res.Error, tt.status, tt.limit)
			}
		})
		t.Run(tt.name+" is not burned", func(t *testing.T) {
			db, id := crashIn(t, tt.src, waiting, downFor(24*time.Hour))
			rt := reopen(t, newFakeHost(), db.Memory, id, runtime.Options{}, runtime.ResumeOptions{})
			if _, err := rt.Emit(within(t), sentinels.Event{Name: "go"}); err != nil {
				t.Fatal(err)
			}
			if res := wait(t, rt, id); res.Status != sentinels.StatusCompleted {
				t.Errorf("%s: %v", res.Status, res.Error)
			}
		})
	}
}

// A background process that died with the host puts the call that started it in
// doubt, though that has its answer.
func TestInterruptedExecution(t *testing.T) {
	const src = `{"name":"x","steps":[{"type":"call","command":"world/spawn","value":1,"outputTo":"x"},{"type":"pause","event":"go"}],"loop":{"type":"once"}}`
	tests := []struct {
		verdict  string
		policy   sentinels.Interrupt
		status   sentinels.Status
		restarts int
	}{
		{"retry", "", sentinels.StatusCompleted, 1},
		{"skip", "", sentinels.StatusCompleted, 0},
		{"fail", "", sentinels.StatusFailed, 0},
		{"", sentinels.InterruptRetry, sentinels.StatusCompleted, 1},
		{"", sentinels.InterruptFail, sentinels.StatusFailed, 0},
	}
	for _, tt := range tests {
		t.Run(tt.verdict+string(tt.policy), func(t *testing.T) {
			db, id := crashIn(t, src, waiting, nil)
			w := newFakeHost()
			w.cut = []runtime.InterruptedExecution{{Execution: "x1", Path: "0"}}
			rt := reopen(t, w, db, id, runtime.Options{}, runtime.ResumeOptions{OnInterrupt: tt.policy})
			if tt.verdict != "" {
				info := untilStatus(t, rt, id, sentinels.StatusWaiting)
				if len(info.Decisions) != 1 || !strings.Contains(info.Decisions[0].Prompt, "step 0") {
					t.Fatalf("decisions %+v", info.Decisions)
				}
				decide(t, rt, id, runtime.Decision{Verdict: tt.verdict})
			}
			if _, err := rt.Emit(within(t), sentinels.Event{Name: "go"}); err != nil {
				t.Fatal(err)
			}
			res := wait(t, rt, id)
			if res.Status != tt.status || len(w.made) != tt.restarts || w.ended != 1 {
				t.Errorf("%s, %d restarts, processes ended %d times; want %s, %d, 1", res.Status, len(w.made), w.ended, tt.status, tt.restarts)
			}
			if tt.verdict != "retry" {
				return
			}
			rt.Close()
			// The next crash is a new doubt.
			again := db.prefix(t, db.after(t, 1, func(r *journal.Record) bool { return r.Signal != nil && r.Signal.Type == "taken" }))
			w = newFakeHost()
			w.cut = []runtime.InterruptedExecution{{Execution: "x1", Path: "0"}}
			rt = reopen(t, w, again, id, runtime.Options{}, runtime.ResumeOptions{})
			untilStatus(t, rt, id, sentinels.StatusWaiting)
		})
	}
}

// Records of old passes go; a crash does not need them and the trace shows what
// is left.
func TestRetention(t *testing.T) {
	const src = `{"name":"k","steps":[{"type":"call","command":"world/act","value":"$iteration","outputTo":"a"},{"type":"pause","durationMs":0}],"loop":{"type":"count","max":12}}`
	for name, limits := range map[string]runtime.Limits{"iterations": {KeepIterations: 2}, "bytes": {KeepBytes: 2500}} {
		t.Run(name, func(t *testing.T) {
			opt := runtime.Options{Limits: limits, OnInterrupt: sentinels.InterruptRetry}
			f := newRecordingStore()
			rt := open(t, newFakeHost(), f, opt)
			id := start(t, rt, src, runtime.StartOptions{})
			wait(t, rt, id)
			check := func(rt *runtime.Runtime) {
				t.Helper()
				trace, err := rt.Trace(id)
				if err != nil {
					t.Fatal(err)
				}
				n := len(trace.Iterations)
				if n == 0 || n > 4 || trace.Iterations[n-1].Number != 12 {
					t.Errorf("the trace has %d passes, the last of them %+v", n, trace.Iterations)
				}
				for _, it := range trace.Iterations {
					if !it.Done || len(it.Steps) != 2 {
						t.Errorf("pass %d is done %t with %d steps", it.Number, it.Done, len(it.Steps))
					}
				}
			}
			check(rt)
			rt.Close()
			for n := f.after(t, 1, inIteration(7, kind(journal.IterationStart))); n <= f.after(t, 1, inIteration(9, kind(journal.IterationStart))); n++ {
				rt := reopen(t, newFakeHost(), f.prefix(t, n), id, opt, runtime.ResumeOptions{})
				res := wait(t, rt, id)
				if got := variable(t, res, "a"); res.Iterations != 12 || !strings.Contains(got, `"value":12`) {
					t.Errorf("crash behind batch %d: %d passes, a = %s", n, res.Iterations, got)
				}
				check(rt)
				rt.Close()
			}
		})
	}
}
