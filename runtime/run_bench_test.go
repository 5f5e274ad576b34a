package runtime_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/plugins"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// The benchmarks of the engine with its real step types. Each has what it is to
// be compared with beside it, measured in the same run: the guest without the
// engine, the disk without the store.

// benchOutside answers commands at once: an effect, which waits for its commit,
// and a read, which does not.
type benchOutside struct{ calls atomic.Int64 }

func (o *benchOutside) Lookup(name string) (runtime.CommandInfo, bool) {
	switch name {
	case "bench/act":
		return runtime.CommandInfo{Name: name}, true
	case "bench/look":
		return runtime.CommandInfo{Name: name, ReadOnly: true}, true
	}
	return runtime.CommandInfo{}, false
}

func (o *benchOutside) Tools([]string) []runtime.CommandInfo { return nil }

func (o *benchOutside) Call(context.Context, runtime.CommandCall) (json.RawMessage, error) {
	o.calls.Add(1)
	return json.RawMessage(`{"success":true,"value":1}`), nil
}

// benchOpen opens a runtime with the built-in step types; an empty dir keeps
// the state in memory. Compiled code is shared by all benchmarks.
func benchOpen(b *testing.B, dir string, limits runtime.Limits) *runtime.Runtime {
	b.Helper()
	rt, err := runtime.Open(context.Background(), runtime.Options{
		Dir: dir, CacheDir: filepath.Join(os.TempDir(), fmt.Sprintf("sentinel-bench-cache-%d", os.Getuid())),
		Commands: new(benchOutside), Limits: limits,
		Plugins: []plugin.Source{{Name: "builtin", Wasm: plugins.Builtin, Manifest: plugins.Manifest, Trusted: true}},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := rt.Close(); err != nil {
			b.Error(err)
		}
	})
	return rt
}

// benchSteps is a definition of n steps that call the same command.
func benchSteps(b *testing.B, rt *runtime.Runtime, n int, command string) *sentinels.Definition {
	b.Helper()
	steps := make([]string, n)
	for i := range steps {
		steps[i] = fmt.Sprintf(`{"type":"command","command":%q,"params":{"value":"$iteration","text":"step %d"},"outputTo":"v%d"}`, command, i, i%5)
	}
	return decode(b, rt, `{"name":"bench","steps":[`+strings.Join(steps, ",")+`],"loop":{"type":"once"}}`)
}

func benchRun(b *testing.B, rt *runtime.Runtime, def *sentinels.Definition) {
	benchRunWith(b, rt, def, nil)
}

func benchRunWith(b *testing.B, rt *runtime.Runtime, def *sentinels.Definition, inputs map[string]json.RawMessage) {
	id, err := rt.Start(context.Background(), def, runtime.StartOptions{Workspace: "/w", Inputs: inputs})
	if err != nil {
		b.Error(err)
		return
	}
	res, err := rt.Wait(context.Background(), id)
	if err != nil || res.Status != sentinels.StatusCompleted {
		b.Errorf("%s: %v %v", res.Status, res.Error, err)
	}
}

// BenchmarkRunThreeSteps is a run of three effects on a disk: it waits for four
// commits, so it is measured beside four writes of a page with fsync.
func BenchmarkRunThreeSteps(b *testing.B) {
	b.Run("engine", func(b *testing.B) {
		rt := benchOpen(b, b.TempDir(), runtime.Limits{})
		def := benchSteps(b, rt, 3, "bench/act")
		benchRun(b, rt, def) // the first makes the pool's instances
		b.ReportAllocs()
		for b.Loop() {
			benchRun(b, rt, def)
		}
	})
	b.Run("engine, its events read", func(b *testing.B) {
		rt := benchOpen(b, b.TempDir(), runtime.Limits{})
		rt.ExpectRunEvents("sentinel:*:*")
		def := benchSteps(b, rt, 3, "bench/act")
		benchRun(b, rt, def)
		b.ReportAllocs()
		for b.Loop() {
			benchRun(b, rt, def)
		}
		if rt.RunEventPosition() < uint64(2*b.N) {
			b.Errorf("%d events of %d runs", rt.RunEventPosition(), b.N)
		}
	})
	b.Run("disk", func(b *testing.B) {
		f, err := os.Create(filepath.Join(b.TempDir(), "f"))
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		page := make([]byte, 4096)
		for i := int64(0); b.Loop(); i++ {
			for j := range int64(4) {
				if _, err := f.WriteAt(page, (i%64*4+j)*4096); err != nil {
					b.Fatal(err)
				}
				if err := f.Sync(); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

// BenchmarkStepPooled is one built-in step with one host call, without the
// disk: the whole engine, and the guest alone with a host call that answers at
// once.
func BenchmarkStepPooled(b *testing.B) {
	const n = 100
	perStep := func(b *testing.B, began time.Time, cpu time.Duration, steps int) {
		b.ReportMetric(float64(time.Since(began).Microseconds())/float64(steps), "us/step")
		b.ReportMetric(float64((cpuTime(b)-cpu).Microseconds())/float64(steps), "cpu-us/step")
	}
	b.Run("engine", func(b *testing.B) {
		rt := benchOpen(b, "", runtime.Limits{})
		def := benchSteps(b, rt, n, "bench/look")
		benchRun(b, rt, def)
		b.ReportAllocs()
		began, cpu, runs := time.Now(), cpuTime(b), 0
		for b.Loop() {
			benchRun(b, rt, def)
			runs++
		}
		perStep(b, began, cpu, runs*n)
	})
	b.Run("guest", func(b *testing.B) {
		h, err := wasm.Open(wasm.Options{CacheDir: filepath.Join(os.TempDir(), fmt.Sprintf("sentinel-bench-cache-%d", os.Getuid()))})
		if err != nil {
			b.Fatal(err)
		}
		defer h.Close()
		code, err := plugins.Builtin()
		if err != nil {
			b.Fatal(err)
		}
		m, err := h.Load(context.Background(), code, wasm.LoadOptions{Trusted: true})
		if err != nil {
			b.Fatal(err)
		}
		input := []byte(`{"abi":1,"step":{"type":"command","address":"7","path":"7","fields":{"command":"bench/look","params":{"value":1,"text":"step 7"}}},` +
			`"run":{"id":"0199a7c8-0f4e-7c11-8b1c-6d5e0c6a7b01","sentinel":"bench","iteration":1,"workspace":"/w","key":"0123456789abcdef0123456789abcdef"},"attempt":1}`)
		base := time.Now()
		inv := wasm.Invocation{Input: input, Seed: 1, ClockBase: base, Call: func(context.Context, string, []byte) (wasm.Reply, error) {
			return wasm.Reply{Body: []byte(`{"ok":{"success":true,"value":1}}`), Now: base}, nil
		}}
		b.ReportAllocs()
		began, cpu, runs := time.Now(), cpuTime(b), 0
		for b.Loop() {
			for range n {
				if _, err := m.Run(context.Background(), inv); err != nil {
					b.Fatal(err)
				}
			}
			runs++
		}
		perStep(b, began, cpu, runs*n)
	})
}

// BenchmarkSteps64Runs is how many durable steps a second 64 runs make at once.
func BenchmarkSteps64Runs(b *testing.B) {
	const runs, n = 64, 20
	rt := benchOpen(b, b.TempDir(), runtime.Limits{})
	def := benchSteps(b, rt, n, "bench/act")
	benchRun(b, rt, def)
	b.ReportAllocs()
	began, cpu, steps := time.Now(), cpuTime(b), 0
	for b.Loop() {
		var wg sync.WaitGroup
		for range runs {
			wg.Go(func() { benchRun(b, rt, def) })
		}
		wg.Wait()
		steps += runs * n
	}
	b.ReportMetric(float64(steps)/time.Since(began).Seconds(), "steps/s")
	b.ReportMetric(float64((cpuTime(b)-cpu).Microseconds())/float64(steps), "cpu-us/step")
}

// BenchmarkItemsSideBySide compares the processor time of a loop of 1,000 items with maxConcurrent 8 and without, in
// turns. The ratio is to be at most 1.1.
func BenchmarkItemsSideBySide(b *testing.B) {
	rt := benchOpen(b, "", runtime.Limits{})
	const loop = `{"name":"bench","steps":[{"type":"loop","each":{"from":1,"to":1000},%s"steps":[{"command":"bench/look","params":{"n":"$item"}}]}],"loop":{"type":"once"}}`
	one, many := decode(b, rt, fmt.Sprintf(loop, "")), decode(b, rt, fmt.Sprintf(loop, `"maxConcurrent":8,`))
	benchRun(b, rt, many) // compiles
	var alone, together time.Duration
	for b.Loop() {
		at := cpuTime(b)
		benchRun(b, rt, one)
		between := cpuTime(b)
		benchRun(b, rt, many)
		alone, together = alone+between-at, together+cpuTime(b)-between
	}
	if alone > 0 {
		b.ReportMetric(float64(together)/float64(alone), "ratio")
	}
}

// referenceWork is what step executions that pass a value on must do with it: copy it into the fields, the request and
// the output, whose records are named by digests, and read it once. A loop around a step records the value as often:
// in the answer of its nested steps, its checkpoint and its output.
func referenceWork(b *testing.B, value json.RawMessage, executions int) {
	for range executions {
		for range 3 {
			copied := append([]byte{'{'}, value...)
			digestSink = sha256.Sum256(copied)
		}
		if !json.Valid(value) {
			b.Fatal("not JSON")
		}
	}
}

var digestSink [sha256.Size]byte

// BenchmarkLargeValue is ten steps with a value of a megabyte, beside the copies that they need. The ratio is to be at
// most 2. The processor time of a condition's child process is not in it.
func BenchmarkLargeValue(b *testing.B) {
	steps := map[string]string{
		"set":       `{"type":"set","values":{"v":"$v","n":{"expr":"1"}}}`,
		"condition": `{"type":"condition","check":"$v.length > 0"}`,
		"stdin":     `{"type":"command","command":"bench/look","params":{"stdin":"$v"},"outputTo":"r"}`,
		"loop":      `{"type":"loop","count":1,"steps":[{"type":"set","values":{"w":"$v"}}]}`,
	}
	for _, value := range []struct {
		name string
		raw  json.RawMessage
	}{{"list", largeList(1 << 20)}, {"text", largeText(1 << 20)}} {
		for _, kind := range []string{"set", "condition", "stdin", "loop"} {
			b.Run(value.name+"/"+kind, func(b *testing.B) {
				rt := benchOpen(b, b.TempDir(), runtime.Limits{})
				list := strings.Repeat(steps[kind]+",", 9) + steps[kind]
				def := decode(b, rt, `{"name":"bench","inputs":{"v":{}},"steps":[`+list+`],"loop":{"type":"once"}}`)
				run := func() { benchRunWith(b, rt, def, map[string]json.RawMessage{"v": value.raw}) }
				run()
				b.ReportAllocs()
				executions := 10
				if kind == "loop" {
					executions = 20
				}
				var used, reference time.Duration
				for b.Loop() {
					at := cpuTime(b)
					run()
					between := cpuTime(b)
					referenceWork(b, value.raw, executions)
					used, reference = used+between-at, reference+cpuTime(b)-between
				}
				b.ReportMetric(float64(used.Microseconds())/float64(b.N)/1000, "cpu-ms/run")
				if reference > 0 {
					b.ReportMetric(float64(used)/float64(reference), "ratio")
				}
			})
		}
	}
}
