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

// A recordingStore is a store that keeps every batch that it was given. Batches
// are committed in order, so a crash can leave any prefix of them, and a test can
// recover from each.
type recordingStore struct {
	*store.Memory

	mu      sync.Mutex
	batches []store.Batch
	blobs   [][]byte
	before  func(store.Batch) // called before each batch
}

func newRecordingStore() *recordingStore { return &recordingStore{Memory: store.NewMemory()} }

func (f *recordingStore) Enqueue(b store.Batch) *store.Ticket {
	kept := store.Batch{Trims: slices.Clone(b.Trims)}
	for _, a := range b.Appends {
		kept.Appends = append(kept.Appends, store.Append{Run: a.Run, Seq: a.Seq, Record: bytes.Clone(a.Record)})
	}
	for _, p := range b.Puts {
		kept.Puts = append(kept.Puts, store.Put{Bucket: p.Bucket, Key: bytes.Clone(p.Key), Value: bytes.Clone(p.Value), Delete: p.Delete, Check: p.Check})
	}
	f.mu.Lock()
	before := f.before
	f.mu.Unlock()
	if before != nil {
		before(kept)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.batches = append(f.batches, kept)
	return f.Memory.Enqueue(b)
}

func (f *recordingStore) PutBlob(data []byte) (string, error) {
	f.mu.Lock()
	f.blobs = append(f.blobs, bytes.Clone(data))
	f.mu.Unlock()
	return f.Memory.PutBlob(data)
}

// onEnqueue calls fn before each batch from now on.
func (f *recordingStore) onEnqueue(fn func(store.Batch)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = fn
}

// length returns the number of batches.
func (f *recordingStore) length() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.batches)
}

// prefix returns a recording store with the first n batches.
func (f *recordingStore) prefix(t testing.TB, n int) *recordingStore {
	t.Helper()
	return f.without(t, n, func(*journal.Record) bool { return false })
}

// without returns a recording store with the first n batches but without the records that fit, as a crash leaves them
// where what runs side by side had not been recorded yet.
func (f *recordingStore) without(t testing.TB, n int, fits func(*journal.Record) bool) *recordingStore {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	next := newRecordingStore()
	t.Cleanup(func() { next.Close() })
	for _, b := range f.blobs {
		if _, err := next.PutBlob(b); err != nil {
			t.Fatal(err)
		}
	}
	dropped := map[string]uint64{}
	for _, b := range f.batches[:n] {
		appends := b.Appends
		b.Appends = nil
		for _, a := range appends {
			rec, err := journal.Decode(a.Record)
			if err != nil {
				t.Fatal(err)
			}
			if fits(rec) {
				dropped[a.Run]++
				continue
			}
			a.Seq -= dropped[a.Run]
			b.Appends = append(b.Appends, a)
		}
		next.Enqueue(b) // one that was refused is refused again
	}
	if n > 0 {
		next.Enqueue(store.Batch{Puts: []store.Put{{Bucket: "recording", Key: []byte("end"), Value: []byte("1")}}}).Wait(context.Background())
	}
	return next
}

// after returns the number of batches up to and including the one with the nth record
// that fits. Without such a record the test fails.
func (f *recordingStore) after(t testing.TB, nth int, fits func(*journal.Record) bool) int {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, b := range f.batches {
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
	t.Fatal("the recording has no such record")
	return 0
}

func kind(k journal.Kind) func(*journal.Record) bool {
	return func(r *journal.Record) bool { return r.Kind == k }
}

var _ store.Store = (*recordingStore)(nil)

// has reports whether there is a record that fits.
func (f *recordingStore) has(t testing.TB, fits func(*journal.Record) bool) bool {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.batches {
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

// inIteration returns a filter for the records of iteration n that fit.
func inIteration(n int, fits func(*journal.Record) bool) func(*journal.Record) bool {
	at := 0
	return func(r *journal.Record) bool {
		if r.IterationStart != nil {
			at = r.IterationStart.Iteration
		}
		return at == n && fits(r)
	}
}

// count returns the number of records that fit.
func (f *recordingStore) count(t testing.TB, fits func(*journal.Record) bool) int {
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
