package verify_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/verify"
)

// TestToolsBelowTheHome: a program that a version manager keeps below the home is found by checks. One
// that is elsewhere there is not, and the failure names the folder and the setting verify.read.
func TestToolsBelowTheHome(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	bin := filepath.Join(home, ".local", "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	for name, folder := range map[string]string{"managed": ".local/share/pipx/venvs/managed", "mine": "my-tools"} {
		program := filepath.Join(home, folder, "bin", name)
		if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(program, []byte("#!/bin/sh\necho "+name+" works\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(program, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	dir := repo(t, map[string]string{"a": "1"})
	v := verifier(t)
	if r, c := one(t, v, dir, `{"type":"test","verify":{"command":"managed"}}`); c.Status != verify.Passed || !strings.Contains(c.Output, "managed works") {
		t.Errorf("managed: %+v %+v", c, r.Blocked)
	}
	_, c := one(t, v, dir, `{"type":"test","verify":{"command":"mine"}}`)
	if want := "(mine is below " + filepath.Join(home, "my-tools") + ", which commands of checks do not read: add this folder to the setting verify.read)"; c.Status != verify.Failed || !strings.Contains(c.Message, want) {
		t.Errorf("mine: %+v, want %q", c, want)
	}
	_, c = one(t, v, dir, `{"type":"http","verify":{"path":"/","service":{"command":"mine"}}}`)
	if want := "exit code 127 before it was ready (mine is below " + filepath.Join(home, "my-tools") + ", which commands"; c.Status != verify.Failed || !strings.Contains(c.Message, want) {
		t.Errorf("mine as a service: %+v, want %q", c, want)
	}
	v = verifier(t, func(o *verify.Options) { o.Read = []string{filepath.Join(home, "my-tools")} })
	if _, c := one(t, v, dir, `{"type":"test","verify":{"command":"mine"}}`); c.Status != verify.Passed {
		t.Errorf("mine, in verify.read: %+v", c)
	}
	if _, c := one(t, v, dir, `{"type":"test","verify":{"command":"no-such-tool"}}`); !strings.HasSuffix(c.Message, "(a command was not found)") {
		t.Errorf("none: %+v", c)
	}
}
