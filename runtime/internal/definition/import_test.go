package definition_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime/internal/definition"
	"github.com/sentinel-runtime/sentinel/runtime/revision"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// history returns the whole history of a definition, the oldest first.
func history(t *testing.T, s *definition.Store) []revision.Stored {
	t.Helper()
	lines, err := s.Revisions("d")
	if err != nil {
		t.Fatal(err)
	}
	var out []revision.Stored
	for _, l := range slices.Backward(lines) {
		s, err := s.Revision("d", l.Revision)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

// used is a store in which the definition "d" has a history: edits, a deletion and
// another save; the first revision is no longer kept.
func used(t *testing.T) *definition.Store {
	s := open(t, definition.Options{Keep: 4})
	for _, value := range []string{"a", "b", "c <&>"} {
		save(t, s, plain(value), revision.SaveOptions{Expect: revision.Any, By: "ann", Note: "is " + value})
	}
	if _, err := s.Delete(t.Context(), "d", revision.SaveOptions{Expect: 3}); err != nil {
		t.Fatal(err)
	}
	save(t, s, plain("e"), revision.SaveOptions{By: "bob"})
	return s
}

// A history from another store becomes the history here, and continues.
func TestImportHistory(t *testing.T) {
	from := used(t)
	past := history(t, from)
	if len(past) != 4 || past[0].Revision != 2 {
		t.Fatalf("the history is %+v", past)
	}
	var follower recorder
	to := open(t, definition.Options{})
	to.Follow(follower.add)
	indented := slices.Clone(past)
	indented[0].Definition, _ = json.MarshalIndent(past[0].Definition, "", "  ")
	in := revision.Incoming{Definition: decode(t, plain("e")), History: indented}
	done, err := to.Import(within(t), []revision.Incoming{in}, revision.SaveOptions{By: "cid"})
	if err != nil || len(done) != 1 || done[0].Revisions != 4 || done[0].Revision != 5 || !done[0].Changed {
		t.Fatalf("import: %+v, %v", done, err)
	}
	if diff := cmp.Diff(past, history(t, to)); diff != "" {
		t.Errorf("the history changed on its way:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"d@5 deleted=false"}, follower.wait(t, 1)); diff != "" {
		t.Errorf("followers (-want +got):\n%s", diff)
	}
	if s, err := to.Rollback(within(t), "d", 2, revision.SaveOptions{Expect: 5}); err != nil || s.Revision != 6 || s.Hash != past[0].Hash {
		t.Errorf("rollback gave %+v, %v", s, err)
	}
	// Where the id has a history of its own, that stays.
	in.Expect = 6
	if done, err = to.Import(within(t), []revision.Incoming{in}, revision.SaveOptions{By: "cid"}); err != nil || done[0].Revision != 7 || done[0].By != "cid" || done[0].Revisions != 1 {
		t.Errorf("import over another: %+v, %v", done, err)
	}
	in.Expect = revision.Any
	if done, err = to.Import(within(t), []revision.Incoming{in}, revision.SaveOptions{}); err != nil || done[0].Changed || done[0].Revision != 7 {
		t.Errorf("import of the same: %+v, %v", done, err)
	}
}

// A history keeps no more than this store does.
func TestImportKeepsBounds(t *testing.T) {
	from := used(t)
	to := open(t, definition.Options{Keep: 2})
	if _, err := to.Import(within(t), []revision.Incoming{{Definition: decode(t, plain("e")), History: history(t, from)}}, revision.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	save(t, to, plain("f"), revision.SaveOptions{Expect: 5})
	if got := history(t, to); len(got) != 2 || got[0].Revision != 5 {
		t.Errorf("kept are %+v", got)
	}
}

// A caller with a bound does not say when revisions were made: an approval covers those before it.
func TestImportWithABoundIsDatedNow(t *testing.T) {
	past := history(t, used(t))
	for i := range past {
		past[i].SavedAt = past[i].SavedAt.AddDate(-5, 0, 0)
	}
	to, before := open(t, definition.Options{}), time.Now()
	if _, err := to.Import(within(t), []revision.Incoming{{Definition: decode(t, plain("e")), History: past}}, revision.SaveOptions{Within: []string{"a"}}); err != nil {
		t.Fatal(err)
	}
	for _, r := range history(t, to) {
		if r.SavedAt.Before(before.Truncate(time.Second)) {
			t.Errorf("revision %d is of %v", r.Revision, r.SavedAt)
		}
	}
}

// A definition that cannot be imported keeps out all, and the error names the cause.
func TestImportAllOrNothing(t *testing.T) {
	good := history(t, used(t))
	edit := func(fn func(h []revision.Stored) []revision.Stored) []revision.Stored { return fn(slices.Clone(good)) }
	for name, c := range map[string]struct {
		history []revision.Stored
		says    string
	}{
		"another text":   {edit(func(h []revision.Stored) []revision.Stored { h[0].Definition = h[3].Definition; return h }), "revision 2 does not match its hash"},
		"another hash":   {edit(func(h []revision.Stored) []revision.Stored { h[3].Hash = h[0].Hash; return h }), "revision 5 does not match its hash"},
		"another end":    {good[:2], "does not end with it"},
		"a tombstone":    {good[:3], "does not end with it"},
		"twice":          {edit(func(h []revision.Stored) []revision.Stored { h[1].Revision = 2; return h }), "revision 2 is out of order"},
		"revision 0":     {edit(func(h []revision.Stored) []revision.Stored { h[0].Revision = 0; return h }), "revision 0 is out of order"},
		"revision 10^9":  {edit(func(h []revision.Stored) []revision.Stored { h[3].Revision = 1e9; return h }), "is out of order"},
		"no time":        {edit(func(h []revision.Stored) []revision.Stored { h[0].SavedAt = time.Time{}; return h }), "has no time"},
		"no definition":  {edit(func(h []revision.Stored) []revision.Stored { h[0].Definition = nil; return h }), "cannot be read"},
		"a wrong syntax": {edit(func(h []revision.Stored) []revision.Stored { h[0].Definition = []byte("{"); return h }), "cannot be read"},
		"an array":       {edit(func(h []revision.Stored) []revision.Stored { h[0].Definition = []byte(`[]`); return h }), "does not match its hash"},
	} {
		s := open(t, definition.Options{})
		in := []revision.Incoming{
			{Definition: decode(t, `{"id":"other","name":"o","steps":[{"type":"call","command":"do","value":"x"}]}`)},
			{Definition: decode(t, plain("e")), History: c.history},
		}
		if _, err := s.Import(within(t), in, revision.SaveOptions{}); abi.CodeOf(err) != abi.BadFields || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		if all, err := s.List(); err != nil || len(all) != 0 {
			t.Errorf("%s: the store has %v, %v", name, all, err)
		}
	}
	s := open(t, definition.Options{})
	save(t, s, plain("z"), revision.SaveOptions{})
	d := revision.Incoming{Definition: decode(t, plain("e"))}
	if _, err := s.Import(within(t), []revision.Incoming{d}, revision.SaveOptions{}); abi.CodeOf(err) != abi.Conflict {
		t.Errorf("import over another that was not expected: %v", err)
	}
	d.Expect = 1
	if _, err := s.Import(within(t), []revision.Incoming{d, d}, revision.SaveOptions{}); abi.CodeOf(err) != abi.BadFields {
		t.Errorf("the same twice: %v", err)
	}
}
