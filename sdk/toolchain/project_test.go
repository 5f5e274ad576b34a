package toolchain_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/toolchain"
	"github.com/sentinel-runtime/sentinel/sdk/toolchain/toolchaintest"
)

// A new project of each language can be built, to the same bytes in any folder, and the
// build leaves only the module.
func TestNewProjectBuilds(t *testing.T) {
	if testing.Short() {
		t.Skip("builds with every toolchain; run without -short")
	}
	for _, l := range toolchain.Languages() {
		t.Run(l.Name, func(t *testing.T) {
			toolchaintest.Need(t, l)
			var modules [][]byte
			for range 2 {
				p, err := toolchain.Create(filepath.Join(t.TempDir(), "shout"), "shout", l)
				if err != nil {
					t.Fatal(err)
				}
				var said bytes.Buffer
				if err := p.Build(t.Context(), p.Module(), &said); err != nil {
					t.Fatalf("%v\n%s", err, &said)
				}
				module, err := os.ReadFile(p.Module())
				if err != nil {
					t.Fatal(err)
				}
				modules = append(modules, module)
			}
			if !bytes.Equal(modules[0], modules[1]) {
				t.Errorf("two folders gave two modules, of %d and %d bytes", len(modules[0]), len(modules[1]))
			}
		})
	}
}

// Every template has the expected files, with the name of the plugin.
func TestTemplates(t *testing.T) {
	for _, l := range toolchain.Languages() {
		dir := filepath.Join(t.TempDir(), "deep", "shout")
		p, err := toolchain.Create(dir, "shout", l)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{toolchain.ProjectFile, "README.md", "tests/cases.json", ".gitignore", l.Source} {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Errorf("%s: %v", l.Name, err)
			}
			if strings.Contains(string(text), "{{name}}") {
				t.Errorf("%s: %s: a placeholder is left", l.Name, name)
			}
		}
		again, err := toolchain.Open(dir)
		if err != nil || again.Name != "shout" || again.Language.Name != l.Name || again.Module() != p.Module() {
			t.Errorf("%s: opened %+v, %v", l.Name, again, err)
		}
	}
}

// The tests of the Go template pass, without a network.
func TestGoTemplateTests(t *testing.T) {
	l, err := toolchain.Lookup("go")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "shout")
	if _, err := toolchain.Create(dir, "shout", l); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "test", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=readonly", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "sdk", "source_native.go")); err == nil {
		t.Error("the copy of the SDK holds what embeds it")
	}
}

func TestCreateRefuses(t *testing.T) {
	golang, err := toolchain.Lookup("golang")
	if err != nil {
		t.Fatal(err)
	}
	full := t.TempDir()
	keep := filepath.Join(full, "keep")
	if err := os.WriteFile(keep, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := toolchain.Create(full, "shout", golang); abi.CodeOf(err) != abi.Conflict {
		t.Errorf("a folder with a file: %v", err)
	}
	if _, err := toolchain.Create(keep, "shout", golang); abi.CodeOf(err) != abi.Conflict {
		t.Errorf("a file: %v", err)
	}
	for _, name := range []string{"", "Shout", "1a", "a-b", "../x", "a b", strings.Repeat("a", 65)} {
		if _, err := toolchain.Create(filepath.Join(t.TempDir(), "x"), name, golang); abi.CodeOf(err) != abi.BadFields {
			t.Errorf("name %q: %v", name, err)
		}
	}
	if text, err := os.ReadFile(keep); err != nil || string(text) != "mine" {
		t.Errorf("the file that was there: %q %v", text, err)
	}
	entries, err := os.ReadDir(full)
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v %v", entries, err)
	}
	if _, err := toolchain.Lookup("cobol"); err == nil || !strings.Contains(err.Error(), "go") {
		t.Errorf("an unknown language: %v", err)
	}
	empty := t.TempDir()
	if _, err := toolchain.Create(empty, "shout", golang); err != nil {
		t.Errorf("an empty folder: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	for text, want := range map[string]string{
		``:                                   "the text ends",
		`{`:                                  "the text ends",
		`{"language":"go"}`:                  `name ""`,
		`{"name":"a"}`:                       `find language ""`,
		`{"language":"go","name":"a","x":1}`: `x: unknown key "x"`,
		`{"language":"go","name":"a"} {}`:    "text after the JSON value",
		`{"language":"go","name":"../a"}`:    `name "../a"`,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, toolchain.ProjectFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := toolchain.Open(dir); abi.CodeOf(err) != abi.BadFields || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := toolchain.Open(t.TempDir()); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("no project: %v", err)
	}
}

// The output of a compiler is shown unchanged, and nothing is written.
func TestBuildFails(t *testing.T) {
	golang, err := toolchain.Lookup("go")
	if err != nil {
		t.Fatal(err)
	}
	p, err := toolchain.Create(filepath.Join(t.TempDir(), "shout"), "shout", golang)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.Dir, golang.Source), []byte("package main\n\nfunc main() { nonsense() }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	if err := p.Build(t.Context(), p.Module(), &said); err == nil || !strings.Contains(said.String(), "plugin.go:3:15: undefined: nonsense") {
		t.Errorf("%v, said %q", err, &said)
	}
	if _, err := os.Stat(p.Module()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a module is there: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if err := p.Build(t.Context(), p.Module(), io.Discard); err == nil || !strings.Contains(err.Error(), "apt-get install golang") {
		t.Errorf("without the tool: %v", err)
	}
}
