package obeyed

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLeftOverIsNeverKnown: a repository of a confined command that could not be renamed is new for
// each later command, which renames it once that is possible.
func TestLeftOverIsNeverKnown(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"old/.git", "new/.git"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	left := &Left{}
	all, err := Find(t.Context(), root, root, nil, nil, left)
	if err != nil || len(all.known) != 2 {
		t.Fatalf("%v %v", all.known, err)
	}
	for i := range all.known {
		if filepath.Base(filepath.Dir(all.known[i].path)) == "new" {
			left.add(&all.known[i]) // as if its renaming had failed
		}
	}
	all, err = Find(t.Context(), root, root, nil, nil, left)
	if err != nil || len(all.known) != 1 || filepath.Base(filepath.Dir(all.known[0].path)) != "old" {
		t.Fatalf("%v %v", all.known, err)
	}
	if err := all.RefuseNew(t.Context()); err == nil {
		t.Error("it is known")
	}
	if _, err := os.Lstat(filepath.Join(root, "new", ".git"+refusedSuffix+"1")); err != nil {
		t.Error(err)
	}
}

// TestHooksThatCannotBeListed: links among hooks that git can execute by name and that cannot be listed
// are an error, and those in a folder that it cannot enter are not.
func TestHooksThatCannotBeListed(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("the superuser lists every folder")
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	hooks := filepath.Join(root, ".git/hooks")
	if err := os.MkdirAll(hooks, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(hooks, 0o755) })
	for mode, want := range map[os.FileMode]bool{0o311: true, 0o600: false, 0: false} {
		if err := os.Chmod(hooks, mode); err != nil {
			t.Fatal(err)
		}
		_, err := Find(t.Context(), root, root, nil, nil, &Left{})
		if (err != nil) != want || want && !strings.Contains(err.Error(), ".git/hooks") {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
}
