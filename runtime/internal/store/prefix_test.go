package store_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
)

// TestCrashLeavesPrefix enqueues random batches and copies the committed state
// meanwhile. Each copy must be the state after some number of batches, at least
// after those acknowledged before the copy.
func TestCrashLeavesPrefix(t *testing.T) {
	kinds := []struct {
		name string
		open func(t *testing.T) (s store.Store, crash func() store.Store)
	}{
		{"memory", func(*testing.T) (store.Store, func() store.Store) {
			m := store.NewMemory()
			return m, func() store.Store { return m.Snapshot() }
		}},
		{"bbolt", func(t *testing.T) (store.Store, func() store.Store) {
			dir := t.TempDir()
			db := open(t, filepath.Join(dir, "live"))
			n := 0
			return db, func() store.Store {
				n++
				copied := filepath.Join(dir, fmt.Sprint(n))
				if err := db.CrashCopy(copied); err != nil {
					t.Fatal(err)
				}
				return open(t, copied)
			}
		}},
	}
	for _, kind := range kinds {
		for seed := range uint64(12) {
			t.Run(fmt.Sprintf("%s/%d", kind.name, seed), func(t *testing.T) {
				s, crash := kind.open(t)
				defer closeStore(t, s)
				checkPrefix(t, s, crash, rand.New(rand.NewPCG(seed, 7)))
			})
		}
	}
}

func checkPrefix(t *testing.T, s store.Store, crash func() store.Store, rng *rand.Rand) {
	m := newModel()
	states := []string{m.String()} // after each batch
	var tickets []*store.Ticket
	var wants []error
	acked := 0
	for i := range 150 {
		b, want := m.random(rng, i)
		tickets = append(tickets, s.Enqueue(b))
		wants = append(wants, want)
		states = append(states, m.String())
		if rng.IntN(15) != 0 {
			continue
		}
		if rng.IntN(2) == 0 {
			<-tickets[i].Done()
			acked = i + 1
		}
		copied := crash()
		got := read(t, copied)
		if !slices.Contains(states[acked:], got) {
			t.Fatalf("after %d batches, %d acknowledged, a crash leaves a state that never existed:\n%s", i+1, acked, got)
		}
		closeStore(t, copied)
	}
	for i, ticket := range tickets {
		if err := ticket.Wait(t.Context()); !errors.Is(err, wants[i]) {
			t.Errorf("batch %d: %v, want %v", i, err, wants[i])
		}
	}
	if got := read(t, s); got != states[len(states)-1] {
		t.Errorf("at the end:\n%s\nwant:\n%s", got, states[len(states)-1])
	}
}

var modelRuns = []string{
	"0197a3c4-5b6d-7e8f-9a0b-0000000000a0",
	"0197a3c4-5b6d-7e8f-9a0b-0000000000a1",
	"ffffffff-ffff-ffff-ffff-ffffffffffff",
}

// A model has the expected content of a store.
type model struct {
	journals map[string][]uint64
	pairs    map[string]string
}

func newModel() *model {
	return &model{journals: map[string][]uint64{}, pairs: map[string]string{}}
}

func (m *model) last(run string) uint64 {
	if j := m.journals[run]; len(j) > 0 {
		return j[len(j)-1]
	}
	return 0
}

var errModel = errors.New("refused by the model")

// random returns a batch and the error expected for it, and applies it to the
// model.
func (m *model) random(rng *rand.Rand, i int) (b store.Batch, want error) {
	b.Lazy = rng.IntN(3) == 0
	next := map[string]uint64{}
	for range rng.IntN(4) {
		run := modelRuns[rng.IntN(len(modelRuns))]
		if next[run] == 0 {
			next[run] = m.last(run) + 1
		}
		seq := next[run]
		if rng.IntN(40) == 0 {
			seq, want = seq+1, store.ErrSequence
		}
		next[run]++
		b.Appends = append(b.Appends, store.Append{Run: run, Seq: seq, Record: fmt.Append(nil, seq)})
	}
	for range rng.IntN(3) {
		key := fmt.Sprint(rng.IntN(6))
		b.Puts = append(b.Puts, store.Put{Bucket: "b", Key: []byte(key), Value: fmt.Append(nil, i), Delete: rng.IntN(3) == 0})
	}
	if rng.IntN(10) == 0 {
		want = errModel // checks come before sequences
		b.Puts = append(b.Puts, store.Put{Bucket: "b", Key: []byte("x"), Check: func([]byte, bool) error { return errModel }})
	}
	if rng.IntN(6) == 0 {
		run := modelRuns[rng.IntN(len(modelRuns))]
		trim := store.Trim{Run: run, To: m.last(run) / 2}
		if rng.IntN(5) == 0 {
			trim.To = store.All
		}
		b.Trims = append(b.Trims, trim)
	}
	if want != nil {
		return b, want
	}
	for _, a := range b.Appends {
		m.journals[a.Run] = append(m.journals[a.Run], a.Seq)
	}
	for _, p := range b.Puts {
		if p.Delete {
			delete(m.pairs, string(p.Key))
		} else {
			m.pairs[string(p.Key)] = string(p.Value)
		}
	}
	for _, tr := range b.Trims {
		m.journals[tr.Run] = slices.DeleteFunc(slices.Clone(m.journals[tr.Run]), func(seq uint64) bool {
			return seq >= tr.From && seq <= tr.To
		})
	}
	return b, nil
}

func (m *model) String() string {
	var text strings.Builder
	for _, run := range modelRuns {
		fmt.Fprintf(&text, "%s %v\n", run, m.journals[run])
	}
	for i := range 6 {
		if v, ok := m.pairs[fmt.Sprint(i)]; ok {
			fmt.Fprintf(&text, "%d=%s\n", i, v)
		}
	}
	return text.String()
}

// read reads the content of a store into a model and returns its text.
func read(t *testing.T, s store.Store) string {
	t.Helper()
	m := newModel()
	for _, run := range modelRuns {
		err := s.Journal(run, 0, func(seq uint64, record []byte) error {
			if string(record) != fmt.Sprint(seq) {
				return fmt.Errorf("record %d contains %q", seq, record)
			}
			m.journals[run] = append(m.journals[run], seq)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	err := s.Scan("b", nil, nil, false, func(k, v []byte) bool {
		m.pairs[string(k)] = string(v)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return m.String()
}
