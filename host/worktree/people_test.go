package worktree_test

import (
	"os"
	"os/exec"
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
	t.Run("hook of pushes", func(t *testing.T) {
		b := newBench(t)
		b.first()
		b.git("config", "receive.procReceiveRefs", "refs")
		_, err := b.s.Add(t.Context(), worktree.Add{Ticket: "T-1"})
		refused(t, err, abi.Denied, "receive.procReceiveRefs", "--unset-all")
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

// What an agent writes into the folder of a submodule, or into a repository that it has made, is
// never dropped silently: a commit names it, and the end of the claim keeps it.
func TestFilesThatGitLeavesOut(t *testing.T) {
	for name, spoil := range map[string]struct {
		do    func(t *testing.T, path string)
		words []string
		left  string
	}{
		"submodule": {func(t *testing.T, path string) { put(t, path, "sub/f.txt", "x\n") }, []string{"folder sub is that of a submodule", "its own repository"}, `"sub": it is the folder of a submodule`},
		"repository without a commit": {func(t *testing.T, path string) {
			git(t, path, "init", "-q", "inner")
			put(t, path, "inner/f.txt", "x\n")
		}, []string{"folder inner is a git repository of its own", "inner/.git"}, `"inner": it is a git repository of its own`},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.first()
			sub := filepath.Join(t.TempDir(), "sub")
			b.git("clone", "-q", b.repo, sub)
			b.git("submodule", "--quiet", "add", sub, "sub")
			b.git("commit", "-q", "-m", "submodule")
			w := b.add(worktree.Add{})
			put(t, w.Path, "work.txt", "work\n")
			spoil.do(t, w.Path)
			_, err := b.s.Commit(t.Context(), "T-1", 0, "work", "")
			refused(t, err, abi.Conflict, spoil.words...)
			if e := abi.As(err); e != nil && strings.Contains(e.Message, "exit code") {
				t.Errorf("the message of git: %v", err)
			}
			_, err = b.s.Remove(t.Context(), "T-1", 1)
			refused(t, err, abi.Conflict, append(spoil.words[:1:1], "force")...)
			b.claim("T-1", 0)
			if err := b.s.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if kept := b.kept(); len(kept) != 1 || b.git("show", "sentinel/T-1:work.txt") != "work" {
				t.Errorf("kept %v", kept)
			}
			b.claim("T-1", 2)
			w = b.add(worktree.Add{})
			put(t, w.Path, "more.txt", "more\n")
			spoil.do(t, w.Path)
			out, err := b.s.Discard(t.Context(), "T-1", 0)
			if err != nil || len(out.LeftOut) != 1 || out.LeftOut[0] != spoil.left || !out.Saved {
				t.Errorf("by force: %+v, %v", out, err)
			}
		})
	}
}

// TestWhatHoldsGit: git waits for a pipe in place of a file that it reads in every folder, and
// executes filters of a repository inside. Neither is committed, and a worktree with it holds
// up no other.
func TestWhatHoldsGit(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, path string){
		"pipe": func(t *testing.T, path string) {
			put(t, path, "below/x.txt", "x\n")
			if out, err := exec.Command("mkfifo", filepath.Join(path, "below", ".gitattributes")).CombinedOutput(); err != nil {
				t.Skipf("mkfifo: %v %s", err, out)
			}
		},
		"filter": func(t *testing.T, path string) {
			sub := filepath.Join(path, "sub")
			git(t, sub, "init", "-q")
			git(t, sub, "config", "filter.e.clean", "touch "+filepath.Join(path, "executed")+"; cat")
			put(t, sub, "f.txt", "x\n")
			git(t, sub, "-c", "filter.e.clean=cat", "add", "f.txt")
			git(t, sub, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "x")
			put(t, sub, ".gitattributes", "* filter=e\n")
			put(t, sub, "f.txt", "y\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.first()
			sub := filepath.Join(t.TempDir(), "sub")
			b.git("clone", "-q", b.repo, sub)
			b.git("submodule", "--quiet", "add", sub, "sub")
			b.git("commit", "-q", "-m", "submodule")
			w := b.add(worktree.Add{})
			put(t, w.Path, "work.txt", "work\n")
			spoil(t, w.Path)
			_, err := b.s.Commit(t.Context(), "T-1", 0, "work", "")
			refused(t, err, abi.Denied)
			b.claim("T-1", 0)
			if err := b.s.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if kept := b.kept(); len(kept) != 1 {
				t.Errorf("kept %v", kept)
			}
			b.claim("T-1", 2)
			if again := b.add(worktree.Add{}); again.Path == "" {
				t.Error("no new worktree")
			}
			if _, err := os.Stat(filepath.Join(w.Path, "executed")); err == nil {
				t.Error("the filter was executed")
			}
		})
	}
}
