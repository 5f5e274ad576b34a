package worktree_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
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

// TestWorktreesBesideConfinedCommands: a repository that a confined command may have made, which is still
// being executed, is not the repository of an agent's worktree, and no step works in a worktree that such a
// command can write.
func TestWorktreesBesideConfinedCommands(t *testing.T) {
	b := newBench(t)
	b.first()
	made, held := "", 0
	executed := func(folder string) error {
		real, err := filepath.EvalSymlinks(made)
		if at, failed := filepath.EvalSymlinks(folder); made != "" && err == nil && failed == nil && at == real {
			return &abi.Error{Code: abi.Conflict, Message: "made meanwhile"}
		}
		return nil
	}
	b.s = b.open(worktree.Options{Check: executed, HoldTree: func(folder string) (func(), error) {
		if err := executed(folder); err != nil {
			return nil, err
		}
		held++
		return func() { held-- }, nil
	}})
	made = b.repo
	_, err := b.s.Add(t.Context(), worktree.Add{Ticket: "T-1", Bound: true})
	refused(t, err, abi.Conflict, "made meanwhile")
	w := b.add(worktree.Add{}) // for a step of the person
	made = w.Path
	put(t, w.Path, "work.txt", "work\n")
	for name, step := range map[string]func() error{
		"commit": func() error { _, err := b.s.Commit(t.Context(), "T-1", 0, "work", ""); return err },
		"diff":   func() error { _, err := b.s.Diff(t.Context(), "T-1", 0); return err },
		"rebase": func() error { _, err := b.s.Rebase(t.Context(), "T-1", 0); return err },
		"add":    func() error { _, err := b.s.Add(t.Context(), worktree.Add{Ticket: "T-1"}); return err },
		"remove": func() error { _, err := b.s.Remove(t.Context(), "T-1", 0); return err },
	} {
		if err := step(); abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), "made meanwhile") {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.claim("T-1", 0)
	if err := b.s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(w.Path, "work.txt")); err != nil {
		t.Errorf("while the command is executed: %v", err)
	}
	made = ""
	if err := b.s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(w.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after the command: %v", err)
	}
	if text := b.git("show", "sentinel/T-1:work.txt"); text != "work" || held != 0 {
		t.Errorf("the work: %q, %d trees are still held", text, held)
	}
}

// TestReferencesElsewhere: settings by which git reads and changes the references of another repository.
func TestReferencesElsewhere(t *testing.T) {
	b := newBench(t)
	b.first()
	b.git("config", "extensions.refStorage", "files:///elsewhere/.git")
	b.git("config", "core.repositoryFormatVersion", "0") // so that git of any version reads it
	_, err := b.s.Add(t.Context(), worktree.Add{Ticket: "T-1", Bound: true})
	refused(t, err, abi.Denied, "references are elsewhere")
	b.add(worktree.Add{})
}
