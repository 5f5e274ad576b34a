package worktree_test

import (
	"path/filepath"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/worktree"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// passed says that the verification of T-1 has passed for a commit, in claim 1.
func (b *bench) passed(commit string) {
	own := b.tickets["T-1"]
	own.Verified = commit
	b.tickets["T-1"] = own
}

// A commit behind the one that was verified is neither pushed nor proposed: the remote keeps the
// verified one until the work is verified again.
func TestPushIsOfTheVerifiedCommit(t *testing.T) {
	b := newBench(t)
	b.first()
	remote := filepath.Join(t.TempDir(), "remote.git")
	b.git("clone", "-q", "--bare", "--single-branch", b.repo, remote)
	b.git("remote", "add", "origin", remote)
	w := b.add(worktree.Add{})
	work := func(text string) string {
		put(t, w.Path, "a.txt", text)
		return b.commit(text, "").Commit
	}
	push := func() error { _, err := b.s.Push(t.Context(), "T-1", 1, ""); return err }
	find := func() error { _, _, err := b.s.Find(t.Context(), "T-1", 1); return err }
	work("a draft")
	if err := push(); err != nil { // checks may look at what another program made of it
		t.Errorf("before a verification: %v", err)
	}
	good := work("good")
	b.passed(good)
	if err := push(); err != nil {
		t.Error(err)
	}
	evil := work("evil")
	for name, step := range map[string]func() error{"push": push, "pull request": find} {
		err := step()
		refused(t, err, abi.Conflict, "verified "+good[:7]+"; the branch is at "+evil[:7]+": verify again")
		if got := git(t, remote, "rev-parse", "sentinel/T-1"); got != good {
			t.Errorf("%s: the remote has %s, want %s", name, got, good)
		}
	}
	b.passed(evil)
	if err := push(); err != nil || git(t, remote, "rev-parse", "sentinel/T-1") != evil {
		t.Errorf("verified again: %v", err)
	}
}

// What a claim leaves uncommitted does not move a branch that was verified. It is kept beside it.
func TestUnfinishedWorkStaysOffTheVerifiedBranch(t *testing.T) {
	b := newBench(t)
	b.first()
	w := b.add(worktree.Add{})
	put(t, w.Path, "a.txt", "good\n")
	good := b.commit("work", "").Commit
	b.passed(good)
	put(t, w.Path, "a.txt", "evil\n")
	out, err := b.s.Remove(t.Context(), "T-1", 1)
	if err != nil || !out.Saved || out.Ref != "refs/sentinel/attempts/T-1/1" {
		t.Fatalf("%+v, %v", out, err)
	}
	if got := b.git("rev-parse", "sentinel/T-1"); got != good {
		t.Errorf("the branch is at %s, want %s", got, good)
	}
	if got := b.git("show", out.Ref+":a.txt"); got != "evil" {
		t.Errorf("kept: %q", got)
	}
}

// A result is compared with what its claim has pushed, and with nothing that an earlier one has.
func TestHoldHasWhatTheClaimPushed(t *testing.T) {
	b := newBench(t)
	b.first()
	remote := filepath.Join(t.TempDir(), "remote.git")
	b.git("clone", "-q", "--bare", "--single-branch", b.repo, remote)
	b.git("remote", "add", "origin", remote)
	pushed := func(want string) {
		t.Helper()
		called := false
		if err := b.s.Hold(t.Context(), "T-1", func(got string) error {
			if called = true; got != want {
				t.Errorf("pushed %q, want %q", got, want)
			}
			return nil
		}); err != nil || !called {
			t.Errorf("called %v, %v", called, err)
		}
	}
	pushed("")
	w := b.add(worktree.Add{})
	put(t, w.Path, "a.txt", "work\n")
	commit := b.commit("work", "").Commit
	pushed("")
	if _, err := b.s.Push(t.Context(), "T-1", 1, ""); err != nil {
		t.Fatal(err)
	}
	pushed(commit)
	b.claim("T-1", 2)
	pushed("")
}
