package toolchain_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sentinel-runtime/sentinel/sdk/toolchain"
	"github.com/sentinel-runtime/sentinel/sdk/toolchain/toolchaintest"
)

// rustTests builds a source as plain Rust and runs the tests in it.
func rustTests(t *testing.T, source string) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: no native program is built")
	}
	l, err := toolchain.Lookup("rust")
	if err != nil {
		t.Fatal(err)
	}
	toolchaintest.Need(t, l)
	rustc, err := l.Tools[0].Path()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "tests")
	// The compiler for Wasm may be installed without a linker for this machine.
	probe := filepath.Join(dir, "probe.rs")
	if err := os.WriteFile(probe, []byte("fn main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), rustc, "-o", filepath.Join(dir, "probe"), probe).CombinedOutput(); err != nil {
		toolchaintest.Missing(t, fmt.Errorf("%s does not build a program for this machine: %w\n%s\ninstall: apt-get install gcc libc6-dev", rustc, err, out))
	}
	if out, err := exec.CommandContext(t.Context(), rustc, "--edition", "2021", "--test", "-D", "warnings", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.CommandContext(t.Context(), program).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// The tests of the SDK pass, as native Rust without a host.
func TestRustSDK(t *testing.T) { rustTests(t, "../rust/tests/sdk.rs") }

// The commands for native tests in a new project's README work.
func TestRustTemplateTests(t *testing.T) {
	l, err := toolchain.Lookup("rust")
	if err != nil {
		t.Fatal(err)
	}
	p, err := toolchain.Create(filepath.Join(t.TempDir(), "shout"), "shout", l)
	if err != nil {
		t.Fatal(err)
	}
	rustTests(t, filepath.Join(p.Dir, l.Source))
}
