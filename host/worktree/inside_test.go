package worktree_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/worktree"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestRepositoriesThatLeadToOthers: agents and models get no worktree of another repository than that of
// the ticket. The steps of the person's sentinels may have one.
func TestRepositoriesThatLeadToOthers(t *testing.T) {
	b := newBench(t)
	b.first()
	b.git("branch", "work")
	other, before := b.repo, b.git("for-each-ref")
	b.repo = t.TempDir()
	put(t, b.repo, ".git", "gitdir: "+filepath.Join(other, ".git")+"\n")
	if err := os.Mkdir(filepath.Join(b.repo, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{b.repo, filepath.Join(b.repo, "sub")} {
		ticket := b.tickets["T-1"]
		ticket.RepoURL = dir
		b.tickets["T-1"] = ticket
		_, err := b.s.Add(t.Context(), worktree.Add{Ticket: "T-1", Bound: true})
		refused(t, err, abi.Denied, "outside of it")
	}
	if after := git(t, other, "for-each-ref"); after != before {
		t.Errorf("references of the other repository: %s", after)
	}
	b.claim("T-1", 1)
	if _, err := b.s.Add(t.Context(), worktree.Add{Ticket: "T-1"}); err != nil {
		t.Errorf("a step: %v", err)
	}

	// A worktree that git has made is one of the repository, also in a folder below its top.
	b.repo = filepath.Join(t.TempDir(), "w")
	git(t, other, "worktree", "add", "-q", b.repo, "work")
	b.claim("T-2", 1)
	w, err := b.s.Add(t.Context(), worktree.Add{Ticket: "T-2", Bound: true})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := b.s.GitDir(w.Path), filepath.Join(filepath.Dir(w.Path), "git"); got != want {
		t.Errorf("git directory: %q, want %q", got, want)
	}
	if got := b.s.GitDir(other); got != "" {
		t.Errorf("git directory of a folder of the user: %q", got)
	}
}
