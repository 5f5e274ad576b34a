//go:build unix

package verify

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPipesInPlaceOfFiles: a program that is still executed puts pipes in the place of a file while checks
// read it. They read the file or fail, and wait for nothing.
func TestPipesInPlaceOfFiles(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	path := filepath.Join(dir, "a")
	put := func() error { return os.WriteFile(path+"2", []byte("text"), 0o600) }
	if err := errors.Join(put(), os.Rename(path+"2", path)); err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan error)
	go func() {
		for {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			err := errors.Join(syscall.Mkfifo(path+"1", 0o600), os.Rename(path+"1", path), put(), os.Rename(path+"2", path))
			if err != nil {
				<-stop
				stopped <- err
				return
			}
		}
	}()
	for read, refused := 0, 0; read < 100 || refused < 100; {
		switch text, err := readInside(root, "a"); {
		case err == nil && string(text) == "text":
			read++
		case err != nil && strings.Contains(err.Error(), "regular file"):
			refused++
		case !errors.Is(err, fs.ErrNotExist):
			t.Fatalf("%q %v", text, err)
		}
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}
