package wasm

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

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
	inst, ok := m.pool.Take(1 << 20)
	if !ok || inst.main == nil || !inst.initialized {
		t.Fatal("the listener did not find the guest's module")
	}
	m.keep(inst)
}
