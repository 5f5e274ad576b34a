package assemblyscript_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/sentinel-runtime/sentinel/sdk/toolchain"
	"github.com/sentinel-runtime/sentinel/sdk/toolchain/toolchaintest"
)

// TestPinned checks that the compiler has the same version everywhere, and that the lock
// file has its digest but no address.
func TestPinned(t *testing.T) {
	var lock struct {
		Packages map[string]struct{ Version, Resolved, Integrity string }
	}
	read(t, "package-lock.json", &lock)
	version := lock.Packages["node_modules/assemblyscript"].Version
	if version == "" {
		t.Fatal("package-lock.json has no compiler")
	}
	for name, p := range lock.Packages {
		if name != "" && (p.Resolved != "" || p.Integrity == "") {
			t.Errorf("%s: resolved is %q, integrity %q", name, p.Resolved, p.Integrity)
		}
	}
	for _, file := range []string{"package.json", "template/package.json"} {
		var p struct{ DevDependencies map[string]string }
		read(t, file, &p)
		if got := p.DevDependencies["assemblyscript"]; got != version {
			t.Errorf("%s wants %s, package-lock.json has %s", file, got, version)
		}
	}
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// TestCommitted checks that the conformance guest that is committed, for machines without
// the compiler, is built from its source.
func TestCommitted(t *testing.T) {
	p, err := toolchain.Open("conformance")
	if err != nil {
		t.Fatal(err)
	}
	toolchaintest.Need(t, p.Language)
	out := filepath.Join(t.TempDir(), "conformance.wasm")
	var said bytes.Buffer
	if err := p.Build(t.Context(), out, &said); err != nil {
		t.Fatalf("%v\n%s", err, &said)
	}
	built, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	committed, err := os.ReadFile(p.Module())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(built, committed) {
		t.Errorf("%s has %d bytes, the build of its source has %d others; build it again", p.Module(), len(committed), len(built))
	}
	if len(committed) > 100<<10 {
		t.Errorf("%d bytes are too many to commit", len(committed))
	}
}
