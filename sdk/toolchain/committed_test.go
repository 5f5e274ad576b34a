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

// committed are the modules of native code that lie beside their sources, with
// the compiler that made them: its first line of --version.
var committed = []struct{ dir, compiler string }{
	{"../rust/conformance", "rustc 1.63.0"},
	{"../c/conformance", "Debian clang version 14.0.6"},
	{"../../examples/steps/json_diff", "rustc 1.63.0"},
	{"../../examples/steps/grep_count", "Debian clang version 14.0.6"},
}

// TestCommitted: a module in the tree is what its sources give. Another compiler
// gives other bytes, so then only that they build is shown, and it is said.
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
				t.Errorf("the compiler has something to say:\n%s", &said)
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
				t.Errorf("%s has %d bytes; what is committed stays below %d", p.Module(), len(shipped), limit)
			}
			if bytes.Equal(fresh, shipped) {
				return
			}
			if here := version(t, p.Language); here != c.compiler {
				t.Skipf("%s was made by %q and this is %q: it builds, to %d bytes instead of %d", p.Module(), c.compiler, here, len(fresh), len(shipped))
			}
			t.Errorf("%s is not what its sources give: build it anew with `sentinel plugin build %s`", p.Module(), c.dir)
		})
	}
}

// version is the first line of what a language's compiler says of itself.
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

// A project of this repository has no copy of the SDK and is built all the same,
// and nothing is left in it.
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
