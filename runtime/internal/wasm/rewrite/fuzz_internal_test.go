package rewrite

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/binary"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/binary/binarytest"
)

// FuzzRewrite: a scan does not panic, and wazero accepts the rewrite of every module
// that the scan and wazero accept.
func FuzzRewrite(f *testing.F) {
	files, err := filepath.Glob("../testdata/wat/*.wasm")
	if err != nil || len(files) == 0 {
		f.Fatal("no guests", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add(binarytest.Module("\x01\x01\x60\x01\x7f\x02\x7f\x7f", "\x03\x01\x00", "\x0a\x01\x06\x00\x20\x00\x20\x00\x0b"))
	for _, code := range bulkInstructions {
		f.Add(bulkModuleWith(code))
	}
	f.Add(binarytest.Module("\x04\x01\x70\x00\x01", "\x09\x01\x00\x41\x00\x0b\x00"))
	f.Fuzz(func(t *testing.T, wasm []byte) {
		l, err := binary.Scan(wasm, false)
		if err != nil {
			return
		}
		out := Rewrite(l, sameModule)
		if _, err := binary.Scan(out, true); err != nil {
			t.Fatalf("the rewritten module does not scan: %v", err)
		}
		if l.MemoryMin < 16 && compiles(t, wasm) && !compiles(t, out) {
			t.Fatalf("wazero accepts %x and not its rewrite %x", wasm, out)
		}
	})
}
