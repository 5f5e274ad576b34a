package rewrite

import (
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/binary"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/binary/binarytest"
)

// BenchmarkRewrite measures the scan and the rewrite of a module with 2,000 functions
// of 1 KB, half of which have a bulk instruction.
func BenchmarkRewrite(b *testing.B) {
	const functions = 2_000
	code := strings.Repeat("\x20\x00\x21\x01\x20\x02\x21\x03", 128)
	body := func(code string) string {
		code = "\x01\x04\x7f" + code + "\x0b"
		return string(binary.AppendU32(nil, uint32(len(code)))) + code
	}
	bodies := strings.Repeat(body(code)+body(code+"\x41\x00\x41\x00\x41\x00\xfc\x0b\x00"), functions/2)
	count := string(binary.AppendU32(nil, functions))
	wasm := binarytest.Module(
		"\x01\x01\x60\x00\x00",
		"\x03"+count+strings.Repeat("\x00", functions),
		"\x05\x01\x00\x01",
		"\x0a"+count+bodies,
	)
	b.SetBytes(int64(len(wasm)))
	for b.Loop() {
		m, err := binary.Scan(wasm, false)
		if err != nil {
			b.Fatal(err)
		}
		Rewrite(m, sameModule)
	}
}
