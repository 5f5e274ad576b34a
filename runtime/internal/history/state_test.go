package history_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

func value(text string) journal.Value { return journal.Value{JSON: json.RawMessage(text)} }

func runStart() *journal.Record {
	return &journal.Record{Kind: journal.RunStart, RunStart: &journal.RunStartBody{
		Sentinel: "s", Definition: value(`{"id":"s"}`), Revision: 1, Variables: map[string]json.RawMessage{"input": json.RawMessage("1")}}}
}

func iterationStart(n int) *journal.Record {
	return &journal.Record{Kind: journal.IterationStart, IterationStart: &journal.IterationStartBody{Iteration: n, Revision: 1}}
}

func iterationEnd(n int) *journal.Record {
	return &journal.Record{Kind: journal.IterationEnd, IterationEnd: &journal.IterationEndBody{
		Iteration: n, Revision: 1, Variables: map[string]journal.Value{"input": value("1"), "n": value("2")}, Last: value("3"),
		Usage: sentinels.Usage{Calls: 4}, Cursors: map[string]uint64{"p": 5}}}
}

func step(path string, attempts []int, rec *journal.Record) *journal.Record {
	rec.Path, rec.Attempts = path, attempts
	switch {
	case rec.StepStart != nil:
		rec.Kind = journal.StepStart
	case rec.StepEnd != nil:
		rec.Kind = journal.StepEnd
	case rec.CallStart != nil:
		rec.Kind = journal.CallStart
	case rec.CallEnd != nil:
		rec.Kind = journal.CallEnd
	case rec.Retry != nil:
		rec.Kind = journal.Retry
	case rec.Checkpoint != nil:
		rec.Kind = journal.Checkpoint
	}
	return rec
}

func apply(t *testing.T, records ...*journal.Record) *history.State {
	t.Helper()
	st := &history.State{}
	for i, rec := range records {
		if err := st.Apply(uint64(i+1), rec); err != nil {
			t.Fatalf("record %d: %v", i+1, err)
		}
	}
	return st
}

// parallelBlock is the start of a block of two branches in step 0 and what each of
// them sets.
func parallelBlock() []*journal.Record {
	return []*journal.Record{
		runStart(), iterationStart(1),
		step("0", []int{1}, &journal.Record{StepStart: &journal.StepStartBody{Type: "parallel"}}),
		step("0", []int{1}, &journal.Record{CallStart: &journal.CallStartBody{Seq: 1, Function: abi.FuncBlock, Block: 3, Branches: []map[string]json.RawMessage{
			{"item": json.RawMessage(`"a"`)}, {"item": json.RawMessage(`"b"`)}}}}),
		step("0#3.steps.0", []int{1, 0}, &journal.Record{StepEnd: &journal.StepEndBody{Output: value(`"A"`), OutputTo: "first"}}),
		step("0#4.steps.0", []int{1, 0}, &journal.Record{StepEnd: &journal.StepEndBody{Output: value(`"B"`), OutputTo: "second"}}),
	}
}

func TestBranches(t *testing.T) {
	records := parallelBlock()
	st := apply(t, records...)
	if len(st.Branches) != 2 {
		t.Fatalf("got %d open branches", len(st.Branches))
	}
	if _, ok := st.Scope.Variables["first"]; ok {
		t.Error("a branch wrote to the scope of the run before the block ended")
	}
	a := st.ScopeOf("0#3.steps.0", []int{1, 0})
	if string(a.Variables["item"].JSON) != `"a"` || string(a.Variables["first"].JSON) != `"A"` || !a.Variables["second"].Empty() {
		t.Errorf("the first branch has %v", a.Variables)
	}
	st = apply(t, append(records, step("0", []int{1}, &journal.Record{CallEnd: &journal.CallEndBody{Seq: 1, Blocks: 2, Joined: []int{1}}}))...)
	want := map[string]journal.Value{"input": value("1"), "item": value(`"b"`), "second": value(`"B"`)}
	if diff := cmp.Diff(want, st.Scope.Variables); diff != "" || len(st.Branches) != 0 {
		t.Errorf("%d open branches; variables (-want +got):\n%s", len(st.Branches), diff)
	}
}

// TestAttempts: a nested step that failed belongs to the attempt of the step around
// it, and the next attempt does not see it.
func TestAttempts(t *testing.T) {
	failed := &abi.Error{Code: abi.Timeout, Message: "m"}
	st := apply(t, runStart(), iterationStart(1),
		step("0", []int{1}, &journal.Record{StepStart: &journal.StepStartBody{Type: "loop"}}),
		step("0#0.steps.0", []int{1, 0}, &journal.Record{StepEnd: &journal.StepEndBody{Error: failed}}),
		step("0", []int{1}, &journal.Record{Retry: &journal.RetryBody{Error: failed, Due: 9}}),
	)
	e := st.Executions.Get("0", nil)
	if e == nil || e.Attempt != nil || e.Retry.Due != 9 || e.Failed != failed {
		t.Errorf("got %+v", e)
	}
	if st.Executions.Get("0#0.steps.0", []int{2}) != nil {
		t.Error("the nested step of attempt 1 is one of attempt 2")
	}
	if st.FailedStep != "0.steps.0" {
		t.Errorf("failed step %q", st.FailedStep)
	}
	if err := st.Apply(6, step("0", []int{0}, &journal.Record{StepEnd: &journal.StepEndBody{Output: value("1")}})); err != nil || st.FailedStep != "" {
		t.Errorf("failed step %q, %v", st.FailedStep, err)
	}
}

// TestReservations: a model call in doubt counts as spent when it is made again, and
// when a person decides about it without making it again.
func TestReservations(t *testing.T) {
	start := func() *journal.Record {
		return step("0", []int{1}, &journal.Record{CallStart: &journal.CallStartBody{Seq: 1, Function: abi.FuncLLM, Reserved: &sentinels.Usage{Calls: 1, CostUSD: 2}}})
	}
	again := apply(t, runStart(), iterationStart(1), start(), start(),
		step("0", []int{1}, &journal.Record{CallEnd: &journal.CallEndBody{Seq: 1, Usage: &sentinels.Usage{Calls: 1, CostUSD: 0.5}}}))
	if want := (sentinels.Usage{Calls: 2, CostUSD: 2.5}); again.Usage != want {
		t.Errorf("made again: %+v, want %+v", again.Usage, want)
	}
	skipped := apply(t, runStart(), iterationStart(1), start(),
		step("0", []int{1}, &journal.Record{CallEnd: &journal.CallEndBody{Seq: 1, Decided: "skip"}}))
	if want := (sentinels.Usage{Calls: 1, CostUSD: 2}); skipped.Usage != want {
		t.Errorf("skipped: %+v, want %+v", skipped.Usage, want)
	}
}

func TestDecisions(t *testing.T) {
	name := history.CallName("0", 1)
	decision := &journal.Record{Kind: journal.Signal, Signal: &journal.SignalBody{Type: "decision", Call: name, Verdict: "approve"}}
	open := func() *history.State { return apply(t, runStart(), iterationStart(1), decision) }
	for what, rec := range map[string]*journal.Record{
		"start":         step("0", []int{1}, &journal.Record{CallStart: &journal.CallStartBody{Seq: 1}}),
		"end":           step("0", []int{1}, &journal.Record{CallEnd: &journal.CallEndBody{Seq: 1}}),
		"used":          {Kind: journal.Signal, Signal: &journal.SignalBody{Type: history.SignalUsed, Call: name}},
		"iteration end": iterationEnd(1),
	} {
		st := open()
		if st.Decisions[name] == nil {
			t.Fatal("the decision is not there")
		}
		if err := st.Apply(4, rec); err != nil || st.Decisions[name] != nil {
			t.Errorf("%s: %v, decision %v is still there", what, err, st.Decisions[name])
		}
	}
}

func TestForkStart(t *testing.T) {
	rec := runStart()
	rec.RunStart.Fork = &journal.Fork{Run: "other", Iteration: 3, Variables: map[string]journal.Value{"x": value("7")}, Last: value("8"), Cursors: map[string]uint64{"p": 2}}
	st := apply(t, rec)
	if st.Iteration != 2 || string(st.Scope.Variables["x"].JSON) != "7" || string(st.Scope.Last.JSON) != "8" || st.Cursors["p"] != 2 || len(st.Scope.Variables) != 1 {
		t.Errorf("got %+v with %+v", st, st.Scope)
	}
}

// TestHole: retention removes the records between the first one and a later iteration.
func TestHole(t *testing.T) {
	st := apply(t, runStart())
	if !st.Complete() {
		t.Error("a run that has only started is incomplete")
	}
	if err := st.Apply(20, iterationStart(4)); err != nil || st.Complete() {
		t.Errorf("behind a hole: %v, complete %v", err, st.Complete())
	}
	if err := st.Apply(21, step("0", []int{0}, &journal.Record{StepEnd: &journal.StepEndBody{Output: value("9"), OutputTo: "x"}})); err != nil || !st.Scope.Variables["x"].Empty() {
		t.Errorf("a record of an iteration that is not known as a whole was applied: %v", err)
	}
	if err := st.Apply(22, iterationEnd(4)); err != nil || !st.Complete() || st.Iteration != 4 || string(st.Scope.Variables["n"].JSON) != "2" || st.Usage.Calls != 4 {
		t.Errorf("%v, complete %v, %+v", err, st.Complete(), st)
	}
}

func TestGaps(t *testing.T) {
	for what, test := range map[string]struct {
		before []*journal.Record
		seq    uint64
		rec    *journal.Record
	}{
		"no start":       {nil, 1, iterationStart(1)},
		"start missing":  {nil, 2, runStart()},
		"in the middle":  {[]*journal.Record{runStart(), iterationStart(1)}, 4, iterationEnd(1)},
		"the same again": {[]*journal.Record{runStart(), iterationStart(1)}, 2, iterationEnd(1)},
	} {
		var gap *history.GapError
		if err := apply(t, test.before...).Apply(test.seq, test.rec); !errors.As(err, &gap) || gap.Seq != test.seq || gap.After != uint64(len(test.before)) {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

func TestRecordErrors(t *testing.T) {
	for what, rec := range map[string]*journal.Record{
		"a second start":     runStart(),
		"no path":            step("", nil, &journal.Record{StepEnd: &journal.StepEndBody{}}),
		"block not started":  step("0", []int{1}, &journal.Record{CallEnd: &journal.CallEndBody{Seq: 1, Blocks: 2, Joined: []int{0}}}),
		"wait not started":   step("0", []int{1}, &journal.Record{CallEnd: &journal.CallEndBody{Seq: 1, EventSeq: 3}}),
		"without an attempt": step("0", nil, &journal.Record{StepStart: &journal.StepStartBody{}}),
	} {
		var bad *history.RecordError
		if err := apply(t, runStart(), iterationStart(1)).Apply(3, rec); !errors.As(err, &bad) || bad.Seq != 3 {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

func TestAddress(t *testing.T) {
	for path, want := range map[string]string{"0": "0", "2#11.steps.0": "2.steps.0", "0#1.then.3#0.steps.4": "0.then.3.steps.4"} {
		if got := sentinels.PathAddress(path); got != want {
			t.Errorf("%s: got %s", path, got)
		}
	}
}

// FuzzApply applies any sequence of records that can be decoded: it ends with a state
// or an error, never with a panic.
func FuzzApply(f *testing.F) {
	seed := append(parallelBlock(), step("0", []int{1}, &journal.Record{CallEnd: &journal.CallEndBody{Seq: 1, Blocks: 2, Joined: []int{0, 1}}}), iterationEnd(1))
	var text []byte
	for _, rec := range seed {
		b, err := journal.Encode(rec)
		if err != nil {
			f.Fatal(err)
		}
		text = append(append(text, b...), '\n')
	}
	f.Add(text)
	f.Add([]byte(`{"v":1,"k":"run.start","rs":{"fork":{"n":3}}}` + "\n" + `{"v":1,"k":"iteration.start","is":{"n":3}}` + "\n" + `{"v":1,"k":"call.end","p":"0#","a":[1,1],"ce":{"n":1,"set":{"x":1}}}`))
	f.Add([]byte(`{"v":1,"k":"run.start","rs":{}}` + "\n" + `{"v":1,"k":"iteration.end","ie":{}}` + "\n" + `{"v":1,"k":"signal","si":{"call":"0!1"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		st := &history.State{}
		seq := uint64(0)
		d := json.NewDecoder(bytes.NewReader(text))
		for {
			var raw json.RawMessage
			if d.Decode(&raw) != nil {
				return
			}
			seq++
			rec, err := journal.Decode(raw)
			if err != nil {
				continue
			}
			if err := st.Apply(seq, rec); err != nil {
				return
			}
			if st.Scope == nil || st.Complete() && st.Open == (st.Executions == nil) {
				t.Fatalf("after %s: %+v", raw, st)
			}
		}
	})
}

// TestFailedStepOfEnds: a failure in onFailure or finally does not take the place of the error that it is about.
func TestFailedStepOfEnds(t *testing.T) {
	for address, want := range map[string]string{
		"1.steps.0": "1.steps.0", "1.onFailure.0": "", "1.finally.2.then.0": "", "1.steps.0.onFailure.0.steps.1": "",
		"1.branches.onFailure.0": "1.branches.onFailure.0",
	} {
		if got := history.FailedStep("", address, true); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}
