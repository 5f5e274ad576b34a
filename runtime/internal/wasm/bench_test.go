package wasm_test

import (
	"context"
	"encoding/binary"
	"os"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
)

// BenchmarkCall is one run of 273 bytes in and out, in each kind of instance.
func BenchmarkCall(b *testing.B) {
	h := open(b, wasm.Options{})
	input := input273()
	for _, c := range []struct {
		name  string
		guest []byte
		opt   wasm.LoadOptions
	}{
		{"echo/pooled", sin(b, "echo"), wasm.LoadOptions{Trusted: true}},
		{"echo/reuse", sin(b, "echo"), wasm.LoadOptions{Reuse: true}},
		{"echo/fresh", sin(b, "echo"), wasm.LoadOptions{}},
		{"hostcall/pooled", sin(b, "hostcall"), wasm.LoadOptions{Trusted: true}},
		{"hostcall/fresh", sin(b, "hostcall"), wasm.LoadOptions{}},
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
				if _, err := m.Run(context.Background(), wasm.Invocation{Input: input, Call: ok, ClockBase: start}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkEngine is the same guest on the engine alone, its kernel calls
// answered by Go functions on one slice: what BenchmarkCall's figures are to be
// compared with.
func BenchmarkEngine(b *testing.B) {
	for _, fresh := range []bool{false, true} {
		name := map[bool]string{false: "echo/warm", true: "echo/fresh"}[fresh]
		b.Run(name, func(b *testing.B) {
			ctx := context.Background()
			rt := wazero.NewRuntime(ctx)
			defer rt.Close(ctx)
			input, heap, top, out := input273(), make([]byte, 64<<10), uint64(8), uint64(0)
			builder := rt.NewHostModuleBuilder("extism:host/env")
			export := func(name string, f any) { builder.NewFunctionBuilder().WithFunc(f).Export(name) }
			export("alloc", func(n uint64) uint64 { top += n; return top - n })
			export("length", func(uint64) uint64 { return 0 })
			export("store_u8", func(at uint64, v uint32) { heap[at] = byte(v) })
			export("store_u64", func(at, v uint64) { binary.LittleEndian.PutUint64(heap[at:], v) })
			export("load_u64", func(at uint64) uint64 { return binary.LittleEndian.Uint64(heap[at:]) })
			export("load_u8", func(at uint64) uint32 { return uint32(heap[at]) })
			export("input_length", func() uint64 { return uint64(len(input)) })
			export("input_load_u8", func(at uint64) uint32 { return uint32(input[at]) })
			export("input_load_u64", func(at uint64) uint64 { return binary.LittleEndian.Uint64(input[at:]) })
			export("output_set", func(_, n uint64) { out = n })
			export("error_set", func(uint64) {})
			if _, err := builder.Instantiate(ctx); err != nil {
				b.Fatal(err)
			}
			code, err := rt.CompileModule(ctx, sin(b, "echo"))
			if err != nil {
				b.Fatal(err)
			}
			var inst api.Module
			make := func() {
				if inst, err = rt.InstantiateModule(ctx, code, wazero.NewModuleConfig().WithName("")); err != nil {
					b.Fatal(err)
				}
			}
			make()
			b.ReportAllocs()
			for b.Loop() {
				if top = 8; fresh {
					make()
				}
				if _, err := inst.ExportedFunction("run").Call(ctx); err != nil || out == 0 {
					b.Fatal(err)
				}
				if fresh {
					inst.Close(ctx)
				}
			}
		})
	}
}

// BenchmarkLoad is a load with and without the disk's compiled code.
func BenchmarkLoad(b *testing.B) {
	for _, c := range []struct {
		name  string
		guest []byte
	}{{"small", sin(b, "hostcall")}, {"go", replayGuest(b)}} {
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
