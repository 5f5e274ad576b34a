package toolchain_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/sdk/toolchain"
	"github.com/sentinel-runtime/sentinel/sdk/toolchain/toolchaintest"
)

// TestProbeOfHalfAToolchain checks that a compiler that is in PATH and cannot build for
// Wasm is treated as missing, with the reason and what to install in the error.
func TestProbeOfHalfAToolchain(t *testing.T) {
	bin := t.TempDir()
	for _, tool := range []string{"clang", "wasm-ld", "rust-lld", "go", "node"} {
		script := "#!/bin/sh\necho 'cannot open libclang_rt.builtins-wasm32.a' >&2\nexit 1\n"
		if err := os.WriteFile(filepath.Join(bin, tool), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin)
	for _, name := range []string{"c", "go"} {
		l, err := toolchain.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Missing(); err != nil {
			t.Fatalf("%s: the tools are in PATH: %v", name, err)
		}
		err = l.Probe(t.Context())
		if err == nil {
			t.Errorf("%s: the probe was built by a tool that always fails", name)
			continue
		}
		for _, want := range []string{"libclang_rt.builtins-wasm32.a", "install: apt-get install"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is not in: %v", name, want, err)
			}
		}
	}
}

// TestProbe builds the probe of every language if all toolchains are required.
func TestProbe(t *testing.T) {
	for _, l := range toolchain.Languages() {
		t.Run(l.Name, func(t *testing.T) {
			if testing.Short() && l.Name != "javascript" {
				t.Skip("-short: no compiler is started")
			}
			toolchaintest.Need(t, l)
		})
	}
}
