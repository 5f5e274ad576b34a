package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// named is a host that knows no step named bad, and lacks what steps named away need.
type named struct{ strict bool }

func (n *named) find(d *sentinels.Definition, name string, kind sentinels.Kind) (found sentinels.Problems) {
	d.EachStep(func(path string, s *sentinels.Step) {
		if s.Name == name {
			found = append(found, sentinels.Problem{Path: path + ".name", Kind: kind, Message: "is " + name})
		}
	})
	return found
}

func (n *named) Definition(_ context.Context, d *sentinels.Definition, types *sentinels.TypeSet) sentinels.Problems {
	found := n.Absent(d, types)
	if n.strict {
		found = append(found, n.find(d, "bad", sentinels.KindUnknown)...)
	}
	return found
}

func (n *named) Environment(sentinels.ID, *sentinels.Definition, *sentinels.TypeSet) sentinels.Problems {
	return nil
}

func (n *named) Absent(d *sentinels.Definition, _ *sentinels.TypeSet) sentinels.Problems {
	return n.find(d, "away", sentinels.KindAbsent)
}

const (
	oneBad = `{"id":"d","steps":[{"type":"call","command":"world/look","name":"bad"}],"loop":{"type":"once"}}`
	twoBad = `{"id":"d","steps":[{"type":"call","command":"world/look","name":"ok"},{"type":"call","command":"world/look","name":"bad"},{"type":"call","command":"world/look","name":"bad"}]}`
)

// TestEditAddsErrors: "The same check runs on every edit: refused for errors that the edit
// adds, older ones are listed."
func TestEditAddsErrors(t *testing.T) {
	checks := &named{}
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{Checks: checks})
	if _, err := rt.Save(t.Context(), decode(t, rt, oneBad), 0); err != nil {
		t.Fatal(err)
	}
	checks.strict = true // such as after an update of the host
	if _, problems := rt.Decode([]byte(oneBad), "d.json"); len(problems) != 1 || problems[0].String() != "d.json:1:65: steps[0].name: is bad" {
		t.Errorf("new: %v", problems)
	}
	if _, problems, older := rt.DecodeEdit([]byte(oneBad), "d.json"); len(problems) > 0 || len(older) != 1 {
		t.Errorf("the stored text again: %v", problems)
	}
	if _, problems, _ := rt.DecodeEdit([]byte(twoBad), "d.json"); len(problems) != 1 || !strings.HasPrefix(problems[0].Path, "steps[2]") {
		t.Errorf("one more: %v", problems)
	}
	add := func(name string) error {
		_, err := rt.Edit(t.Context(), "d", runtime.SaveOptions{Expect: runtime.AnyRevision}, func(d *sentinels.Definition) (*sentinels.Definition, error) {
			return d.InsertStep("0", sentinels.Step{Type: "call", Name: name, Fields: d.Steps[0].Fields})
		})
		return err
	}
	if err := add("fine"); err != nil {
		t.Errorf("an edit of another step: %v", err)
	}
	problems := sentinels.Problems{}
	if err := add("bad"); !errors.As(err, &problems) || len(problems) != 1 {
		t.Errorf("an edit that adds an error: %v", err)
	}
	stored, err := rt.Definition("d")
	if err != nil || stored.Revision != 2 {
		t.Errorf("revision %d, %v", stored.Revision, err)
	}
	if _, err := rt.Rollback(t.Context(), "d", 1, runtime.SaveOptions{Expect: runtime.AnyRevision}); err != nil {
		t.Errorf("rollback to what has the same error: %v", err)
	}
}

// TestAbsentAtStart: "What is known but absent here ... is a warning, and a refusal at
// start", also of a definition that is nested in another.
func TestAbsentAtStart(t *testing.T) {
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{Checks: &named{}})
	def := decode(t, rt, `{"id":"d","steps":[{"type":"call","command":"world/look","name":"away"}]}`)
	if _, err := rt.Save(t.Context(), def, 0); err != nil {
		t.Fatal(err)
	}
	_, err := rt.Start(t.Context(), def, runtime.StartOptions{})
	if abi.CodeOf(err) != abi.NotFound || err.Error() != `start "d": steps[0].name: is away` {
		t.Errorf("%v", err)
	}
	runs, err := rt.Runs(runtime.RunFilter{})
	if err != nil || len(runs) > 0 {
		t.Errorf("%d runs, %v", len(runs), err)
	}
}

// TestEditWithoutType edits a definition whose plugin was removed: another step, and the
// step itself.
func TestEditWithoutType(t *testing.T) {
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{})
	if err := runtime.AddUntrusted(rt, reach()); err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Save(t.Context(), decode(t, rt, `{"id":"d","steps":[{"type":"reach","function":"x"},{"type":"call","command":"world/look"}]}`), 0); err != nil {
		t.Fatal(err)
	}
	if err := rt.UnloadPlugin(t.Context(), "reach.wasm"); err != nil {
		t.Fatal(err)
	}
	edit := func(fn func(*sentinels.Definition) (*sentinels.Definition, error)) (runtime.Stored, error) {
		return rt.Edit(t.Context(), "d", runtime.SaveOptions{Expect: runtime.AnyRevision}, fn)
	}
	s, err := edit(func(d *sentinels.Definition) (*sentinels.Definition, error) { return d.RemoveStep("1") })
	if err != nil || !strings.Contains(string(s.Definition), `"function":"x"`) {
		t.Fatalf("edit of another step: %v\n%s", err, s.Definition)
	}
	if _, err := edit(func(d *sentinels.Definition) (*sentinels.Definition, error) {
		return d.InsertStep("0", sentinels.Step{Type: "reach2"})
	}); err == nil {
		t.Error("another unknown type is accepted")
	}
	s, err = edit(func(d *sentinels.Definition) (*sentinels.Definition, error) {
		return d.ReplaceStep("0", sentinels.Step{Type: "call", Fields: map[string]json.RawMessage{"command": json.RawMessage(`"world/look"`)}})
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Decoded(s); err != nil {
		t.Errorf("repaired: %v", err)
	}
}
