//go:build unix

package checkpoint_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/checkpoint"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestPipesAreRefused: git would wait for a pipe in place of a file that it reads in each folder.
func TestPipesAreRefused(t *testing.T) {
	f := newFolder(t, checkpoint.Options{})
	if err := syscall.Mkfifo(f.path(".gitignore"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := f.s.Create(t.Context(), checkpoint.Request{Workspace: f.dir})
	if abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), `.gitignore" is a pipe`) {
		t.Error(err)
	}
}

// TestUndoKeepsSpecialFilesMadeAgain: a pipe or socket that the user has made in place of that of the task is a
// conflict, while that of the task is removed.
func TestUndoKeepsSpecialFilesMadeAgain(t *testing.T) {
	f := newFolder(t, checkpoint.Options{})
	pipe := func(name string) {
		if err := syscall.Mkfifo(f.path(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f.create("r", checkpoint.Begin)
	pipe("again")
	pipe("of the task")
	f.create("r", checkpoint.End)
	f.remove("again")
	pipe("other") // so that the next one has another inode also where they are used again
	pipe("again")
	r := f.restore("r", false)
	if r.Success || len(r.Conflicts) != 1 || r.Conflicts[0].Path != "again" {
		t.Errorf("%+v", r)
	}
	f.remove("again")
	if r = f.restore("r", false); !r.Success {
		t.Errorf("%+v", r)
	}
	if _, err := os.Lstat(f.path("of the task")); !os.IsNotExist(err) {
		t.Errorf("that of the task: %v", err)
	}
}
