package worktree_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/internal/gitsource"
	"github.com/sentinel-runtime/sentinel/host/worktree"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// worked makes the branch of a ticket whose claim has ended, and returns its commit.
func (b *bench) worked(text string) string {
	b.t.Helper()
	w := b.add(worktree.Add{Continue: true})
	put(b.t, w.Path, "a.txt", text)
	put(b.t, w.Path, "new.txt", "new\n")
	commit := b.commit("work", "").Commit
	if _, err := b.s.Remove(b.t.Context(), "T-1", 0); err != nil {
		b.t.Fatal(err)
	}
	return commit
}

// verified makes the claim of a reviewer on a commit.
func (b *bench) verified(token uint64, commit string) {
	b.tickets["T-1"] = worktree.Ticket{ID: "T-1", RepoURL: b.repo, Token: token, Branch: "sentinel/T-1", Verified: commit}
}

// A reviewer reads the commit that was verified, also if the base and the branch have moved
// since, and changes neither the branch nor anything else in the repository.
func TestReview(t *testing.T) {
	b := newBench(t)
	b.first()
	base := b.git("rev-parse", "HEAD")
	verified := b.worked("verified\n")
	b.verified(2, verified)
	b.change("other.txt", "the base has moved\n")
	refs := b.git("for-each-ref")
	users := b.users()
	w, err := b.s.Review(t.Context(), "T-1", 2)
	if err != nil || w.Commit != verified || w.BranchCommit != verified || w.Moved || read(t, filepath.Join(w.Path, "a.txt")) != "verified\n" {
		t.Fatalf("%+v, %v", w, err)
	}
	// The branch moves: the files stay those that were verified.
	b.git("checkout", "-q", "sentinel/T-1")
	moved := b.change("a.txt", "not verified\n")
	b.git("checkout", "-q", "main")
	again, err := b.s.Review(t.Context(), "T-1", 2)
	if err != nil || again.Path != w.Path || again.Commit != verified || again.BranchCommit != moved || !again.Moved || read(t, filepath.Join(w.Path, "a.txt")) != "verified\n" {
		t.Errorf("the branch moved: %+v, %v", again, err)
	}
	// The diff is that of the commit, whatever is in the folder.
	put(t, w.Path, "a.txt", "written by a reviewer\n")
	diff, err := b.s.Diff(t.Context(), "T-1", 2)
	if err != nil || diff.Base != base || !strings.Contains(diff.Diff, "+verified") || strings.Contains(diff.Diff, "reviewer") ||
		!cmp.Equal(diff.Files, []worktree.File{{Path: "a.txt", Change: "modified"}, {Path: "new.txt", Change: "created"}}) {
		t.Errorf("%+v, %v", diff, err)
	}
	// No step changes a branch from it.
	_, err = b.s.Commit(t.Context(), "T-1", 2, "review", "")
	refused(t, err, abi.Conflict, "for a review")
	_, err = b.s.Rebase(t.Context(), "T-1", 2)
	refused(t, err, abi.Conflict, "for a review")
	_, err = b.s.Push(t.Context(), "T-1", 2, "")
	refused(t, err, abi.Conflict, "for a review")
	_, _, err = b.s.Find(t.Context(), "T-1", 2)
	refused(t, err, abi.Conflict, "for a review")
	_, err = b.s.Add(t.Context(), worktree.Add{Ticket: "T-1"})
	refused(t, err, abi.Conflict, "for a review")
	// Nothing of it is kept.
	out, err := b.s.Remove(t.Context(), "T-1", 2)
	if err != nil || !out.Removed || out.Saved || out.Commit != verified {
		t.Errorf("remove: %+v, %v", out, err)
	}
	b.git("update-ref", "refs/heads/sentinel/T-1", verified)
	if diff := cmp.Diff(refs, b.git("for-each-ref")); diff != "" {
		t.Errorf("references (-before +after):\n%s", diff)
	}
	for _, name := range []string{".git/config", "a.txt"} {
		if users[name] != b.users()[name] {
			t.Errorf("%s of the user was changed", name)
		}
	}
	// A ticket whose verification was repeated for another commit, and a branch that is gone.
	b.verified(3, verified)
	if _, err = b.s.Review(t.Context(), "T-1", 3); err != nil {
		t.Fatal(err)
	}
	b.git("branch", "-q", "-D", "sentinel/T-1")
	b.verified(3, moved)
	if again, err = b.s.Review(t.Context(), "T-1", 3); err != nil || again.Commit != verified || !again.Moved || again.BranchCommit != "" {
		t.Errorf("verified again: %+v, %v", again, err)
	}
	// A claim that has ended leaves nothing.
	b.verified(4, "")
	if err := b.s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(filepath.Join(b.dir, "trees")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// What cannot be reviewed is an error that says why, and leaves nothing.
func TestReviewRefused(t *testing.T) {
	b := newBench(t)
	b.first()
	for commit, want := range map[string]struct {
		code abi.Code
		text string
	}{
		"":                         {abi.Conflict, "no commit that was verified"},
		"HEAD":                     {abi.Conflict, "no commit that was verified"},
		"--upload-pack=touch":      {abi.Conflict, "no commit that was verified"},
		strings.Repeat("0123", 10): {abi.NotFound, "is not in"},
	} {
		b.verified(2, commit)
		_, err := b.s.Review(t.Context(), "T-1", 2)
		refused(t, err, want.code, want.text)
		_, err = b.s.Review(t.Context(), "T-1", 7)
		refused(t, err, abi.Conflict, "the claim has ended")
	}
	b.tickets["T-1"] = worktree.Ticket{ID: "T-1", RepoURL: b.repo, Token: 5, Verified: b.git("rev-parse", "HEAD")}
	b.add(worktree.Add{})
	_, err := b.s.Review(t.Context(), "T-1", 5)
	refused(t, err, abi.Conflict, "for work on it")
	if _, err := b.s.Remove(t.Context(), "T-1", 0); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(filepath.Join(b.dir, "trees")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// A branch that an agent pushed from another machine is fetched, and its newest commit is
// what the remote has.
func TestReviewOfARemote(t *testing.T) {
	const token = "hunter2-hunter2-hunter2"
	b := newBench(t)
	b.first()
	root := t.TempDir()
	remote := filepath.Join(root, "o", "r.git")
	b.git("checkout", "-q", "-b", "work")
	verified := b.change("a.txt", "verified\n")
	b.git("checkout", "-q", "main")
	b.git("clone", "-q", "--bare", b.repo, remote)
	var seen bytes.Buffer
	server := gitServer(t, root, token, &seen)
	server.StartTLS()
	config := filepath.Join(t.TempDir(), "config")
	put(t, filepath.Dir(config), "config", "[http]\n\tsslVerify = false\n")
	t.Setenv("GIT_CONFIG_GLOBAL", config)
	b.s = b.open(worktree.Options{Credential: func() (gitsource.Credential, error) { return gitsource.Credential{URL: server.URL, Token: token}, nil }})
	b.tickets["T-1"] = worktree.Ticket{ID: "T-1", RepoURL: server.URL + "/o/r.git", Token: 1, Branch: "work", Verified: verified}
	w, err := b.s.Review(t.Context(), "T-1", 1)
	if err != nil || w.Commit != verified || w.BranchCommit != verified || w.Moved || read(t, filepath.Join(w.Path, "a.txt")) != "verified\n" {
		t.Fatalf("%+v, %v", w, err)
	}
	b.git("checkout", "-q", "work")
	moved := b.change("a.txt", "not verified\n")
	b.git("push", "-q", remote, "work")
	if w, err = b.s.Review(t.Context(), "T-1", 1); err != nil || w.Commit != verified || w.BranchCommit != moved || !w.Moved {
		t.Errorf("the remote moved: %+v, %v", w, err)
	}
	git(t, remote, "branch", "-q", "-D", "work")
	if w, err = b.s.Review(t.Context(), "T-1", 1); err != nil || w.BranchCommit != "" || !w.Moved {
		t.Errorf("the remote has no branch: %+v, %v", w, err)
	}
}
