package runtime_test

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
)

// A film is a store that remembers every batch it was given. Batches commit in
// their order, so each prefix of them is what a crash at some moment leaves,
// and a test can go on from any of them.
type film struct {
	*store.Memory

	mu     sync.Mutex
	frames []store.Batch
	blobs  [][]byte
}

func newFilm() *film { return &film{Memory: store.NewMemory()} }

func (f *film) Enqueue(b store.Batch) *store.Ticket {
	kept := store.Batch{Trims: slices.Clone(b.Trims)}
	for _, a := range b.Appends {
		kept.Appends = append(kept.Appends, store.Append{Run: a.Run, Seq: a.Seq, Record: bytes.Clone(a.Record)})
	}
	for _, p := range b.Puts {
		kept.Puts = append(kept.Puts, store.Put{Bucket: p.Bucket, Key: bytes.Clone(p.Key), Value: bytes.Clone(p.Value), Delete: p.Delete, Check: p.Check})
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frames = append(f.frames, kept)
	return f.Memory.Enqueue(b)
}

func (f *film) PutBlob(data []byte) (string, error) {
	f.mu.Lock()
	f.blobs = append(f.blobs, bytes.Clone(data))
	f.mu.Unlock()
	return f.Memory.PutBlob(data)
}

// length is how many batches there are.
func (f *film) length() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.frames)
}

// until returns a store with the first n batches, filmed again.
func (f *film) until(t testing.TB, n int) *film {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	next := newFilm()
	t.Cleanup(func() { next.Close() })
	for _, b := range f.blobs {
		if _, err := next.PutBlob(b); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range f.frames[:n] {
		next.Enqueue(b) // one that was refused is refused again
	}
	if n > 0 {
		next.Enqueue(store.Batch{Puts: []store.Put{{Bucket: "film", Key: []byte("end"), Value: []byte("1")}}}).Wait(context.Background())
	}
	return next
}

// after returns how many batches there are up to and with the one that holds
// the nth record that fits; it fails the test if there is none.
func (f *film) after(t testing.TB, nth int, fits func(*journal.Record) bool) int {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, b := range f.frames {
		for _, a := range b.Appends {
			rec, err := journal.Decode(a.Record)
			if err != nil {
				t.Fatal(err)
			}
			if fits(rec) {
				if nth--; nth == 0 {
					return i + 1
				}
			}
		}
	}
	t.Fatal("the film has no such record")
	return 0
}

func kind(k journal.Kind) func(*journal.Record) bool {
	return func(r *journal.Record) bool { return r.Kind == k }
}

var _ store.Store = (*film)(nil)

// has reports whether there is a record that fits.
func (f *film) has(t testing.TB, fits func(*journal.Record) bool) bool {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.frames {
		for _, a := range b.Appends {
			rec, err := journal.Decode(a.Record)
			if err != nil {
				t.Fatal(err)
			}
			if fits(rec) {
				return true
			}
		}
	}
	return false
}

// inPass fits what fits does in iteration n.
func inPass(n int, fits func(*journal.Record) bool) func(*journal.Record) bool {
	at := 0
	return func(r *journal.Record) bool {
		if r.IterationStart != nil {
			at = r.IterationStart.Iteration
		}
		return at == n && fits(r)
	}
}

// count is how many records fit.
func (f *film) count(t testing.TB, fits func(*journal.Record) bool) int {
	t.Helper()
	n := 0
	f.has(t, func(r *journal.Record) bool {
		if fits(r) {
			n++
		}
		return false
	})
	return n
}
