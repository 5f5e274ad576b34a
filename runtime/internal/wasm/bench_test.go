package wasm_test

import (
	"context"
	"encoding/binary"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	extism "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
)

// BenchmarkInstance measures a call of an untrusted plugin in a fresh and in a
// prewarmed instance, and the same module on wazero ("bare") and on the SDK alone.
// They alternate, so that the ratios hold on a busy machine. Fresh is instantiate,
// describe, run and close. The figures are medians in microseconds; x-bare is the
// ratio to wazero.
//
// Bare and go-sdk have no interruption points, clock, limits or rewrite.
func BenchmarkInstance(b *testing.B) {
	for _, c := range []struct {
		name  string
		guest []byte
		input []byte
	}{
		{"echo-1KB", watGuest(b, "echo"), input273()},
		{"hostcall-1KB", watGuest(b, "hostcall"), []byte(`1`)},
		{"go-3MB-12calls", replayGuest(b), []byte("x")},
	} {
		b.Run(c.name, func(b *testing.B) {
			h := open(b, wasm.Options{})
			m := load(b, h, c.guest, wasm.LoadOptions{})
			defer m.Release()
			pooled := load(b, h, c.guest, wasm.LoadOptions{Trusted: true, Reuse: true})
			defer pooled.Release()
			bare, plain := bareWazero(b, c.guest), plainSDK(b, c.guest)
			run := func(m *wasm.Module, seed uint64) func() error {
				return func() error {
					_, err := m.Run(context.Background(), wasm.Invocation{Input: c.input, Call: replyOne, ClockBase: start, Seed: seed})
					return err
				}
			}
			took := map[string][]float64{}
			time1 := func(name string, f func() error) {
				began := time.Now()
				if err := f(); err != nil {
					b.Fatal(name, err)
				}
				took[name] = append(took[name], float64(time.Since(began).Nanoseconds())/1e3)
			}
			for b.Loop() {
				time1("bare", func() error { return bare(c.input) })
				time1("go-sdk", func() error { return plain(c.input) })
				time1("fresh", run(m, 1))
				time1("prewarmed", run(m, prewarmedSeed(b, m)))
				time1("pooled", run(pooled, 1)) // fresh if the guest is not stateless
			}
			median := func(name string) float64 {
				slices.Sort(took[name])
				return took[name][len(took[name])/2]
			}
			for name := range took {
				b.ReportMetric(median(name), name+"-us")
				b.ReportMetric(median(name)/median("bare"), name+"-x-bare")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// replyOne answers every host call with 1.
func replyOne(context.Context, string, []byte) (wasm.Reply, error) {
	return wasm.Reply{Body: []byte(`{"ok":1}`)}, nil
}

// bareWazero returns a function that makes one call on wazero alone. Go functions
// on one slice serve the kernel imports.
func bareWazero(b *testing.B, guest []byte) func(input []byte) error {
	b.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntime(ctx)
	b.Cleanup(func() { rt.Close(ctx) })
	wasi_snapshot_preview1.MustInstantiate(ctx, rt)
	var input []byte
	heap, top, lengths := make([]byte, 1<<20), uint64(8), map[uint64]uint64{}
	alloc := func(n uint64) uint64 {
		at := top
		lengths[at] = n
		top += n + 8
		return at
	}
	kernel := rt.NewHostModuleBuilder("extism:host/env")
	export := func(name string, f any) { kernel.NewFunctionBuilder().WithFunc(f).Export(name) }
	export("alloc", alloc)
	export("free", func(uint64) {})
	export("length", func(at uint64) uint64 { return lengths[at] })
	export("store_u8", func(at uint64, v uint32) { heap[at] = byte(v) })
	export("store_u64", func(at, v uint64) { binary.LittleEndian.PutUint64(heap[at:], v) })
	export("load_u64", func(at uint64) uint64 { return binary.LittleEndian.Uint64(heap[at:]) })
	export("load_u8", func(at uint64) uint32 { return uint32(heap[at]) })
	export("input_length", func() uint64 { return uint64(len(input)) })
	export("input_load_u8", func(at uint64) uint32 { return uint32(input[at]) })
	export("input_load_u64", func(at uint64) uint64 { return binary.LittleEndian.Uint64(input[at:]) })
	export("output_set", func(_, _ uint64) {})
	export("error_set", func(uint64) {})
	if _, err := kernel.Instantiate(ctx); err != nil {
		b.Fatal(err)
	}
	user := rt.NewHostModuleBuilder("extism:host/user")
	user.NewFunctionBuilder().WithFunc(func(uint64) uint64 {
		at := alloc(8)
		copy(heap[at:], `{"ok":1}`)
		return at
	}).Export("sentinel_eval")
	if _, err := user.Instantiate(ctx); err != nil {
		b.Fatal(err)
	}
	code, err := rt.CompileModule(ctx, guest)
	if err != nil {
		b.Fatal(err)
	}
	return func(in []byte) error {
		input, top = in, 8
		clear(lengths)
		inst, err := rt.InstantiateModule(ctx, code, wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize"))
		if err != nil {
			return err
		}
		defer inst.Close(ctx)
		for _, name := range []string{"describe", "run"} {
			if _, err := inst.ExportedFunction(name).Call(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

// plainSDK returns a function that makes one call on the SDK as its documentation
// shows it.
func plainSDK(b *testing.B, guest []byte) func(input []byte) error {
	b.Helper()
	ctx := context.Background()
	eval := extism.NewHostFunctionWithStack("sentinel_eval", func(_ context.Context, p *extism.CurrentPlugin, stack []uint64) {
		if _, err := p.ReadBytes(stack[0]); err != nil {
			b.Error(err)
		}
		at, err := p.WriteString(`{"ok":1}`)
		if err != nil {
			b.Error(err)
		}
		stack[0] = at
	}, []extism.ValueType{extism.ValueTypePTR}, []extism.ValueType{extism.ValueTypePTR})
	eval.SetNamespace("extism:host/user")
	compiled, err := extism.NewCompiledPlugin(ctx, extism.Manifest{Wasm: []extism.Wasm{extism.WasmData{Data: guest}}},
		extism.PluginConfig{EnableWasi: true}, []extism.HostFunction{eval})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { compiled.Close(ctx) })
	return func(input []byte) error {
		inst, err := compiled.Instance(ctx, extism.PluginInstanceConfig{})
		if err != nil {
			return err
		}
		defer inst.Close(ctx)
		if _, _, err := inst.Call("describe", nil); err != nil {
			return err
		}
		_, _, err = inst.Call("run", input)
		return err
	}
}

// BenchmarkCall measures a run with 273 bytes of input and output in each kind of
// instance.
func BenchmarkCall(b *testing.B) {
	h := open(b, wasm.Options{})
	input := input273()
	for _, c := range []struct {
		name  string
		guest []byte
		opt   wasm.LoadOptions
	}{
		{"echo/pooled", watGuest(b, "echo"), wasm.LoadOptions{Trusted: true}},
		{"echo/reuse", watGuest(b, "echo"), wasm.LoadOptions{Reuse: true}},
		{"echo/fresh", watGuest(b, "echo"), wasm.LoadOptions{}},
		{"hostcall/pooled", watGuest(b, "hostcall"), wasm.LoadOptions{Trusted: true}},
		{"hostcall/fresh", watGuest(b, "hostcall"), wasm.LoadOptions{}},
		{"go/fresh", replayGuest(b), wasm.LoadOptions{}},
	} {
		b.Run(c.name, func(b *testing.B) {
			m := load(b, h, c.guest, c.opt)
			defer m.Release()
			input := input
			if c.name == "go/fresh" {
				input = []byte("world")
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.Run(context.Background(), wasm.Invocation{Input: input, Call: echoRequest, ClockBase: start}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkLoad measures a load with and without compiled code in the cache.
func BenchmarkLoad(b *testing.B) {
	for _, c := range []struct {
		name  string
		guest []byte
	}{{"small", watGuest(b, "hostcall")}, {"go", replayGuest(b)}} {
		for _, cold := range []bool{true, false} {
			b.Run(c.name+map[bool]string{true: "/cold", false: "/cached"}[cold], func(b *testing.B) {
				dir := b.TempDir()
				h := open(b, wasm.Options{CacheDir: dir})
				load(b, h, c.guest, wasm.LoadOptions{}).Release()
				if cold {
					if err := h.Prune(0); err != nil {
						b.Fatal(err)
					}
				}
				for b.Loop() {
					load(b, h, c.guest, wasm.LoadOptions{}).Release()
					if cold {
						b.StopTimer()
						if err := h.Prune(0); err != nil {
							b.Fatal(err)
						}
						if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
							b.Fatalf("%d folders are left, %v", len(left), err)
						}
						b.StartTimer()
					}
				}
			})
		}
	}
}

func input273() []byte {
	input := make([]byte, 273)
	for i := range input {
		input[i] = 'x'
	}
	input[0], input[272] = '"', '"'
	return input
}

// BenchmarkConcurrentRuns measures 64 callers of one pooled module. In "compute"
// a host call returns at once; in "wait" it blocks for a millisecond, as one that
// is journaled does, so that all 64 guests are active at the same time. An
// operation is one run of each caller; reused-% is how many runs found an idle
// instance.
func BenchmarkConcurrentRuns(b *testing.B) {
	const callers = 64
	for _, c := range []struct {
		name string
		wait time.Duration
	}{{"compute", 0}, {"wait", time.Millisecond}} {
		b.Run(c.name, func(b *testing.B) {
			h := open(b, wasm.Options{})
			m := load(b, h, watGuest(b, "hostcall"), wasm.LoadOptions{Trusted: true})
			defer m.Release()
			answer := func(context.Context, string, []byte) (wasm.Reply, error) {
				if c.wait > 0 {
					time.Sleep(c.wait)
				}
				return wasm.Reply{Body: []byte(`{"ok":1}`)}, nil
			}
			var reused atomic.Int64
			began, runs := time.Now(), 0
			b.ReportAllocs()
			for b.Loop() {
				var wg sync.WaitGroup
				for range callers {
					wg.Go(func() {
						got, err := m.Run(context.Background(), wasm.Invocation{Input: []byte(`1`), Call: answer})
						if err != nil {
							b.Error(err)
						}
						if got.Reused {
							reused.Add(1)
						}
					})
				}
				wg.Wait()
				runs += callers
			}
			b.ReportMetric(float64(runs)/time.Since(began).Seconds(), "runs/s")
			b.ReportMetric(100*float64(reused.Load())/float64(runs), "reused-%")
			b.ReportMetric(float64(h.MemoryBytes())/(1<<20), "idle-MiB")
		})
	}
}
