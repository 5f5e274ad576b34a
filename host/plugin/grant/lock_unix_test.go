//go:build unix

package grant_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/plugin/grant"
)

// TestLockIsHeeded waits while another process changes files in the folder, and
// gives up with its context.
func TestLockIsHeeded(t *testing.T) {
	s, opt := open(t)
	allow(t, s, aPlugin("1"))
	dir, err := os.Open(filepath.Dir(opt.File))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if err := s.Set(ctx, grant.Entry{Name: "b"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a folder that is locked: %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Set(t.Context(), grant.Entry{Name: "b"}) }()
	if err := syscall.Flock(int(dir.Fd()), syscall.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
