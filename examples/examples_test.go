// Package examples_test holds every lesson to the same few promises.
package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLessons: a lesson is a folder with a README and a test, it is in the table
// of README.md, and its scripts are what sh takes.
func TestLessons(t *testing.T) {
	index, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	lessons := 0
	for _, e := range entries {
		if !e.IsDir() || e.Name() == "internal" {
			continue
		}
		lessons++
		if !strings.Contains(string(index), "["+e.Name()+"]("+e.Name()+"/)") {
			t.Errorf("README.md has no line for %s", e.Name())
		}
		for _, pattern := range []string{"README.md", "*_test.go"} {
			if found, err := filepath.Glob(filepath.Join(e.Name(), pattern)); err != nil || len(found) == 0 {
				t.Errorf("%s has no %s: %v", e.Name(), pattern, err)
			}
		}
	}
	if lessons < 5 {
		t.Errorf("%d lessons, want at least 5", lessons)
	}
}

func TestScripts(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip(err)
	}
	scripts, err := filepath.Glob("*/*.sh")
	if err != nil || len(scripts) < 7 {
		t.Fatalf("%d scripts, want at least 7: %v", len(scripts), err)
	}
	for _, name := range append(scripts, "lesson.sh") {
		if out, err := exec.Command("sh", "-n", name).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if name == "lesson.sh" {
			continue // it is sourced
		}
		if info.Mode()&0o100 == 0 {
			t.Errorf("%s is not executable", name)
		}
		if !strings.HasPrefix(string(src), "#!/bin/sh\n# "+filepath.Base(name)) || !strings.Contains(string(src), "\nset -eu\n") {
			t.Errorf("%s does not begin with #!/bin/sh and what it does, or goes on after errors", name)
		}
	}
}
