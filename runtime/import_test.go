package runtime_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// history returns the whole history of a definition, the oldest first.
func history(t *testing.T, rt *runtime.Runtime) []runtime.Stored {
	t.Helper()
	lines, err := rt.Revisions("d")
	if err != nil {
		t.Fatal(err)
	}
	var out []runtime.Stored
	for _, l := range slices.Backward(lines) {
		s, err := rt.Revision("d", l.Revision)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

// lived is a store in which the definition "d" has a past: an edit, a deletion,
// a rollback, the first revisions already gone.
func lived(t *testing.T) *runtime.Runtime {
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{Limits: runtime.Limits{KeepRevisions: 4}})
	for _, value := range []string{"a", "b", "c <&>"} {
		save(t, rt, plain(value), runtime.SaveOptions{Expect: runtime.AnyRevision, By: "ann", Note: "is " + value})
	}
	if err := rt.Delete(t.Context(), "d", 3); err != nil {
		t.Fatal(err)
	}
	save(t, rt, plain("e"), runtime.SaveOptions{By: "bob"})
	return rt
}

// A history that comes from another store is the history here, and goes on.
func TestImportHistory(t *testing.T) {
	from := lived(t)
	past := history(t, from)
	if len(past) != 4 || past[0].Revision != 2 {
		t.Fatalf("the history is %+v", past)
	}
	var h heard
	to := open(t, newFakeHost(), store.NewMemory(), runtime.Options{Observer: h.observer()})
	indented := slices.Clone(past)
	indented[0].Definition, _ = json.MarshalIndent(past[0].Definition, "", "  ")
	in := runtime.Incoming{Definition: decode(t, to, plain("e")), History: indented}
	done, err := to.Import(within(t), []runtime.Incoming{in}, runtime.SaveOptions{By: "cid"})
	if err != nil || len(done) != 1 || done[0].Revisions != 4 || done[0].Revision != 5 || !done[0].Changed {
		t.Fatalf("import: %+v, %v", done, err)
	}
	if diff := cmp.Diff(past, history(t, to)); diff != "" {
		t.Errorf("the history changed on its way:\n%s", diff)
	}
	if got := h.changes(); len(got) != 1 || !strings.HasPrefix(got[0], "d@5 ") {
		t.Errorf("told was %q", got)
	}
	if s, err := to.Rollback(within(t), "d", 2, runtime.SaveOptions{Expect: 5}); err != nil || s.Revision != 6 || s.Hash != past[0].Hash {
		t.Errorf("rollback gave %+v, %v", s, err)
	}
	// Where the id has a history of its own, that stays.
	in.Expect = 6
	if done, err = to.Import(within(t), []runtime.Incoming{in}, runtime.SaveOptions{By: "cid"}); err != nil || done[0].Revision != 7 || done[0].By != "cid" || done[0].Revisions != 1 {
		t.Errorf("import over another: %+v, %v", done, err)
	}
	in.Expect = runtime.AnyRevision
	if done, err = to.Import(within(t), []runtime.Incoming{in}, runtime.SaveOptions{}); err != nil || done[0].Changed || done[0].Revision != 7 {
		t.Errorf("import of the same: %+v, %v", done, err)
	}
}

// A history keeps no more than this store does.
func TestImportKeepsBounds(t *testing.T) {
	from := lived(t)
	to := open(t, newFakeHost(), store.NewMemory(), runtime.Options{Limits: runtime.Limits{KeepRevisions: 2}})
	if _, err := to.Import(within(t), []runtime.Incoming{{Definition: decode(t, to, plain("e")), History: history(t, from)}}, runtime.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	save(t, to, plain("f"), runtime.SaveOptions{Expect: 5})
	if got := history(t, to); len(got) != 2 || got[0].Revision != 5 {
		t.Errorf("kept is %+v", got)
	}
}

// One that cannot be taken in keeps out all, and what is wrong is said.
func TestImportAllOrNothing(t *testing.T) {
	good := history(t, lived(t))
	edit := func(fn func(h []runtime.Stored) []runtime.Stored) []runtime.Stored { return fn(slices.Clone(good)) }
	for name, c := range map[string]struct {
		history []runtime.Stored
		says    string
	}{
		"another text":    {edit(func(h []runtime.Stored) []runtime.Stored { h[0].Definition = h[3].Definition; return h }), "revision 2 is not what its hash says"},
		"another hash":    {edit(func(h []runtime.Stored) []runtime.Stored { h[3].Hash = h[0].Hash; return h }), "revision 5 is not what its hash says"},
		"another end":     {good[:2], "does not end with it"},
		"a tombstone":     {good[:3], "does not end with it"},
		"twice":           {edit(func(h []runtime.Stored) []runtime.Stored { h[1].Revision = 2; return h }), "revision 2 is out of order"},
		"revision 0":      {edit(func(h []runtime.Stored) []runtime.Stored { h[0].Revision = 0; return h }), "revision 0 is out of order"},
		"revision 10^9":   {edit(func(h []runtime.Stored) []runtime.Stored { h[3].Revision = 1e9; return h }), "is out of order"},
		"no time":         {edit(func(h []runtime.Stored) []runtime.Stored { h[0].SavedAt = time.Time{}; return h }), "has no time"},
		"no definition":   {edit(func(h []runtime.Stored) []runtime.Stored { h[0].Definition = nil; return h }), "cannot be read"},
		"a wrong syntax":  {edit(func(h []runtime.Stored) []runtime.Stored { h[0].Definition = []byte("{"); return h }), "cannot be read"},
		"nothing of this": {edit(func(h []runtime.Stored) []runtime.Stored { h[0].Definition = []byte(`[]`); return h }), "is not what its hash says"},
	} {
		rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{})
		in := []runtime.Incoming{
			{Definition: decode(t, rt, `{"id":"other","name":"o","steps":[{"type":"call","command":"world/act","value":"x"}]}`)},
			{Definition: decode(t, rt, plain("e")), History: c.history},
		}
		if _, err := rt.Import(within(t), in, runtime.SaveOptions{}); abi.CodeOf(err) != abi.BadFields || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		if all, err := rt.Definitions(); err != nil || len(all) != 0 {
			t.Errorf("%s: %v is there, %v", name, all, err)
		}
	}
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{})
	save(t, rt, plain("z"), runtime.SaveOptions{})
	d := runtime.Incoming{Definition: decode(t, rt, plain("e"))}
	if _, err := rt.Import(within(t), []runtime.Incoming{d}, runtime.SaveOptions{}); abi.CodeOf(err) != abi.Conflict {
		t.Errorf("import over an unexpected one: %v", err)
	}
	d.Expect = 1
	if _, err := rt.Import(within(t), []runtime.Incoming{d, d}, runtime.SaveOptions{}); abi.CodeOf(err) != abi.BadFields {
		t.Errorf("the same twice: %v", err)
	}
}
