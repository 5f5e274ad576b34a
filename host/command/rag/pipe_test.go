//go:build unix

package rag_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/command/rag"
)

// TestPipesAreNotOpened uses pipes without a writer, which block a reader.
func TestPipesAreNotOpened(t *testing.T) {
	dir := write(t, map[string]string{"a.txt": "A\n"})
	for _, name := range []string{"pipe.txt", ".gitignore"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Skipf("this system has no pipes: %v", err)
		}
	}
	got := build(t, rag.Options{}, rag.Request{Workspace: dir, Query: "pipe", Sources: []string{"tree", "files", "file:pipe.txt"}})
	if want := "# tree\na.txt\n"; got.Text != want {
		t.Errorf("got:\n%s", got.Text)
	}
}
