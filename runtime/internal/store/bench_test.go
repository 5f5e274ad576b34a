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

// rawSync returns the mean time to write and sync 4 KB on this disk, as a
// reference for the same run.
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

// BenchmarkAlone measures one append that waits for its commit. "x-fsync" is
// the time in units of rawSync.
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

// BenchmarkProducers measures 64 producers that wait for each of their batches.
// "fsync/op" is the time of one batch in units of rawSync; below 1 is the gain
// of shared commits.
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

// BenchmarkRead measures reads including their checksums: a pair, a scan of
// 1,000 pairs and a journal of 1,000 records.
func BenchmarkRead(b *testing.B) {
	for _, size := range []int{200, 4096} {
		db := open(b, b.TempDir())
		defer db.Close()
		var batch store.Batch
		for i := range 1000 {
			value := make([]byte, size)
			batch.Puts = append(batch.Puts, store.Put{Bucket: "b", Key: fmt.Appendf(nil, "%08d", i), Value: value})
			batch.Appends = append(batch.Appends, store.Append{Run: run, Seq: uint64(i + 1), Record: value})
		}
		wait(b, db.Enqueue(batch))
		b.Run(fmt.Sprintf("get/%d", size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, found, err := db.Get("b", []byte("00000500")); !found || err != nil {
					b.Fatal(found, err)
				}
			}
		})
		b.Run(fmt.Sprintf("scan/%d", size), func(b *testing.B) {
			b.SetBytes(int64(1000 * size))
			for b.Loop() {
				if err := db.Scan("b", nil, nil, false, func(_, _ []byte) bool { return true }); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("journal/%d", size), func(b *testing.B) {
			b.SetBytes(int64(1000 * size))
			for b.Loop() {
				if err := db.Journal(run, 1, func(uint64, []byte) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkOpen measures the opening of a store of 50 MB that its last owner has
// closed. "x-bbolt" is the time in units of what bbolt alone takes to open the
// file, which reads all pages too.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	db := open(b, dir)
	for i := range 40 {
		var batch store.Batch
		for j := range 500 {
			batch.Puts = append(batch.Puts, store.Put{Bucket: "b", Key: fmt.Appendf(nil, "%04d-%08d", i, j), Value: make([]byte, 100+i*100)})
		}
		wait(b, db.Enqueue(batch))
	}
	closeStore(b, db)
	file := filepath.Join(dir, "store.db")
	var ours, bbolt time.Duration
	n := 0
	for b.Loop() {
		n++
		begin := time.Now()
		closeStore(b, open(b, dir))
		ours += time.Since(begin)
		begin = time.Now()
		if err := store.BoltOpen(file); err != nil {
			b.Fatal(err)
		}
		bbolt += time.Since(begin)
	}
	info, err := os.Stat(file)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(ours)/float64(bbolt), "x-bbolt")
	b.ReportMetric(float64(ours.Milliseconds())/float64(n), "ms/open")
	b.ReportMetric(float64(info.Size()>>20), "MB")
}
