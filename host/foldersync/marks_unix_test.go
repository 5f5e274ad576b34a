//go:build unix

package foldersync

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestMarksInPlaceOfAPipe: a pipe in the place of the file is as no file, and the first write replaces it.
func TestMarksInPlaceOfAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := openMarks(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	if err := m.write(line{File: "a", Mark: &mark{ID: "a"}}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		t.Errorf("%v %v", info, err)
	}
}
