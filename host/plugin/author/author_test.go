package author_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/plugin/author"
	"github.com/sentinel-runtime/sentinel/runtime/guest"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/toolchain"
)

func TestMain(m *testing.M) {
	guest.ServeChild()
	os.Exit(m.Run())
}

// project makes a new one in Go.
func project(t *testing.T) toolchain.Project {
	t.Helper()
	l, err := toolchain.Lookup("go")
	if err != nil {
		t.Fatal(err)
	}
	p, err := toolchain.Create(filepath.Join(t.TempDir(), "shout"), "shout", l)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A module that compiles and that no host takes does not replace one that works.
func TestBuildKeepsWhatWorks(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: no plugin is built")
	}
	p := project(t)
	installed := filepath.Join(t.TempDir(), "plugins", "shout.wasm")
	var said bytes.Buffer
	r, err := author.Build(t.Context(), p, &said, p.Module(), installed)
	if err != nil {
		t.Fatalf("%v\n%s", err, &said)
	}
	if r.Manifest == nil || r.Manifest.Name != "shout" || r.MemoryBytes == 0 || len(r.Uses) != 1 || r.Uses[0] != abi.FuncLog {
		t.Errorf("%+v", r)
	}
	before, err := os.ReadFile(installed)
	if err != nil || len(before) != r.Size {
		t.Fatalf("%d bytes are installed, %v", len(before), err)
	}
	source := filepath.Join(p.Dir, p.Language.Source)
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	// A name that clause A2.1 forbids.
	if err := os.WriteFile(source, bytes.ReplaceAll(text, []byte(`Name:    "shout"`), []byte(`Name:    "Shout"`)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err = author.Build(t.Context(), p, &said, p.Module(), installed); err == nil || !strings.Contains(err.Error(), "no host takes it") || !strings.Contains(err.Error(), "Shout") {
		t.Errorf("a bad name: %v", err)
	}
	if after, err := os.ReadFile(installed); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the module that works is gone: %v", err)
	}
}

func TestInspectBroken(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "not a WebAssembly module",
		"no plugin at all":                "not a WebAssembly module",
		"\x00asm\x01\x00\x00\x00":         "describe",
		"\x00asm\x0d\x00\x01\x00":         "component",
		"\x00asm\x01\x00\x00\x00\x01\x7f": "",
	} {
		r, err := author.Inspect(t.Context(), "x.wasm", []byte(text), author.Options{})
		if err != nil || r.Problem == nil || !strings.Contains(r.Problem.Message, want) || len(r.Digest) != 64 || r.Size != len(text) {
			t.Errorf("%q: %+v %v, want %q", text, r.Problem, err, want)
		}
	}
}

// Each change is built once; what a build itself makes is no change.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	write := func(name string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Error(err)
		}
	}
	write("plugin.go")
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	builds := 0
	err := author.Watch(ctx, dir, func() {
		builds++
		write("made.wasm")
		write(".hidden")
		if builds == 1 {
			write("more.go") // while it builds
			return
		}
		cancel(enough)
	})
	if !errors.Is(err, enough) || builds != 2 {
		t.Errorf("%d builds, %v", builds, err)
	}
	if err := author.Watch(t.Context(), filepath.Join(dir, "nowhere"), func() { t.Error("built") }); err == nil {
		t.Error("watched a folder that is not there")
	}
}
