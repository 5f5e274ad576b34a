package runtime_test

import (
	"context"
	"os"
	"path/filepath"
	stdruntime "runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
)

// residentBytes returns the bytes of memory that this process has, after what can be
// given back was: 0 where the system does not say.
func residentBytes() int64 {
	debug.FreeOSMemory()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kb << 10
		}
	}
	return 0
}

// BenchmarkParked is what runs cost that wait, most of them without a guest in
// memory.
func BenchmarkParked(b *testing.B) {
	runs := 10_000
	if testing.Short() {
		runs = 1_000
	}
	if n, err := strconv.Atoi(os.Getenv("SENTINEL_BENCH_RUNS")); err == nil {
		runs = n
	}
	for b.Loop() {
		rt := benchOpen(b, b.TempDir(), runtime.Limits{})
		def := decode(b, rt, `{"name":"parked","steps":[{"type":"wait","durationMs":3600000}],"loop":{"type":"once"}}`)
		before, began, cpu := residentBytes(), time.Now(), cpuTime(b)
		for range runs {
			if _, err := rt.Start(context.Background(), def, runtime.StartOptions{Workspace: "/w"}); err != nil {
				b.Fatal(err)
			}
		}
		for parked := 0; parked < runs; time.Sleep(20 * time.Millisecond) {
			parked = rt.Probe().Waiting()
		}
		took, spent := time.Since(began), cpuTime(b)-cpu
		for range 3 { // each collection halves stacks that are mostly empty, as those of the next minutes would
			stdruntime.GC()
		}
		after := residentBytes()
		var m stdruntime.MemStats
		stdruntime.ReadMemStats(&m)
		b.ReportMetric(float64(after-before)/float64(runs), "rss-B/run")
		b.ReportMetric(float64(m.HeapAlloc)/float64(runs), "heap-B/run")
		b.ReportMetric(float64(m.StackInuse)/float64(runs), "stack-B/run")
		b.ReportMetric(float64(took.Microseconds())/float64(runs), "us/run")
		b.ReportMetric(float64(spent.Microseconds())/float64(runs), "cpu-us/run")
		b.ReportMetric(float64(stdruntime.NumGoroutine())/float64(runs), "goroutines/run")
		profiles(b)
		rt.Close()
	}
}

// profiles writes what memory holds to the folder that SENTINEL_BENCH_HEAP
// names, to see what of the figures is whose.
func profiles(b *testing.B) {
	b.Helper()
	dir := os.Getenv("SENTINEL_BENCH_HEAP")
	if dir == "" {
		return
	}
	for _, name := range []string{"heap", "goroutine"} {
		f, err := os.Create(filepath.Join(dir, name+".prof"))
		if err != nil {
			b.Fatal(err)
		}
		_ = pprof.Lookup(name).WriteTo(f, 0)
		f.Close()
	}
}

// BenchmarkPersonBesideBranches is how long a person's run of one step takes: alone, and while one run of an agent
// has thousands of branches that wait.
func BenchmarkPersonBesideBranches(b *testing.B) {
	branches := 2000
	if n, err := strconv.Atoi(os.Getenv("SENTINEL_BENCH_RUNS")); err == nil {
		branches = n
	}
	for _, beside := range []struct{ name, branch string }{
		{"alone", ""},
		{"waits", `[{"type":"wait","durationMs":3600000}]`},
		{"approvals", `[{"type":"approve","prompt":"go?"}]`},
	} {
		b.Run(beside.name, func(b *testing.B) {
			rt := benchOpen(b, b.TempDir(), runtime.Limits{})
			quick := decode(b, rt, `{"name":"quick","steps":[{"type":"command","command":"bench/look"}],"loop":{"type":"once"}}`)
			if beside.branch != "" {
				list := strings.TrimSuffix(strings.Repeat(beside.branch+",", branches), ",")
				many := decode(b, rt, `{"name":"many","steps":[{"type":"parallel","branches":[`+list+`]}],"loop":{"type":"once"}}`)
				if _, err := rt.Start(context.Background(), many, runtime.StartOptions{Workspace: "/w", As: "agent:ci"}); err != nil {
					b.Fatal(err)
				}
			}
			var longest time.Duration
			for b.Loop() {
				began := time.Now()
				id, err := rt.Start(context.Background(), quick, runtime.StartOptions{Workspace: "/w"})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := rt.Wait(context.Background(), id); err != nil {
					b.Fatal(err)
				}
				longest = max(longest, time.Since(began))
			}
			b.ReportMetric(float64(longest.Milliseconds()), "longest-ms")
		})
	}
}
