package toolchain_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/sdk/toolchain"
	"github.com/sentinel-runtime/sentinel/sdk/toolchain/toolchaintest"
)

// nativeC returns a C compiler that builds programs for this machine, with headers and
// linker.
func nativeC(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "probe.c")
	if err := os.WriteFile(source, []byte("#include <stdio.h>\nint main(void) { return puts(\"\") < 0; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	why := "no C compiler for this machine in PATH"
	for _, name := range []string{"cc", "gcc", "clang"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		out, err := exec.CommandContext(t.Context(), path, "-o", filepath.Join(dir, "probe"), source, "-lm").CombinedOutput()
		if err == nil {
			return path
		}
		why = fmt.Sprintf("%s does not build a program: %v\n%s", path, err, out)
	}
	toolchaintest.Missing(t, fmt.Errorf("%s\ninstall: apt-get install gcc libc6-dev", why))
	return ""
}

// cTests builds sources for this machine and runs them, with the sanitizers for memory and
// undefined behaviour if the compiler has them.
func cTests(t *testing.T, dir string, patterns ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: no native program is built")
	}
	compiler := nativeC(t)
	args := []string{"-std=c11", "-Wall", "-Wextra", "-Werror", "-g", "-I", dir}
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files: %v", pattern, len(found), err)
		}
		args = append(args, found...)
	}
	program := filepath.Join(t.TempDir(), "tests")
	args = append(args, "-o", program, "-lm")
	sanitize := []string{"-fsanitize=address,undefined", "-fno-sanitize-recover=all"}
	if out, err := exec.CommandContext(t.Context(), compiler, append(sanitize, args...)...).CombinedOutput(); err != nil {
		if !strings.Contains(string(out), "san") { // the libraries are libasan, libubsan
			t.Fatalf("%v\n%s", err, out)
		}
		t.Logf("without -fsanitize, whose libraries %s lacks:\n%s", compiler, out)
		if out, err := exec.CommandContext(t.Context(), compiler, args...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	if out, err := exec.CommandContext(t.Context(), program).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// The tests of the SDK pass, as native C without a host.
func TestCSDK(t *testing.T) { cTests(t, "../c", "tests/sdk.c", "sentinel/*.c") }

// The commands for native tests in a new project's README work.
func TestCTemplateTests(t *testing.T) {
	l, err := toolchain.Lookup("c")
	if err != nil {
		t.Fatal(err)
	}
	p, err := toolchain.Create(filepath.Join(t.TempDir(), "shout"), "shout", l)
	if err != nil {
		t.Fatal(err)
	}
	cTests(t, p.Dir, "tests/native.c", "*.c", "sdk/*.c")
}
