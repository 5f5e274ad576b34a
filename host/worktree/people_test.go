package worktree_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/worktree"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Names of branches are git's: the one that the repository is on, and one that is named.
func TestNamesOfBranches(t *testing.T) {
	for _, name := range []string{"développement", "feature(x)", "it's", "a,b", "ветка/один", "$(id)", "a;b&c"} {
		b := newBench(t)
		b.first()
		b.git("checkout", "-q", "-b", name)
		w := b.add(worktree.Add{})
		if w.Base != name {
			t.Errorf("%s: base %s", name, w.Base)
		}
		b.claim("T-2", 1)
		w = b.add(worktree.Add{Ticket: "T-2", Base: name, Branch: "work/" + name})
		put(t, w.Path, "b.txt", "x\n")
		if _, err := b.s.Commit(t.Context(), "T-2", 0, "work", ""); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		b.change("c.txt", "y\n")
		if r, err := b.s.Rebase(t.Context(), "T-2", 0); err != nil || b.git("rev-parse", "refs/heads/work/"+name) != r.Commit {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// Refusals of git that users meet say what to do next.
func TestRefusalsOfGit(t *testing.T) {
	t.Run("owner", func(t *testing.T) {
		if os.Getuid() != 0 || runtime.GOOS == "windows" {
			t.Skip("only root makes a repository of another user")
		}
		b := newBench(t)
		b.first()
		for _, path := range []string{b.repo, filepath.Join(b.repo, ".git")} {
			if err := os.Chown(path, 4321, 4321); err != nil {
				t.Fatal(err)
			}
		}
		_, err := b.s.Add(t.Context(), worktree.Add{Ticket: "T-1"})
		refused(t, err, abi.Denied, "belongs to another user", "git config --global --add safe.directory "+b.repo)
		if e := abi.As(err); strings.Contains(e.Message+e.Hint, "git init") {
			t.Errorf("got %v", e)
		}
	})
	t.Run("value", func(t *testing.T) {
		b := newBench(t)
		b.first()
		b.git("config", "core.compression", "much")
		_, err := b.s.Add(t.Context(), worktree.Add{Ticket: "T-1"})
		refused(t, err, abi.Denied, "core.compression", "--show-origin")
	})
	t.Run("no repository", func(t *testing.T) {
		b := newBench(t)
		if err := os.MkdirAll(b.repo, 0o755); err != nil {
			t.Fatal(err)
		}
		_, err := b.s.Add(t.Context(), worktree.Add{Ticket: "T-1"})
		refused(t, err, abi.NotFound, "is not a git repository", "git init")
	})
	t.Run("no commit", func(t *testing.T) {
		b := newBench(t)
		if err := os.MkdirAll(b.repo, 0o755); err != nil {
			t.Fatal(err)
		}
		b.git("init", "-q")
		_, err := b.s.Add(t.Context(), worktree.Add{Ticket: "T-1"})
		refused(t, err, abi.NotFound, "has no commits", "first commit")
	})
}
