package binary_test

import (
	stdruntime "runtime"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/binary"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/binary/binarytest"
)

// scanAllocated returns how many bytes a scan allocated, and its error.
func scanAllocated(wasm []byte) (allocated uint64, err error) {
	var before, after stdruntime.MemStats
	stdruntime.ReadMemStats(&before)
	_, err = binary.Scan(wasm, false)
	stdruntime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, err
}

// TestScanMemory: a scan allocates little for any module.
func TestScanMemory(t *testing.T) {
	const most = 10 // allocated bytes for each byte of the module
	vector := func(n int, entry string) string {
		return string(binary.AppendU32(nil, uint32(n))) + strings.Repeat(entry, n)
	}
	for name, c := range map[string]struct {
		module []byte
		words  string // of the error; empty for a valid module
	}{
		"empty custom sections":   {binarytest.Module(strings.Split(strings.Repeat("\x00", 1_000_000), "")...), "more than 4096 sections"},
		"custom sections at most": {binarytest.Module(strings.Split(strings.Repeat("\x00", binary.MaxSections), "")...), ""},
		"types":                   {binarytest.Module("\x01" + vector(1_000_000, "\x60\x00\x00")), "1000000 types, at most 50000"},
		"imports":                 {binarytest.Module("\x02" + vector(200_000, "\x01m\x01n\x03\x7f\x00")), "200000 imports, at most 1000"},
		"exports":                 {binarytest.Module("\x07" + vector(200_000, "\x03run\x00\x00")), "200000 exports, at most 10000"},
		"functions":               {binarytest.Module("\x01\x01\x60\x00\x00", "\x03"+vector(200_000, "\x00"), "\x0a"+vector(200_000, "\x02\x00\x0b")), ""},
		"data segments":           {binarytest.Module("\x05\x01\x00\x01", "\x0b"+vector(1_000_000, "\x00\x41\x00\x0b\x00")), ""},
		"globals":                 {binarytest.Module("\x06" + vector(1_000_000, "\x7f\x00\x41\x00\x0b")), ""},
		"elements":                {binarytest.Module("\x04\x01\x70\x00\x01", "\x09"+vector(1_000_000, "\x00\x41\x00\x0b\x00")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			allocated, err := scanAllocated(c.module)
			if c.words == "" && err != nil || c.words != "" && (err == nil || !strings.Contains(err.Error(), c.words)) {
				t.Errorf("error %v, want %q", err, c.words)
			}
			if limit := uint64(most*len(c.module) + 64<<10); allocated > limit {
				t.Errorf("%d bytes are allocated for a module of %d, want at most %d", allocated, len(c.module), limit)
			}
		})
	}
}
