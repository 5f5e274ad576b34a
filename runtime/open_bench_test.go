package runtime_test

import (
	"context"
	"testing"

	"github.com/sentinel-runtime/sentinel/plugins"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
)

// BenchmarkOpen is what starting costs when the built-in guest was compiled
// before; the guest's part of it alone is beside it.
func BenchmarkOpen(b *testing.B) {
	b.Run("runtime", func(b *testing.B) {
		dir := b.TempDir()
		open := func() {
			rt, err := runtime.Open(context.Background(), runtime.Options{
				Dir: dir, Plugins: []plugin.Source{{Name: "builtin", Wasm: plugins.Builtin, Manifest: plugins.Manifest, Trusted: true}},
			})
			if err != nil {
				b.Fatal(err)
			}
			rt.Close()
		}
		open() // compiles
		for b.Loop() {
			open()
		}
	})
	b.Run("guest", func(b *testing.B) {
		dir := b.TempDir()
		code, err := plugins.Builtin()
		if err != nil {
			b.Fatal(err)
		}
		open := func() {
			h, err := wasm.Open(wasm.Options{CacheDir: dir})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := h.Load(context.Background(), code, wasm.LoadOptions{Trusted: true}); err != nil {
				b.Fatal(err)
			}
			h.Close()
		}
		open()
		for b.Loop() {
			open()
		}
	})
}
