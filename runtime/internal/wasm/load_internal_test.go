package wasm

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/binary"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/binary/binarytest"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestRewriteTooLarge: an interruption point is longer than the shortest instruction
// it precedes, so that a module below binary.MaxModule may exceed rewrite.MaxSize.
func TestRewriteTooLarge(t *testing.T) {
	if testing.Short() {
		t.Skip("a module of 27 MB is scanned and rewritten: test without -short")
	}
	code := "\x41\x00" + strings.Repeat("\x40\x00", 500) // each uses the result of the one before
	body := string(binary.AppendU32(nil, uint32(len(code)+2))) + "\x00" + code + "\x0b"
	const n = 27_000
	wasm := binarytest.Module(
		"\x01\x01\x60\x00\x01\x7f",
		"\x03"+string(binary.AppendU32(nil, n))+strings.Repeat("\x00", n),
		"\x05\x01\x00\x01",
		"\x07\x02\x08describe\x00\x00\x03run\x00\x01",
		"\x0a"+string(binary.AppendU32(nil, n))+strings.Repeat(body, n),
	)
	_, err := openInternal(t).Load(t.Context(), wasm, LoadOptions{})
	if abi.CodeOf(err) != abi.Limit || !strings.Contains(err.Error(), "interruption points") {
		t.Errorf("error %v, want code limit and the reason", err)
	}
}

// The listener must still find the guest's module: without it every call goes
// through the SDK and takes two to three times as long, and no other test fails.
func TestMainModuleIsFound(t *testing.T) {
	h, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	code, err := os.ReadFile(filepath.Join("testdata", "wat", "echo.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := h.Load(context.Background(), code, LoadOptions{Trusted: true})
	if err != nil {
		t.Fatal(err)
	}
	inst, err := m.pool.Take(t.Context(), 1<<20, nil)
	if err != nil || inst.main == nil || !inst.initialized {
		t.Fatal("the listener did not find the guest's module")
	}
	m.keep(inst)
}
