package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// gated is a sentinel with the id "g" whose passes each wait for the event "go".
func gated(value string, passes int) string {
	return fmt.Sprintf(`{"id":"g","name":"g","steps":[{"type":"pause","event":"go"},
		{"type":"call","command":"world/act","value":%q,"outputTo":"a"}],"loop":{"type":"count","max":%d}}`, value, passes)
}

// says is an edit that has the second step say value.
func says(value string) func(*sentinels.Definition) (*sentinels.Definition, error) {
	return func(d *sentinels.Definition) (*sentinels.Definition, error) {
		step := d.Steps[1]
		step.Fields = map[string]json.RawMessage{"command": json.RawMessage(`"world/act"`), "value": json.RawMessage(fmt.Sprintf("%q", value))}
		return d.ReplaceStep("1", step)
	}
}

// passes describes what each pass of a run used: revision, edit and what its
// second step said.
func passes(t testing.TB, rt *runtime.Runtime, id sentinels.RunID) []string {
	t.Helper()
	trace, err := rt.Trace(id)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, it := range trace.Iterations {
		said := "-"
		if len(it.Steps) > 1 && len(it.Steps[1].Attempts) > 0 {
			var f struct{ Value any }
			if err := json.Unmarshal(it.Steps[1].Attempts[0].Fields, &f); err != nil {
				t.Fatal(err)
			}
			said = fmt.Sprint(f.Value)
		}
		out = append(out, fmt.Sprintf("%d: revision %d edit %d says %s", it.Number, it.Revision, it.Edit, said))
	}
	return out
}

// resumeRestored lets every run make one more pass.
func goOn(t testing.TB, rt *runtime.Runtime, ids ...sentinels.RunID) {
	t.Helper()
	before := map[sentinels.RunID]int{}
	for _, id := range ids {
		until(t, "the wait of "+string(id), func() bool {
			tr, err := rt.Trace(id)
			if err != nil || len(tr.Iterations) == 0 {
				return false
			}
			last := tr.Iterations[len(tr.Iterations)-1]
			return len(last.Steps) == 1 && len(last.Steps[0].Attempts) == 1 && len(last.Steps[0].Attempts[0].Calls) == 1
		})
		before[id] = status(t, rt, id).Iteration
	}
	if _, err := rt.Emit(within(t), sentinels.Event{Name: "go"}); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		until(t, "the next pass of "+string(id), func() bool {
			info := status(t, rt, id)
			return info.Status.Final() || info.Iteration > before[id]
		})
	}
}

func startStored(t testing.TB, rt *runtime.Runtime, s runtime.Stored, opt runtime.StartOptions) sentinels.RunID {
	t.Helper()
	def, err := rt.Decoded(s)
	if err != nil {
		t.Fatal(err)
	}
	opt.Revision = s.Revision
	id, err := rt.Start(within(t), def, opt)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func same(t testing.TB, what string, got, want []string) {
	t.Helper()
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

// An edit of a run concerns that run alone, from its next pass on, whatever
// becomes of the stored sentinel.
func TestEditRun(t *testing.T) {
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{})
	ctx := within(t)
	stored := save(t, rt, gated("one", 4), runtime.SaveOptions{})
	edited, other := startStored(t, rt, stored, runtime.StartOptions{}), startStored(t, rt, stored, runtime.StartOptions{})
	pinned := startStored(t, rt, stored, runtime.StartOptions{Pinned: true})
	goOn(t, rt, edited, other, pinned)
	for _, id := range []sentinels.RunID{edited, pinned} {
		e, err := rt.EditRun(ctx, id, runtime.EditRunOptions{By: "ann"}, says("own"))
		if err != nil || e.Edit != 1 || e.Revision != 1 || e.Hash == stored.Hash {
			t.Fatalf("edit %+v, %v", e, err)
		}
	}
	if s := save(t, rt, gated("two", 4), runtime.SaveOptions{Expect: 1}); s.Revision != 2 {
		t.Fatalf("revision %d", s.Revision)
	}
	goOn(t, rt, edited, other, pinned)
	if e, err := rt.EditRun(ctx, edited, runtime.EditRunOptions{}, says("again")); err != nil || e.Edit != 2 {
		t.Fatalf("edit %+v, %v", e, err)
	}
	if _, err := rt.EditRun(ctx, edited, runtime.EditRunOptions{}, says("$iteration")); err != nil {
		t.Fatal(err)
	}
	goOn(t, rt, edited, other, pinned)
	v, err := rt.RunDefinition(edited)
	if err != nil || v.Revision != 1 || v.Edit != 3 || string(v.Definition.Steps[1].Fields["value"]) != `"$iteration"` {
		t.Errorf("the run's definition is %+v, %v", v, err)
	}
	if err := rt.Delete(ctx, "g", 2); err != nil {
		t.Fatal(err)
	}
	goOn(t, rt, edited, other, pinned)
	for _, id := range []sentinels.RunID{edited, other, pinned} {
		wait(t, rt, id)
	}
	// The second pass had begun when the edits came, so it is untouched.
	same(t, "the edited run", passes(t, rt, edited), []string{"1: revision 1 edit 0 says one", "2: revision 1 edit 0 says one", "3: revision 1 edit 1 says own", "4: revision 1 edit 3 says 4"})
	same(t, "the other run", passes(t, rt, other), []string{"1: revision 1 edit 0 says one", "2: revision 1 edit 0 says one", "3: revision 2 edit 0 says two", "4: revision 2 edit 0 says two"})
	same(t, "the pinned run", passes(t, rt, pinned), []string{"1: revision 1 edit 0 says one", "2: revision 1 edit 0 says one", "3: revision 1 edit 1 says own", "4: revision 1 edit 1 says own"})
	if info := status(t, rt, edited); info.Edit != 3 {
		t.Errorf("the run's summary has edit %d", info.Edit)
	}
	if _, err := rt.EditRun(ctx, edited, runtime.EditRunOptions{}, says("x")); abi.CodeOf(err) != abi.Conflict {
		t.Errorf("an edit of a run that is over: %v", err)
	}
	if _, err := rt.EditRun(ctx, "019df2a2-0000-7000-8000-000000000000", runtime.EditRunOptions{}, says("x")); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("an edit of an unknown run: %v", err)
	}
	if v, err := rt.RunDefinition(edited); err != nil || string(v.Definition.Steps[1].Fields["value"]) != `"$iteration"` {
		t.Errorf("the definition of the run that is over: %v, %v", v, err)
	}
}

// An edit is kept from the moment on that it is in the journal, wherever the
// process is killed: between passes, in one, behind a snapshot that holds it.
func TestEditsOfARunOutliveIt(t *testing.T) {
	f := newRecordingStore()
	rt := open(t, newFakeHost(), f, runtime.Options{})
	id := start(t, rt, gated("zero", 5), runtime.StartOptions{}) // not stored
	until(t, "the first pass", func() bool { return status(t, rt, id).Iteration == 1 })
	for i := range 4 {
		if i != 2 {
			if _, err := rt.EditRun(within(t), id, runtime.EditRunOptions{}, says(fmt.Sprint("edit ", i))); err != nil {
				t.Fatal(err)
			}
		}
		goOn(t, rt, id)
	}
	goOn(t, rt, id)
	wait(t, rt, id)
	want := passes(t, rt, id)
	same(t, "without a crash", want, []string{"1: revision 0 edit 0 says zero", "2: revision 0 edit 1 says edit 0", "3: revision 0 edit 2 says edit 1",
		"4: revision 0 edit 2 says edit 1", "5: revision 0 edit 3 says edit 3"})
	rt.Close()
	edits := 0
	for n := f.after(t, 1, kind(journal.RunStart)); n < f.length(); n++ {
		for edits < 3 && f.after(t, edits+1, kind(journal.Signal)) <= n {
			edits++
		}
		rt := open(t, newFakeHost(), f.prefix(t, n), runtime.Options{OnInterrupt: sentinels.InterruptRetry})
		if status(t, rt, id).Status.Final() {
			break
		}
		check := func(when string) {
			t.Helper()
			v, err := rt.RunDefinition(id)
			if err != nil || v.Edit != edits {
				t.Errorf("crash behind batch %d, %s: edit %d, %v; want %d", n, when, v.Edit, err, edits)
			}
		}
		check("before it is resumed")
		if edits == 3 && n%2 == 0 { // no process executes the run now
			if e, err := rt.EditRun(within(t), id, runtime.EditRunOptions{}, says("offline")); err != nil || e.Edit != 4 {
				t.Fatalf("crash behind batch %d: edit %+v, %v", n, e, err)
			}
			edits = 4
		}
		if err := rt.Resume(within(t), id, runtime.ResumeOptions{}); err != nil {
			t.Fatal(err)
		}
		check("after it was resumed")
		if edits == 4 {
			edits = 3
		}
		rt.Close()
	}
}

// A run that waits for its next pass takes an edit at once, not when the old
// definition's wait is over.
func TestEditWakesWaits(t *testing.T) {
	const slow = `{"id":"w","name":"w","steps":[{"type":"call","command":"world/act","value":1}],"loop":{"type":"continuous","intervalMs":3600000},"safety":{"maxIterations":3}}`
	for name, edited := range map[string]sentinels.Loop{
		"interval": {Type: sentinels.LoopContinuous, IntervalMs: 1},
		"end":      {Type: sentinels.LoopOnce},
		"event":    {Type: sentinels.LoopEvent, Event: "now"},
	} {
		for _, own := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " own=", own), func(t *testing.T) {
				rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{})
				id := startStored(t, rt, save(t, rt, slow, runtime.SaveOptions{}), runtime.StartOptions{})
				until(t, "the first pass", func() bool {
					tr, err := rt.Trace(id)
					return err == nil && len(tr.Iterations) == 1 && tr.Iterations[0].Done
				})
				change := func(d *sentinels.Definition) (*sentinels.Definition, error) {
					next := *d
					next.Loop = edited
					return &next, nil
				}
				var err error
				if own {
					_, err = rt.EditRun(within(t), id, runtime.EditRunOptions{}, change)
				} else {
					_, err = rt.Edit(within(t), "w", runtime.SaveOptions{}, change)
				}
				if err != nil {
					t.Fatal(err)
				}
				want := 3
				switch edited.Type {
				case sentinels.LoopOnce:
					want = 1
				case sentinels.LoopEvent:
					for range 2 {
						if _, err := rt.Emit(context.Background(), sentinels.Event{Name: "now"}); err != nil {
							t.Fatal(err)
						}
					}
				}
				if res := wait(t, rt, id); res.Iterations != want || res.Status != sentinels.StatusCompleted {
					t.Errorf("%s after %d passes, want %d: %v", res.Status, res.Iterations, want, res.Error)
				}
			})
		}
	}
}

// An edit, or a pause, that comes while a run is taken over goes to its old
// journal or to the live run, never in between.
func TestEditWhileTakenOver(t *testing.T) {
	for range 40 {
		db := store.NewMemory()
		rt := open(t, newFakeHost(), db, runtime.Options{})
		id := start(t, rt, gated("old", 2), runtime.StartOptions{})
		until(t, "the first pass on the disk", func() bool {
			tr, err := rt.Trace(id)
			return err == nil && len(tr.Iterations) == 1
		})
		snap := db.Snapshot()
		rt.Close()
		rt = open(t, newFakeHost(), snap, runtime.Options{})
		var both sync.WaitGroup
		both.Go(func() {
			if err := rt.Resume(within(t), id, runtime.ResumeOptions{}); err != nil {
				t.Error(err)
			}
		})
		for _, value := range []string{"new", "newer"} {
			both.Go(func() {
				if _, err := rt.EditRun(within(t), id, runtime.EditRunOptions{}, says(value)); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		goOn(t, rt, id)
		goOn(t, rt, id)
		if res := wait(t, rt, id); res.Status != sentinels.StatusCompleted {
			t.Fatalf("%s: %v", res.Status, res.Error)
		}
		if got := passes(t, rt, id); len(got) != 2 || !strings.HasPrefix(got[1], "2: revision 0 edit 2 says new") {
			t.Fatalf("passes %q", got)
		}
		rt.Close()
	}
}
