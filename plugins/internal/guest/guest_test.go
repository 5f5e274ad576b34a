package guest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/plugins"
	"github.com/sentinel-runtime/sentinel/plugins/internal/guest"
)

// TestStoredModuleMatchesSources compares the sources with the digest of the stored
// module. It does not compile, so it works with any Go version.
func TestStoredModuleMatchesSources(t *testing.T) {
	root, err := guest.Root()
	if err != nil {
		t.Fatal(err)
	}
	sum, err := guest.ReadSum(root)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := guest.Digest(root)
	if err != nil {
		t.Fatal(err)
	}
	if digest != sum.Sources {
		t.Errorf("plugins/builtin.wasm was built from other sources: run make plugins")
	}
	module, err := plugins.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	if got := guest.ModuleSum(module); got != sum.Module {
		t.Errorf("the embedded module has SHA-256 %s, builtin.sum has %s", got, sum.Module)
	}
	if digest, _ := plugins.Manifest(); digest != sum.Module {
		t.Errorf("Manifest returns the SHA-256 %q, builtin.sum has %s", digest, sum.Module)
	}
	stored, err := guest.ReadModule(root)
	if err != nil || !bytes.Equal(stored, module) {
		t.Errorf("the stored and the embedded module differ: %v", err)
	}
	const maxSize = 2_750_000 // bytes; the size affects every cold start
	if len(module) > maxSize {
		t.Errorf("the module has %d bytes, want at most %d", len(module), maxSize)
	}
}

func TestDigest(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	digest := func() string {
		t.Helper()
		d, err := guest.Digest(root)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	write("go.mod", "module m\n\ngo 1.26.0\n")
	write("sdk/a.go", "package sdk\n")
	write("sdk/abi/b.go", "package abi\n")
	write("plugins/x/c.go", "package x\n")
	first := digest()
	for _, same := range [][2]string{
		{"sdk/a_test.go", "package sdk\n"},
		{"sdk/ABI.md", "# ABI\n"},
		{"sdk/sdktest/d.go", "package sdktest\n"},
		{"plugins/builtin.go", "package plugins\n"},
		{"plugins/internal/build/main.go", "package main\n"},
		{"sdk/a.go", "package sdk\r\n"},
		{"go.mod", "module m\n\ngo 1.26.0\n\nrequire x v1.0.0\n"},
	} {
		write(same[0], same[1])
		if digest() != first {
			t.Errorf("%s changed the digest", same[0])
		}
	}
	seen := []string{first}
	for _, other := range [][2]string{
		{"sdk/a.go", "package sdk // x\n"},
		{"plugins/x/c.go", "package y\n"},
		{"plugins/y/e.go", "package y\n"},
		{"go.mod", "module m\n\ngo 1.27.0\n"},
	} {
		write(other[0], other[1])
		if d := digest(); slices.Contains(seen, d) {
			t.Errorf("%s did not change the digest", other[0])
		} else {
			seen = append(seen, d)
		}
	}
}

func TestWriteAndRead(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "plugins"), 0o755); err != nil {
		t.Fatal(err)
	}
	module := []byte(strings.Repeat("module ", 1000))
	want := guest.Sum{Module: guest.ModuleSum(module), Sources: "s", Go: "go1.26.8"}
	if err := guest.Write(root, module, want); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(filepath.Join(root, "plugins", "builtin.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := guest.ReadSum(root); err != nil || got != want {
		t.Errorf("sum %+v %v, want %+v", got, err, want)
	}
	if got, err := guest.ReadModule(root); err != nil || !bytes.Equal(got, module) {
		t.Errorf("stored %d bytes %v", len(got), err)
	}
	if err := guest.Write(root, module, want); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(filepath.Join(root, "plugins", "builtin.wasm")); err != nil || !bytes.Equal(first, again) {
		t.Errorf("the same module has different bytes: %v", err)
	}
	if err := os.WriteFile(filepath.Join(root, "plugins", "builtin.sum"), []byte("odd\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := guest.ReadSum(root); err == nil {
		t.Error("ReadSum accepted a malformed file")
	}
}
