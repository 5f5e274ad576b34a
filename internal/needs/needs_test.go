package needs_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/internal/needs"
)

// shim makes a program that works only in folders with a file .version, or with the variable VERSION,
// as those of version managers do.
func shim(t *testing.T) (program string) {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no sh on this machine, which executes the shim")
	}
	program = filepath.Join(t.TempDir(), "python3")
	text := "#!/bin/sh\ntest -e .version || test \"$VERSION\" && exit 0\necho 'python3: no version set' >&2\necho 'run shim global' >&2\nexit 127\n"
	if err := os.WriteFile(program, []byte(text), 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	return program
}

func TestWorks(t *testing.T) {
	program, with, without := shim(t), t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(with, ".version"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		dir string
		env []string
		bad string
	}{
		"folder":   {dir: with},
		"variable": {dir: without, env: []string{"VERSION=3"}},
		"neither":  {dir: without, bad: program + " does not work on this machine: exit status 127: python3: no version set"},
	} {
		err := needs.Works(c.dir, c.env, program, "--version")
		if got := errorText(err); got != c.bad {
			t.Errorf("%s: %q, want %q", name, got, c.bad)
		}
	}
	if err := needs.Works(without, nil, filepath.Join(without, "absent")); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("a program that is not there: %v", err)
	}
	r := &recorder{TB: t}
	needs.Program(r, with, nil, program, "--version")
	if r.reason != "" {
		t.Errorf("skipped: %s", r.reason)
	}
	needs.Program(r, without, nil, program, "--version")
	if !strings.HasSuffix(r.reason, "no version set") {
		t.Errorf("the test is not skipped: %q", r.reason)
	}
}

// A recorder keeps why a test is skipped, and goes on: a skip would be reported.
type recorder struct {
	testing.TB
	reason string
}

func (r *recorder) Skip(args ...any) { r.reason = fmt.Sprint(args...) }

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
