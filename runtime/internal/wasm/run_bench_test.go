package wasm_test

import (
	"context"
	"os"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
)

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
