package wasm_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestSchemasInAChild: the schemas of an untrusted module are compiled once in a
// child before they are used.
func TestSchemasInAChild(t *testing.T) {
	dir := t.TempDir()
	load(t, open(t, wasm.Options{CacheDir: dir}), watGuest(t, "echo"), wasm.LoadOptions{}).Release()
	notes, err := filepath.Glob(filepath.Join(dir, "*", "schemas-*"))
	if err != nil || len(notes) != 1 {
		t.Fatalf("markers %v, %v, want one", notes, err)
	}
	load(t, openWithoutChild(t, dir), watGuest(t, "echo"), wasm.LoadOptions{}).Release()
	if err := os.Remove(notes[0]); err != nil {
		t.Fatal(err)
	}
	_, err = openWithoutChild(t, dir).Load(context.Background(), watGuest(t, "echo"), wasm.LoadOptions{})
	wantError(t, err, abi.Unavailable, "compile schemas: an untrusted plugin is compiled in a child process, and none is configured")
	load(t, openWithoutChild(t, dir), watGuest(t, "echo"), wasm.LoadOptions{Trusted: true}).Release()
	noChildren(t)
}
