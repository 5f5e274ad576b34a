//go:build unix

package logfile_test

import (
	"errors"
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
