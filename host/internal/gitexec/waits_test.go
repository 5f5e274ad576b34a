//go:build unix

package gitexec_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestPipesInTheWorkTree: git opens a pipe in place of a file that it reads by name, and would wait for
// a writer without an end.
func TestPipesInTheWorkTree(t *testing.T) {
	for name, args := range map[string][]string{
		".gitignore":         {"status"},
		"sub/.gitignore":     {"add", "--all"},
		".gitattributes":     {"add", "--all"},
		"sub/.gitattributes": {"check-attr", "text", "sub/a.txt"},
		".git/info/exclude":  {"status"},
		".git/config":        {"status"},
	} {
		t.Run(strings.ReplaceAll(name, "/", " "), func(t *testing.T) {
			t.Parallel()
			dir, lock := repository(t)
			path := filepath.Join(dir, name)
			err := errors.Join(os.MkdirAll(filepath.Join(dir, "sub"), 0o755), os.MkdirAll(filepath.Dir(path), 0o755), os.RemoveAll(path),
				os.WriteFile(filepath.Join(dir, "sub", "a.txt"), []byte("x"), 0o644), syscall.Mkfifo(path, 0o600))
			if err != nil {
				t.Fatal(err)
			}
			git := gitexec.Runner{Program: gitexec.LookPath()}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			for _, at := range []string{dir, filepath.Join(dir, "sub")} {
				if at != dir && args[0] == "check-attr" {
					continue // its path is that from the top
				}
				_, err = git.Exec(ctx, at, "", "", args...)
				if e := abi.As(err); e == nil || e.Code != abi.Denied || !strings.Contains(e.Message, "is a pipe") || !strings.Contains(e.Message, filepath.Base(name)) {
					t.Errorf("git %v in %s: %v", args, at, err)
				}
			}
			if exists(lock) {
				t.Error("a lock is left")
			}
		})
	}
}

// TestPipesEndWithTheCaller: the time limit of the caller ends a git that waits for a pipe.
func TestPipesEndWithTheCaller(t *testing.T) {
	dir, _ := repository(t)
	if err := syscall.Mkfifo(filepath.Join(dir, ".gitignore"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	git := gitexec.Runner{Program: gitexec.LookPath()}
	if _, err := git.Exec(ctx, dir, "", "", "status"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
