package store_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
)

// rawSync is the median-ish price of 4 KB written and synced on this disk, to
// compare with in the same run.
func rawSync(b *testing.B) time.Duration {
	b.Helper()
	f, err := os.Create(filepath.Join(b.TempDir(), "raw"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	page := make([]byte, 4096)
	const n = 200
	begin := time.Now()
	for i := range n {
		if _, err := f.WriteAt(page, int64(i%64)*4096); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(begin) / n
}

// BenchmarkAlone is one append that waits for its commit. "x-fsync" is its
// price in raw syncs.
func BenchmarkAlone(b *testing.B) {
	raw := rawSync(b)
	db := open(b, b.TempDir())
	defer db.Close()
	rec := make([]byte, 200)
	seq := uint64(0)
	begin := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		seq++
		if err := db.Enqueue(store.Batch{Appends: []store.Append{{Run: run, Seq: seq, Record: rec}}}).Wait(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(time.Since(begin))/float64(seq)/float64(raw), "x-fsync")
}

// BenchmarkProducers has 64 producers that wait for each of their batches.
// "fsync/op" is what one batch costs in raw syncs: below 1 is the gain of
// sharing commits.
func BenchmarkProducers(b *testing.B) {
	for _, kind := range []string{"puts", "appends"} {
		b.Run(kind, func(b *testing.B) {
			raw := rawSync(b)
			db := open(b, b.TempDir())
			defer db.Close()
			before := db.Stats()
			var left atomic.Int64
			left.Store(int64(b.N))
			var wg sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			begin := time.Now()
			for p := range 64 {
				wg.Go(func() {
					key, value := fmt.Appendf(nil, "%08d", p), make([]byte, 100)
					own := fmt.Sprintf("0197a3c4-5b6d-7e8f-9a0b-%012x", p)
					for seq := uint64(1); left.Add(-1) >= 0; seq++ {
						batch := store.Batch{Puts: []store.Put{{Bucket: "b", Key: key, Value: value}}}
						if kind == "appends" {
							batch = store.Batch{Appends: []store.Append{{Run: own, Seq: seq, Record: value}}}
						}
						if err := db.Enqueue(batch).Wait(context.Background()); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			took := time.Since(begin)
			after := db.Stats()
			b.ReportMetric(float64(b.N)/took.Seconds(), "batches/s")
			b.ReportMetric(float64(b.N)/float64(after.Commits-before.Commits), "batches/commit")
			b.ReportMetric(float64(took)/float64(b.N)/float64(raw), "fsync/op")
		})
	}
}
