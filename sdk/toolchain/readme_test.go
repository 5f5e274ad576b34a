package toolchain_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/sdk/toolchain"
	"github.com/sentinel-runtime/sentinel/sdk/toolchain/toolchaintest"
)

// The step in the README of an SDK can be built, without warnings of the compiler.
func TestReadmeStep(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: nothing is built from source")
	}
	for _, name := range []string{"rust", "c"} {
		t.Run(name, func(t *testing.T) {
			l, err := toolchain.Lookup(name)
			if err != nil {
				t.Fatal(err)
			}
			toolchaintest.Need(t, l)
			readme, err := os.ReadFile(filepath.Join("..", name, "README.md"))
			if err != nil {
				t.Fatal(err)
			}
			_, rest, found := strings.Cut(string(readme), "```"+name+"\n")
			step, _, ended := strings.Cut(rest, "```\n")
			if !found || !ended {
				t.Fatal("the README has no step")
			}
			p, err := toolchain.Create(filepath.Join(t.TempDir(), "line_count"), "line_count", l)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(p.Dir, l.Source), []byte(step), 0o600); err != nil {
				t.Fatal(err)
			}
			var said bytes.Buffer
			if err := p.Build(t.Context(), p.Module(), &said); err != nil || said.Len() > 0 {
				t.Errorf("%v\n%s", err, &said)
			}
			module, err := os.ReadFile(p.Module())
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d bytes", len(module))
		})
	}
}
