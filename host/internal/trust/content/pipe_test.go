//go:build unix

package content_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestStateThatIsAPipe: a pipe in the place of a state folder is refused, without waiting for its other end.
func TestStateThatIsAPipe(t *testing.T) {
	p := newProject(t)
	state := filepath.Join(p.dir, "state")
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(state, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.folder().CheckState(state); err == nil {
		t.Error("it is used as a state folder")
	}
	if items, err := p.folder().Pending(state); err != nil || len(items) != 1 {
		t.Errorf("what waits for trust: %+v, %v; want the folder, which cannot be read", items, err)
	}
}
