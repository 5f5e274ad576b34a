package guest_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/guest"
	"github.com/sentinel-runtime/sentinel/sdk/abitest"
	"github.com/sentinel-runtime/sentinel/sdk/toolchain"
	"github.com/sentinel-runtime/sentinel/sdk/toolchain/toolchaintest"
)

// TestSDKs tests the conformance guest of every language with an SDK against the clauses of
// the ABI, see sdk/abitest/GUEST.md. With the language's tools it is built from source;
// without them the module that is committed beside the source is used.
func TestSDKs(t *testing.T) {
	host, err := guest.Open(guest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	})
	langs := languages()
	if len(langs) == 0 {
		t.Fatal("no language has a conformance guest in sdk")
	}
	for _, lang := range langs {
		t.Run(lang, func(t *testing.T) {
			if testing.Short() && lang != "c" {
				t.Skip("a thousand instances of a guest: C is enough with -short")
			}
			abitest.TestGuest(t, guest.Kit(host, guest.LoadOptions{}), conformance(t, lang))
		})
	}
}

// languages are those with a conformance guest, whether their toolchain is
// registered or not.
func languages() []string {
	var names []string
	for _, name := range []string{"go", "rust", "c", "assemblyscript", "javascript"} {
		if _, err := os.Stat(source(name)); err == nil {
			names = append(names, name)
		}
	}
	return names
}

// source is the folder of a language's conformance guest.
func source(lang string) string {
	if lang == "go" {
		return filepath.Join("..", "..", "sdk", "conformance")
	}
	return filepath.Join("..", "..", "sdk", lang, "conformance")
}

// conformance returns the module of a language's guest.
func conformance(t *testing.T, lang string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "conformance.wasm")
	if lang == "go" {
		// Not as a project: the guest is a package of this module.
		cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildmode=c-shared", "-ldflags=-s -w -buildid=", "-o", out, ".")
		cmd.Dir = source(lang)
		cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build the guest: %v\n%s", err, text)
		}
		return read(t, out)
	}
	committed := filepath.Join(source(lang), "conformance.wasm")
	l, err := toolchain.Lookup(lang)
	if err == nil {
		err = toolchaintest.Probe(l)
	}
	if err != nil {
		if _, statErr := os.Stat(committed); statErr != nil || toolchaintest.Required() {
			toolchaintest.Missing(t, err)
		}
		t.Logf("the committed module is tested, for: %v", err)
		return read(t, committed)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var said strings.Builder
	if err := l.Build(ctx, source(lang), out, &said); err != nil {
		t.Fatalf("%v\n%s", err, &said)
	}
	return read(t, out)
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
