package document_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime/internal/document"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

type job struct {
	State    string   `json:"state"`
	Priority int      `json:"priority"`
	Words    []string `json:"words,omitempty"`
}

func jobOf(d sentinels.Document) (j job) {
	_ = json.Unmarshal(d.Data, &j)
	return j
}

func byPriority(version int) *document.Index {
	return &document.Index{Collection: "jobs", Name: "priority", Version: version, Values: func(d sentinels.Document) [][]any {
		j := jobOf(d)
		if j.State == "" {
			return nil
		}
		return [][]any{{j.State, document.Descending{Value: j.Priority}}}
	}}
}

func byWord() *document.Index {
	return &document.Index{Collection: "jobs", Name: "word", Version: 1, Values: func(d sentinels.Document) [][]any {
		var all [][]any
		for _, w := range jobOf(d).Words {
			all = append(all, []any{w})
		}
		return all
	}}
}

func put(t *testing.T, tx *document.Tx, id string, j job) {
	t.Helper()
	data, err := json.Marshal(j)
	if err == nil {
		_, err = tx.Put(t.Context(), "jobs", id, data, sentinels.AnyRevision)
	}
	if err != nil {
		t.Error(err)
	}
}

func ids(t *testing.T, tx *document.Tx, x *document.Index, r document.Range) []string {
	t.Helper()
	list := []string{}
	if err := tx.ScanIndex(t.Context(), x, r, func(_ string, d sentinels.Document) bool {
		list = append(list, d.ID)
		return true
	}); err != nil {
		t.Error(err)
	}
	return list
}

// TestIndexFollowsDocuments compares an index with a sorted list after random writes:
// those of the transaction, those on their way to the disk, and committed ones.
func TestIndexFollowsDocuments(t *testing.T) {
	ctx := within(t)
	db := store.NewMemory()
	s := open(db)
	x := byPriority(1)
	if err := s.Register(ctx, x); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	model := map[string]job{}
	check := func(tx *document.Tx) {
		t.Helper()
		for _, state := range []string{"", "on", "ready"} {
			want := []string{}
			for id, j := range model {
				if j.State == state && state != "" {
					want = append(want, id)
				}
			}
			slices.SortFunc(want, func(a, b string) int {
				return cmp.Or(cmp.Compare(model[b].Priority, model[a].Priority), strings.Compare(a, b))
			})
			if got := ids(t, tx, x, document.Range{Equal: []any{state}}); !slices.Equal(got, want) {
				t.Fatalf("state %q: %v, want %v", state, got, want)
			}
			slices.Reverse(want)
			if got := ids(t, tx, x, document.Range{Equal: []any{state}, Reverse: true}); !slices.Equal(got, want) {
				t.Fatalf("state %q in reverse: %v, want %v", state, got, want)
			}
		}
	}
	states := []string{"", "on", "ready"}
	for round := range 60 {
		transact(t, s, func(tx *document.Tx) error {
			for range 8 {
				id := fmt.Sprintf("job-%03d", random.IntN(150))
				if _, ok := model[id]; ok && random.IntN(4) == 0 {
					delete(model, id)
					if err := tx.Delete(ctx, "jobs", id, sentinels.AnyRevision); err != nil {
						t.Error(err)
					}
					continue
				}
				model[id] = job{State: states[random.IntN(3)], Priority: random.IntN(5) - 2}
				put(t, tx, id, model[id])
			}
			check(tx)
			return nil
		})
		if round%20 == 0 { // what failed is nowhere
			_ = s.Update(ctx, func(tx *document.Tx) error {
				put(t, tx, "job-000", job{State: "ready", Priority: 99})
				return errors.New("no")
			})
		}
		transact(t, s, func(tx *document.Tx) error { check(tx); return nil })
	}
}

func TestIndexBeforeTheCommit(t *testing.T) {
	ctx := within(t)
	db := store.NewMemory()
	s := open(db)
	x := byPriority(1)
	if err := s.Register(ctx, x); err != nil {
		t.Fatal(err)
	}
	transact(t, s, func(tx *document.Tx) error {
		put(t, tx, "a", job{State: "on", Priority: 1})
		put(t, tx, "b", job{State: "on", Priority: 2})
		return nil
	})
	db.SetFault(errors.New("the disk does not answer"))
	gone, cancel := context.WithCancel(ctx)
	_ = s.Update(gone, func(tx *document.Tx) error {
		cancel() // no wait for the commit
		put(t, tx, "c", job{State: "on", Priority: 9})
		put(t, tx, "b", job{State: "off", Priority: 2})
		return nil
	})
	_ = s.Update(ctx, func(tx *document.Tx) error {
		if diff := gocmp.Diff([]string{"c", "a"}, ids(t, tx, x, document.Range{Equal: []any{"on"}})); diff != "" {
			t.Errorf("before the commit (-want +got):\n%s", diff)
		}
		return errors.New("no")
	})
}

func TestIndexRanges(t *testing.T) {
	ctx := within(t)
	s := open(store.NewMemory())
	x := byPriority(1)
	words := byWord()
	if err := s.Register(ctx, x, words); err != nil {
		t.Fatal(err)
	}
	transact(t, s, func(tx *document.Tx) error {
		for i := range 200 {
			put(t, tx, fmt.Sprintf("%03d", i), job{State: "on", Priority: i, Words: []string{"all", fmt.Sprint("w", i%3)}})
		}
		desc := func(n int) []any { return []any{document.Descending{Value: n}} }
		for _, tt := range []struct {
			name string
			r    document.Range
			want []string
		}{
			{"limit", document.Range{Equal: []any{"on"}, Limit: 2}, []string{"199", "198"}},
			{"from and to", document.Range{Equal: []any{"on"}, From: desc(10), To: desc(7)}, []string{"010", "009", "008"}},
			{"in reverse", document.Range{Equal: []any{"on"}, From: desc(10), To: desc(7), Reverse: true}, []string{"008", "009", "010"}},
			{"whole values", document.Range{Equal: []any{"on", document.Descending{Value: 3}}}, []string{"003"}},
			{"nothing", document.Range{Equal: []any{"o"}}, []string{}},
		} {
			if diff := gocmp.Diff(tt.want, ids(t, tx, x, tt.r)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.name, diff)
			}
		}
		if n := len(ids(t, tx, words, document.Range{Equal: []any{"all"}})); n != 200 {
			t.Errorf("%d documents with a word, want 200", n)
		}
		var paged []string
		after := ""
		for {
			n := 0
			if err := tx.ScanIndex(ctx, words, document.Range{Equal: []any{"w1"}, After: after, Limit: 9}, func(at string, d sentinels.Document) bool {
				paged, after, n = append(paged, d.ID), at, n+1
				return true
			}); err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				break
			}
		}
		if all := ids(t, tx, words, document.Range{Equal: []any{"w1"}}); !slices.Equal(paged, all) || len(all) != 67 {
			t.Errorf("by pages %v, at once %v", paged, all)
		}
		for _, bad := range []string{"?", "AAAA", after} {
			err := tx.ScanIndex(ctx, x, document.Range{Equal: []any{"on"}, After: bad}, func(string, sentinels.Document) bool { return true })
			if abi.CodeOf(err) != abi.BadFields {
				t.Errorf("position %q: %v", bad, err)
			}
		}
		return nil
	})
	err := s.Update(ctx, func(tx *document.Tx) error {
		data, _ := json.Marshal(job{State: strings.Repeat("x", 2000)})
		_, err := tx.Put(ctx, "jobs", "long", data, 0)
		return err
	})
	if abi.CodeOf(err) != abi.BadFields || !strings.Contains(err.Error(), `document "long" of "jobs": index "priority": a text of 2000 bytes`) {
		t.Errorf("a text that is too long: %v", err)
	}
}

// An index that the store does not have in its version is built from the documents.
func TestIndexIsBuilt(t *testing.T) {
	ctx := within(t)
	db := store.NewMemory()
	transact(t, open(db), func(tx *document.Tx) error {
		for i := range 1200 {
			put(t, tx, fmt.Sprintf("%04d", i), job{State: "on", Priority: -i})
		}
		return nil
	})
	s := open(db)
	x := byPriority(1)
	if err := s.Register(ctx, x); err != nil {
		t.Fatal(err)
	}
	count := func(s *document.Store, x *document.Index, state string) (n int) {
		transact(t, s, func(tx *document.Tx) error {
			n = len(ids(t, tx, x, document.Range{Equal: []any{state}}))
			return nil
		})
		return n
	}
	if n := count(s, x, "on"); n != 1200 {
		t.Errorf("%d entries, want 1200", n)
	}
	puts := db.Stats().Puts
	s = open(db)
	if err := s.Register(ctx, byPriority(1)); err != nil || db.Stats().Puts != puts {
		t.Errorf("the same version again: %v, %d writes", err, db.Stats().Puts-puts)
	}
	if err := s.Register(ctx, byPriority(1)); err == nil {
		t.Error("two indexes of one name were registered")
	}
	s = open(db)
	other := byPriority(2)
	other.Values = func(d sentinels.Document) [][]any { return [][]any{{"other", jobOf(d).Priority}} }
	if err := s.Register(ctx, other); err != nil {
		t.Fatal(err)
	}
	if on, all := count(s, other, "on"), count(s, other, "other"); on != 0 || all != 1200 {
		t.Errorf("after a new version %d old entries and %d new ones, want 0 and 1200", on, all)
	}
}

func FuzzOrder(f *testing.F) {
	f.Add("a", int64(1), "a\x00", int64(-1))
	f.Add("", int64(0), "b", int64(0))
	f.Fuzz(func(t *testing.T, a string, n int64, b string, m int64) {
		if len(a) > 1000 || len(b) > 1000 {
			t.Skip()
		}
		key := func(values ...any) []byte {
			k, err := document.AppendOrdered(nil, values...)
			if err != nil {
				t.Fatal(err)
			}
			return k
		}
		want := cmp.Or(strings.Compare(a, b), cmp.Compare(n, m))
		if got := slices.Compare(key(a, n), key(b, m)); got != want {
			t.Errorf("%q %d and %q %d: %d, want %d", a, n, b, m, got, want)
		}
		want = cmp.Or(cmp.Compare(m, n), strings.Compare(b, a))
		d := func(v any) any { return document.Descending{Value: v} }
		if got := slices.Compare(key(d(n), d(a)), key(d(m), d(b))); got != want {
			t.Errorf("descending %d %q and %d %q: %d, want %d", n, a, m, b, got, want)
		}
	})
}
