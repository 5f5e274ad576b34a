package wasm_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// The schemas of a manifest are compiled in a child once, and in no other place
// before that.
func TestSchemasInAChild(t *testing.T) {
	dir := t.TempDir()
	load(t, open(t, wasm.Options{CacheDir: dir}), sin(t, "echo"), wasm.LoadOptions{}).Release()
	notes, err := filepath.Glob(filepath.Join(dir, "*", "schemas-*"))
	if err != nil || len(notes) != 1 {
		t.Fatalf("notes %v, %v, want one", notes, err)
	}
	load(t, openWithout(t, dir), sin(t, "echo"), wasm.LoadOptions{}).Release()
	if err := os.Remove(notes[0]); err != nil {
		t.Fatal(err)
	}
	_, err = openWithout(t, dir).Load(context.Background(), sin(t, "echo"), wasm.LoadOptions{})
	wantError(t, err, abi.Unavailable, "compile schemas: an untrusted plugin is compiled in a child process, and none is configured")
	load(t, openWithout(t, dir), sin(t, "echo"), wasm.LoadOptions{Trusted: true}).Release()
	noChildren(t)
}
