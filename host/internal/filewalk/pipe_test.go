//go:build unix

package filewalk_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/internal/filewalk"
)

// TestPipesAreNotOpened puts a pipe without a writer, which blocks a reader, in
// place of a file of rules.
func TestPipesAreNotOpened(t *testing.T) {
	dir := write(t, map[string]string{"a": ""})
	if err := syscall.Mkfifo(filepath.Join(dir, ".gitignore"), 0o600); err != nil {
		t.Skipf("this system has no pipes: %v", err)
	}
	got, _ := visited(t, dir, filewalk.Options{})
	diff(t, "a pipe", got, ".gitignore", "a")
}
