//go:build unix

package checkpoint_test

import (
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
