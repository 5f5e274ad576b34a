// Package steps_test holds the example plugins to what they all promise.
package steps_test

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/examples/internal/lesson"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
	"github.com/sentinel-runtime/sentinel/sdk/toolchain"
)

func TestMain(m *testing.M) { lesson.Main(m) }

// examples are the folders with a plugin.json.
func examples(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*/" + toolchain.ProjectFile)
	if err != nil || len(files) < 2 {
		t.Fatalf("%d examples: %v", len(files), err)
	}
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = filepath.Dir(f)
	}
	return names
}

// TestWhatIsThere: each is a project with a README, cases, a sentinel that uses
// it and a test, and README.md lists it.
func TestWhatIsThere(t *testing.T) {
	index, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range examples(t) {
		p, err := toolchain.Open(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if p.Name != name {
			t.Errorf("%s: the plugin is called %s", name, p.Name)
		}
		if !strings.Contains(string(index), "["+name+"]("+name+"/)") {
			t.Errorf("README.md has no line for %s", name)
		}
		for _, file := range []string{"README.md", name + ".json", sdktest.CasesFile} {
			if _, err := os.Stat(filepath.Join(name, filepath.FromSlash(file))); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		// The Go toolchain takes no C beside its files, so there tests are below.
		tests, err := filepath.Glob(name + "/*_test.go")
		below, errBelow := filepath.Glob(name + "/tests/*_test.go")
		if err := errors.Join(err, errBelow); err != nil || len(tests)+len(below) == 0 {
			t.Errorf("%s has no test: %v", name, err)
		}
		definition, err := os.ReadFile(filepath.Join(name, name+".json"))
		if err == nil && !strings.Contains(string(definition), `"`+name+`"`) {
			t.Errorf("%s: its sentinel does not use it", name)
		}
	}
}

// TestDroppedIntoServe starts a server and drops each plugin into its folder:
// one that asks for nothing is live without anything else, one that asks waits,
// and a definition with its step type says how to let it.
func TestDroppedIntoServe(t *testing.T) {
	modules := map[string][]byte{}
	for _, name := range examples(t) {
		t.Run("build "+name, func(t *testing.T) { modules[name] = lesson.Module(t, name) })
	}
	if len(modules) == 0 {
		t.Skip("no example could be built")
	}
	dir := t.TempDir()
	server := serve(t, dir)
	for name, module := range modules {
		t.Run(name, func(t *testing.T) {
			lesson.Drop(t, dir, name, module)
			begin, listed := time.Now(), plugin{}
			for listed.Name == "" {
				if time.Since(begin) > time.Minute {
					t.Fatalf("it is not loaded\n%s", server())
				}
				time.Sleep(50 * time.Millisecond)
				listed = find(t, dir, name)
			}
			text, err := os.ReadFile(filepath.Join(name, name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, name+".json")
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := lesson.Command(t, dir, "validate", file).CombinedOutput()
			if len(listed.Permissions) == 0 {
				if err != nil || listed.Problem != "" {
					t.Errorf("it asks for nothing and is not live: %v %s\n%s", err, listed.Problem, out)
				}
				return
			}
			if !strings.Contains(string(out), "sentinel plugin allow "+name) {
				t.Errorf("it asks for something without a hint what to do:\n%s", out)
			}
		})
	}
}

// serve starts a server for a folder, ends it with the test, and returns what it
// wrote.
func serve(t *testing.T, dir string) (said func() string) {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := lesson.Command(t, dir, "serve", filepath.Join(dir, ".sentinel"), "--listen", address)
	cmd.Stdout, cmd.Stderr = log, log
	lesson.Drop(t, dir, "none", nil) // makes the folders
	if err := os.Remove(filepath.Join(dir, ".sentinel", "plugins", "none.wasm")); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said = func() string {
		text, err := os.ReadFile(log.Name())
		return string(text) + errText(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("serve: %v\n%s", err, said())
		}
		_ = log.Close()
	})
	return said
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A plugin is what the test reads of an entry of plugin/list.
type plugin struct {
	Name        string            `json:"name"`
	Source      string            `json:"source"`
	Problem     string            `json:"problem"`
	Permissions []json.RawMessage `json:"permissions"`
}

// find returns the entry of a plugin's file, the zero value if there is none.
func find(t *testing.T, dir, name string) plugin {
	t.Helper()
	out, err := lesson.Command(t, dir, "plugin", "list", "-o", "json").Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 7 {
		return plugin{} // the server is on its way
	}
	if err != nil {
		t.Fatal(err)
	}
	var list []plugin
	if err := json.Unmarshal(out, &list); err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		if p.Source == name+".wasm" {
			return p
		}
	}
	return plugin{}
}
