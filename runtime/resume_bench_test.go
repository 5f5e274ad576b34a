package runtime_test

import (
	"context"
	"os"
	stdruntime "runtime"
	"strconv"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
)

// BenchmarkResumeAll is the start of a process whose last one left 10,000 runs
// that wait. "back" is when ResumeAll returns, "waiting" when every run waits
// again for what it waited for.
func BenchmarkResumeAll(b *testing.B) {
	runs := 10_000
	if testing.Short() {
		runs = 1_000
	}
	if n, err := strconv.Atoi(os.Getenv("SENTINEL_BENCH_RUNS")); err == nil {
		runs = n
	}
	dir := b.TempDir()
	ctx := context.Background()
	rt := benchOpen(b, dir, runtime.Limits{})
	def := decode(b, rt, `{"name":"parked","steps":[{"type":"wait","durationMs":36000000}],"loop":{"type":"once"}}`)
	for range runs {
		if _, err := rt.Start(ctx, def, runtime.StartOptions{Workspace: "/w"}); err != nil {
			b.Fatal(err)
		}
	}
	for rt.Probe().Waiting() < runs {
		time.Sleep(20 * time.Millisecond)
	}
	rt.Close()
	var back, waits, spent time.Duration
	var rss, opened int64
	for b.Loop() {
		began := time.Now()
		rt := benchOpen(b, dir, runtime.Limits{})
		opened += time.Since(began).Microseconds()
		before := residentBytes()
		began, cpu := time.Now(), cpuTime(b)
		rec, err := rt.ResumeAll(ctx, runtime.ResumeOptions{})
		if err != nil || rec.Resumed != runs {
			b.Fatalf("%+v, %v", rec, err)
		}
		back += time.Since(began)
		for rt.Probe().Waiting() < runs {
			time.Sleep(time.Millisecond)
		}
		waits += time.Since(began)
		spent += cpuTime(b) - cpu
		for range 3 {
			stdruntime.GC()
		}
		rss += residentBytes() - before
		var m stdruntime.MemStats
		stdruntime.ReadMemStats(&m)
		b.ReportMetric(float64(m.HeapAlloc)/float64(runs), "heap-B/run")
		b.ReportMetric(float64(m.StackInuse)/float64(runs), "stack-B/run")
		profiles(b)
		rt.Close()
	}
	n := float64(b.N)
	b.ReportMetric(back.Seconds()*1000/n, "back-ms")
	b.ReportMetric(waits.Seconds()*1000/n, "waiting-ms")
	b.ReportMetric(spent.Seconds()*1000/n, "cpu-ms")
	b.ReportMetric(float64(opened)/1000/n, "open-ms")
	b.ReportMetric(float64(rss)/n/float64(runs), "rss-B/run")
}
