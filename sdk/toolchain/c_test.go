package toolchain_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/sdk/toolchain"
)

// cTests builds sources for this machine and runs them, with what finds accesses
// beyond memory and undefined behaviour where the compiler has it.
func cTests(t *testing.T, dir string, patterns ...string) {
	t.Helper()
	var compiler string
	for _, name := range []string{"cc", "gcc", "clang"} {
		if path, err := exec.LookPath(name); err == nil {
			compiler = path
			break
		}
	}
	if compiler == "" {
		if os.Getenv("SENTINEL_TOOLCHAINS") == "required" {
			t.Fatal("there is no C compiler for this machine")
		}
		t.Skip("there is no C compiler for this machine: apt-get install gcc")
	}
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

// The SDK does what it says, as plain C and without a host.
func TestCSDK(t *testing.T) { cTests(t, "../c", "tests/sdk.c", "sentinel/*.c") }

// What a new project's README says about its own tests is so.
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
