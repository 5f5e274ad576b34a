package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// plain is a definition with the id "d" whose one step says value.
func plain(value string) string {
	return `{"id":"d","name":"The d","steps":[{"type":"call","command":"world/act","value":"` + value + `"}]}`
}

// heard collects the changes of definitions that an observer receives.
type heard struct {
	mu   sync.Mutex
	list []runtime.DefinitionChange
}

func (h *heard) observer() runtime.Observer {
	return runtime.Observer{Definition: func(c runtime.DefinitionChange) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.list = append(h.list, c)
	}}
}

func (h *heard) changes() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	for _, c := range h.list {
		out = append(out, fmt.Sprintf("%s@%d deleted=%t origin=%s by=%s note=%s", c.ID, c.Revision, c.Deleted, c.Origin, c.By, c.Note))
	}
	return out
}

func save(t testing.TB, rt *runtime.Runtime, src string, opt runtime.SaveOptions) runtime.Stored {
	t.Helper()
	s, err := rt.SaveWith(context.Background(), decode(t, rt, src), opt)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A definition's revisions are one history: saves, a deletion, a rollback that
// restores it, each with who and why, which an observer gets in order.
func TestRevisions(t *testing.T) {
	var h heard
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{Observer: h.observer()})
	ctx := within(t)
	save(t, rt, plain("a"), runtime.SaveOptions{By: "ann", Origin: "d.json", Note: "first"})
	if s := save(t, rt, plain("a"), runtime.SaveOptions{Expect: 1}); s.Revision != 1 {
		t.Errorf("the same again became revision %d", s.Revision)
	}
	if s := save(t, rt, plain("a"), runtime.SaveOptions{Expect: 1, Origin: "e.json"}); s.Revision != 1 || s.Origin != "e.json" {
		t.Errorf("a moved file became %+v", s)
	}
	if s := save(t, rt, plain("b"), runtime.SaveOptions{Expect: 1, By: "bob"}); s.Revision != 2 || s.Origin != "e.json" {
		t.Errorf("the second revision is %+v", s)
	}
	for _, expect := range []int{0, 1, 3} {
		if _, err := rt.SaveWith(ctx, decode(t, rt, plain("c")), runtime.SaveOptions{Expect: expect}); abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), "revision conflict: have "+fmt.Sprint(expect)+", current is 2") {
			t.Errorf("an edit of revision %d: %v", expect, err)
		}
		if err := rt.Delete(ctx, "d", expect); abi.CodeOf(err) != abi.Conflict {
			t.Errorf("a deletion on revision %d: %v", expect, err)
		}
	}
	if err := rt.Delete(ctx, "d", 2); err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Definition("d"); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("the deleted definition: %v", err)
	}
	if all, err := rt.Definitions(); err != nil || len(all) != 0 {
		t.Errorf("definitions %v, %v", all, err)
	}
	if err := rt.Delete(ctx, "d", runtime.AnyRevision); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("deleting twice: %v", err)
	}
	if _, err := rt.SaveWith(ctx, decode(t, rt, plain("c")), runtime.SaveOptions{Expect: 3}); abi.CodeOf(err) != abi.Conflict {
		t.Errorf("an edit of a tombstone: %v", err)
	}
	if _, err := rt.Rollback(ctx, "d", 3, runtime.SaveOptions{Expect: -1}); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("rollback to a tombstone: %v", err)
	}
	s, err := rt.Rollback(ctx, "d", 1, runtime.SaveOptions{By: "cid"})
	if err != nil || s.Revision != 4 {
		t.Fatalf("rollback gave %+v, %v", s, err)
	}
	first, err := rt.Revision("d", 1)
	if err != nil || first.Hash != s.Hash || string(first.Definition) != string(s.Definition) {
		t.Errorf("revision 1 is %s, %v, not %s", first.Definition, err, s.Definition)
	}
	if _, err := rt.Revision("d", 9); abi.CodeOf(err) != abi.NotFound || !strings.Contains(abi.As(err).Hint, "1 to 4") {
		t.Errorf("revision 9: %v", err)
	}
	kept, err := rt.Revisions("d")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range kept {
		got = append(got, fmt.Sprintf("%d %s deleted=%t %s %s %d", r.Revision, r.Name, r.Deleted, r.By, r.Note, len(r.Definition)))
	}
	want := []string{"4 The d deleted=false cid rollback to revision 1 0", "3 The d deleted=true   0", "2 The d deleted=false bob  0", "1 The d deleted=false ann first 0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
	if _, err := rt.Revisions("unknown"); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("revisions of an unknown id: %v", err)
	}
	told := []string{"d@1 deleted=false origin=d.json by=ann note=first", "d@2 deleted=false origin=e.json by=bob note=",
		"d@3 deleted=true origin=e.json by= note=", "d@4 deleted=false origin= by=cid note=rollback to revision 1"}
	until(t, "the observer", func() bool { return len(h.changes()) == len(told) })
	if diff := cmp.Diff(told, h.changes()); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// What an edit makes is checked as a file is, and a refused one changes nothing.
func TestRefusedEdits(t *testing.T) {
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{})
	save(t, rt, plain("a"), runtime.SaveOptions{})
	ctx := within(t)
	step := func(s sentinels.Step) func(*sentinels.Definition) (*sentinels.Definition, error) {
		return func(d *sentinels.Definition) (*sentinels.Definition, error) { return d.ReplaceStep("0", s) }
	}
	_, err := rt.Edit(ctx, "d", runtime.SaveOptions{}, step(sentinels.Step{Type: "nonsense"}))
	var problems sentinels.Problems
	if !errors.As(err, &problems) || problems[0].Line == 0 || problems[0].Path != "steps[0].type" {
		t.Errorf("an unknown step type: %v", err)
	}
	if _, err := rt.Edit(ctx, "d", runtime.SaveOptions{Expect: 7}, step(sentinels.Step{Type: "spin"})); abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), "have 7, current is 1") {
		t.Errorf("a stale edit: %v", err)
	}
	if _, err := rt.Edit(ctx, "d", runtime.SaveOptions{}, func(d *sentinels.Definition) (*sentinels.Definition, error) {
		other := *d
		other.ID = "e"
		return &other, nil
	}); abi.CodeOf(err) != abi.BadFields {
		t.Errorf("another id: %v", err)
	}
	if _, err := rt.Edit(ctx, "e", runtime.SaveOptions{}, step(sentinels.Step{Type: "spin"})); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("an unknown id: %v", err)
	}
	if s, err := rt.Definition("d"); err != nil || s.Revision != 1 {
		t.Errorf("revision %d, %v", s.Revision, err)
	}
}

// A stored definition is read once for each set of step types.
func TestDecodedIsShared(t *testing.T) {
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{})
	s := save(t, rt, plain("a"), runtime.SaveOptions{})
	one, err := rt.Decoded(s)
	if err != nil {
		t.Fatal(err)
	}
	if two, _ := rt.Decoded(s); two != one {
		t.Error("the definition was read twice")
	}
	if err := runtime.AddModule(rt, &runtime.GoModule{Name: "more", Types: []wasm.StepType{{Type: "other", Fields: json.RawMessage(`{"type":"object"}`)}}}); err != nil {
		t.Fatal(err)
	}
	if two, _ := rt.Decoded(s); two == one {
		t.Error("the definition was not read again for other step types")
	}
}
