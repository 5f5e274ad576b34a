package worktree_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/worktree"
)

// A git that is killed while it makes or removes the notes of a rebase leaves some of them: the
// next rebase works, and no work is lost.
func TestHalfRebase(t *testing.T) {
	files := []string{"head-name", "onto", "orig-head", "git-rebase-todo", "done", "end", "msgnum", "interactive"}
	for n := range len(files) + 1 {
		b := newBench(t)
		b.first()
		w := b.add(worktree.Add{})
		put(t, w.Path, "work.txt", "work\n")
		c := b.commit("work", "")
		base := b.change("base.txt", "base\n")
		// A rebase that stops, as one that is killed does, with its notes.
		gitDir := filepath.Join(filepath.Dir(w.Path), "git")
		git(t, w.Path, "fetch", "-q", b.repo, base)
		git(t, w.Path, "rebase", "-q", "--onto", base, w.BaseCommit, "--exec", "touch ran")
		git(t, w.Path, "update-ref", "refs/heads/sentinel/T-1", c.Commit)
		git(t, w.Path, "checkout", "-q", "--detach", base) // in the middle of it
		notes := filepath.Join(gitDir, "rebase-merge")
		if err := os.MkdirAll(notes, 0o700); err != nil {
			t.Fatal(err)
		}
		values := map[string]string{"head-name": "refs/heads/sentinel/T-1\n", "onto": base + "\n", "orig-head": c.Commit + "\n", "end": "1\n", "msgnum": "1\n"}
		for _, name := range files[n:] { // n == 0: all that git needs; len(files): a folder without files
			put(t, notes, name, values[name])
		}
		if err := os.Remove(filepath.Join(w.Path, "ran")); err != nil {
			t.Fatal(err)
		}
		again := b.open(worktree.Options{})
		r, err := again.Rebase(t.Context(), "T-1", 0)
		if err != nil || r.Conflict || r.BaseCommit != base || b.git("show", r.Commit+":work.txt") != "work" || b.git("show", r.Commit+":base.txt") != "base" {
			t.Errorf("without the first %d: %+v, %v", n, r, err)
		}
		if _, err := os.Stat(notes); err == nil {
			t.Errorf("without the first %d: notes of the rebase are left", n)
		}
	}
}
