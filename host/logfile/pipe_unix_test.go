//go:build unix

package logfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/logfile"
	"github.com/sentinel-runtime/sentinel/internal/regularfile"
)

// TestPipesAreRefused: a log whose file is a pipe would wait for a reader without end.
func TestPipesAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "serve.log")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := logfile.Open(path, logfile.Options{}); !errors.Is(err, regularfile.ErrKind) {
		t.Errorf("got %v", err)
	}
}

// TestNullDeviceStays: a log at the null device is not rotated, which would give the device another name. Of other
// devices, a terminal may take nothing for hours.
func TestNullDeviceStays(t *testing.T) {
	link := func(device string) string {
		path := filepath.Join(t.TempDir(), "serve.log")
		if err := os.Symlink(device, path); err != nil { // else a failure renames the device of the machine
			t.Fatal(err)
		}
		return path
	}
	if _, err := logfile.Open(link("/dev/zero"), logfile.Options{}); !errors.Is(err, regularfile.ErrKind) {
		t.Errorf("another device: got %v", err)
	}
	path := link(os.DevNull)
	w, err := logfile.Open(path, logfile.Options{Size: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for range 3 {
		if _, err := w.Write([]byte("line\n")); err != nil {
			t.Fatal(err)
		}
	}
	names, err := filepath.Glob(path + "*")
	if err != nil || len(names) != 1 {
		t.Errorf("%v, %v", names, err)
	}
	if to, err := os.Readlink(path); err != nil || to != os.DevNull {
		t.Errorf("%q, %v", to, err)
	}
}
