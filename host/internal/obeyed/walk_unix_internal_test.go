//go:build unix

package obeyed

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestDeepFoldersAreRefusedInLinearTime: what a command has left in folders that are in each other costs the
// same at each depth. Memory stands for the time, which depends on the machine.
func TestDeepFoldersAreRefusedInLinearTime(t *testing.T) {
	const depth, each = 1500, 32 << 10
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	all, err := Find(t.Context(), root, root, nil, nil, &Left{})
	if err != nil {
		t.Fatal(err)
	}
	name := strings.Repeat("d", 255)
	dir, err := os.OpenRoot(root)
	for range depth {
		if err == nil {
			err = dir.WriteFile(gitName, nil, 0o600)
		}
		if err == nil {
			err = dir.Mkdir(name, 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
		var inner *os.Root
		inner, err = dir.OpenRoot(name)
		_ = dir.Close() // it was only searched
		dir = inner
	}
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err = all.RefuseNew(t.Context())
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) / depth; got > each {
		t.Errorf("%d bytes were allocated for each folder, want at most %d", got, each)
	}
	if err == nil || !strings.Contains(err.Error(), "and 1490 more") {
		t.Errorf("got %v", err)
	}
	// The innermost one is renamed too, and known to no later command.
	all, err = Find(t.Context(), root, root, nil, nil, &Left{})
	if err != nil || len(all.known) > 0 {
		t.Errorf("left: %d, %v", len(all.known), err)
	}
}

// TestWalksEndWithTheirContext: a command that is cancelled before it begins, and a host that ends, wait for no walk of a
// workspace.
func TestWalksEndWithTheirContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	all, err := Find(ctx, root, root, nil, nil, &Left{})
	if err != nil {
		t.Fatal(err)
	}
	ends := errors.New("the host ends")
	cancel(ends)
	if _, err := Find(ctx, root, root, nil, nil, &Left{}); !errors.Is(err, ends) {
		t.Errorf("before a command: %v", err)
	}
	if err := all.RefuseNew(ctx); !errors.Is(err, ends) {
		t.Errorf("behind a command: %v", err)
	}
}
