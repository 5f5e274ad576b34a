package toolchain_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/sdk/toolchain"
	"github.com/sentinel-runtime/sentinel/sdk/toolchain/toolchaintest"
)

// committed are the modules of native code that are committed beside their sources, with
// the compiler that built them: the first line of its --version.
var committed = []struct{ dir, compiler string }{
	{"../rust/conformance", "rustc 1.63.0"},
	{"../c/conformance", "Debian clang version 14.0.6"},
	{"../../examples/steps/json_diff", "rustc 1.63.0"},
	{"../../examples/steps/grep_count", "Debian clang version 14.0.6"},
}

// TestCommitted checks that a committed module is built from its sources. Another version
// of the compiler gives other bytes; then the test only checks that the sources build, and
// is reported as skipped.
func TestCommitted(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: nothing is built from source")
	}
	for _, c := range committed {
		t.Run(filepath.Base(c.dir), func(t *testing.T) {
			p, err := toolchain.Open(c.dir)
			if err != nil {
				t.Fatal(err)
			}
			toolchaintest.Need(t, p.Language)
			var said strings.Builder
			built := filepath.Join(t.TempDir(), p.Name+".wasm")
			if err := p.Build(t.Context(), built, &said); err != nil {
				t.Fatalf("%v\n%s", err, &said)
			}
			if said.Len() > 0 {
				t.Errorf("the compiler has output:\n%s", &said)
			}
			fresh, err := os.ReadFile(built)
			if err != nil {
				t.Fatal(err)
			}
			shipped, err := os.ReadFile(p.Module())
			if err != nil {
				t.Fatal(err)
			}
			if limit := 100 << 10; len(shipped) >= limit {
				t.Errorf("%s has %d bytes; the limit for committed modules is %d", p.Module(), len(shipped), limit)
			}
			if bytes.Equal(fresh, shipped) {
				return
			}
			if here := version(t, p.Language); here != c.compiler {
				t.Skipf("%s was made by %q and this is %q: it builds, to %d bytes instead of %d", p.Module(), c.compiler, here, len(fresh), len(shipped))
			}
			t.Errorf("%s differs from the build of its sources: build it again with `sentinel plugin build %s`", p.Module(), c.dir)
		})
	}
}

// version returns the first line of --version of a language's compiler.
func version(t *testing.T, l toolchain.Language) string {
	t.Helper()
	path, err := l.Tools[0].Path()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), path, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line
}

// A project of this repository, without a copy of the SDK, can be built, and the build
// leaves no files in it.
func TestBuildLeavesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: nothing is built from source")
	}
	for _, c := range committed {
		before, err := os.ReadDir(c.dir)
		if err != nil {
			t.Fatal(err)
		}
		p, err := toolchain.Open(c.dir)
		if err != nil {
			t.Fatal(err)
		}
		toolchaintest.Need(t, p.Language)
		if err := p.Build(t.Context(), filepath.Join(t.TempDir(), "x.wasm"), io.Discard); err != nil {
			t.Fatal(err)
		}
		after, err := os.ReadDir(c.dir)
		if err != nil || len(after) != len(before) {
			t.Errorf("%s: %d entries before and %d after: %v", c.dir, len(before), len(after), err)
		}
	}
}
