package wasm

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// The engine must still have the field that mainModule reads; if it has not,
// every call is two to three times as slow, and nothing else says so.
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
	inst := m.pool.take(1 << 20)
	if inst == nil || inst.main == nil {
		t.Fatal("the guest's module is not found behind the engine's plugin")
	}
	m.pool.put(inst)
}
