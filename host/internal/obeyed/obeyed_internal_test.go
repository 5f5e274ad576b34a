package obeyed

import (
	"os"
	"path/filepath"
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
	all, err := Find(root, nil, nil, left)
	if err != nil || len(all.known) != 2 {
		t.Fatalf("%v %v", all.known, err)
	}
	for i := range all.known {
		if filepath.Base(filepath.Dir(all.known[i].path)) == "new" {
			left.add(&all.known[i]) // as if its renaming had failed
		}
	}
	if all, err = Find(root, nil, nil, left); err != nil || len(all.known) != 1 || filepath.Base(filepath.Dir(all.known[0].path)) != "old" {
		t.Fatalf("%v %v", all.known, err)
	}
	if err := all.RefuseNew(); err == nil {
		t.Error("it is known")
	}
	if _, err := os.Lstat(filepath.Join(root, "new", ".git"+refusedSuffix+"1")); err != nil {
		t.Error(err)
	}
}
