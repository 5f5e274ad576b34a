//go:build unix

package worktree_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/worktree"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestMain also is the process that a crash test kills: it executes one step, and kills
// itself when the step has reached a state.
func TestMain(m *testing.M) {
	step := os.Getenv("WORKTREE_STEP")
	if step == "" {
		os.Exit(m.Run())
	}
	repo, state := os.Getenv("WORKTREE_REPO"), os.Getenv("WORKTREE_STATE")
	s := worktree.New(worktree.Options{
		Dir: os.Getenv("WORKTREE_DIR"),
		Ticket: func(context.Context, string, uint64) (worktree.Ticket, error) {
			return worktree.Ticket{ID: "T-1", RepoURL: repo, Token: 1, Branch: "sentinel/T-1", Verified: os.Getenv("WORKTREE_VERIFIED")}, nil
		},
		At: func(at string) {
			if at == state {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
		},
	})
	if _, err := execute(context.Background(), s, step); err != nil {
		os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
	os.Exit(0)
}

// execute executes a step and returns what must be the same however often it was killed.
func execute(ctx context.Context, s *worktree.Service, step string) (commit string, err error) {
	switch step {
	case "add":
		out, err := s.Add(ctx, worktree.Add{Ticket: "T-1"})
		return out.Commit, err
	case "commit":
		out, err := s.Commit(ctx, "T-1", 1, "work", "key")
		if err == nil && (!out.Changed || len(out.Files) != 1 || out.Files[0].Path != "work.txt") {
			err = abi.New(abi.Internal, "the commit is not that of the first call")
		}
		return out.Commit, err
	case "rebase":
		out, err := s.Rebase(ctx, "T-1", 1)
		return out.Commit, err
	case "review":
		out, err := s.Review(ctx, "T-1", 1)
		return out.Commit, err
	case "push":
		out, err := s.Push(ctx, "T-1", 1, "")
		return out.Commit, err
	}
	_, err = s.Remove(ctx, "T-1", 1)
	return "", err
}

// TestKilledAtEveryState kills a process at each state that a step goes through, and
// executes the step again in another.
func TestKilledAtEveryState(t *testing.T) {
	last := map[string]string{}
	states := []struct{ step, state string }{
		{"add", "add: cloned"}, {"add", "add: checked out"}, {"add", "add: made"}, {"add", "add: saved"},
		{"commit", "commit: made"}, {"commit", "published"},
		{"rebase", "rebase: begins"}, {"rebase", "rebase: done"}, {"rebase", "published"}, {"rebase conflict", "rebase: stopped"}, {"rebase conflict", "rebase: noted"}, {"rebase several conflict", "rebase: squashed"},
		{"push", "push: done"},
		{"review", "review: made"}, {"review", "review: saved"},
		{"remove", "remove: kept"}, {"remove", "remove: begun"},
	}
	for _, c := range states {
		last[c.step] = c.state
	}
	for _, c := range states {
		if testing.Short() && last[c.step] != c.state {
			continue // of each step the short form has the last state, which leaves most behind
		}
		t.Run(strings.ReplaceAll(c.step+" "+c.state, ":", ""), func(t *testing.T) {
			b := newBench(t)
			b.first()
			remote := filepath.Join(t.TempDir(), "remote.git")
			b.git("clone", "-q", "--bare", b.repo, remote)
			b.git("remote", "add", "origin", remote)
			step, conflicts := strings.CutSuffix(c.step, " conflict")
			step, several := strings.CutSuffix(step, " several")
			path := filepath.Join(b.dir, "trees", "T-1", "tree")
			verified := ""
			if step == "review" {
				verified = b.worked("verified\n")
				b.verified(1, verified)
			} else if step != "add" {
				b.add(worktree.Add{})
				put(t, path, "work.txt", "work\n")
			}
			if step == "rebase" || step == "push" {
				b.commit("work", "before")
			}
			if several {
				put(t, path, "work.txt", "more work\n")
				b.commit("more", "")
			}
			if step == "rebase" {
				name := "other.txt"
				if conflicts {
					name = "work.txt"
				}
				b.change(name, "theirs\n")
			}
			before := b.users()
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "WORKTREE_STEP="+step, "WORKTREE_STATE="+c.state, "WORKTREE_DIR="+b.dir, "WORKTREE_REPO="+b.repo, "WORKTREE_VERIFIED="+verified)
			out, err := cmd.CombinedOutput()
			exit, ok := err.(*exec.ExitError)
			if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("the process was not killed: %v %s", err, out)
			}
			// Git may have been killed too.
			if git := filepath.Join(filepath.Dir(path), "git"); step != "add" && c.state != "remove: begun" && c.state != "review: made" {
				for _, name := range []string{"index.lock", "HEAD.lock", "refs/heads/sentinel/T-1.lock"} {
					put(t, git, name, "")
					old := time.Now().Add(-time.Hour)
					if err := os.Chtimes(filepath.Join(git, name), old, old); err != nil {
						t.Fatal(err)
					}
				}
			}
			b.s = b.open(worktree.Options{})
			first, err := execute(t.Context(), b.s, step)
			if err != nil {
				t.Fatalf("again: %v", err)
			}
			second, err := execute(t.Context(), b.s, step)
			if err != nil || first != second {
				t.Errorf("a third time: %s, then %s, %v", first, second, err)
			}
			list, err := b.s.List()
			if want := map[bool]int{true: 0, false: 1}[step == "remove"]; err != nil || len(list) != want {
				t.Errorf("worktrees: %+v, %v", list, err)
			}
			switch step {
			case "remove":
				if b.git("show", "sentinel/T-1:work.txt") != "work" {
					t.Error("the work is lost")
				}
				if left, _ := os.ReadDir(filepath.Join(b.dir, "trees")); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
			case "push":
				if git(t, remote, "rev-parse", "sentinel/T-1") != first {
					t.Error("the remote has another commit")
				}
			default:
				if got := b.git("rev-parse", "sentinel/T-1"); got != first {
					t.Errorf("the branch is at %s, the step returned %s", got, first)
				}
				if status := git(t, path, "status", "--porcelain"); status != "" {
					t.Errorf("the worktree is not clean: %s", status)
				}
				text, _ := os.ReadFile(filepath.Join(path, "work.txt"))
				if marked := strings.Contains(string(text), "<<<<<<<"); marked != conflicts {
					t.Errorf("work.txt: %q", text)
				}
				if conflicts {
					put(t, path, "work.txt", "both\n")
					b.commit("both", "")
				}
			}
			if n := b.git("rev-list", "--count", "main..sentinel/T-1"); step != "add" && n != "1" {
				t.Errorf("the branch has %s commits of its own", n)
			}
			after := b.users()
			for name := range before {
				if before[name] != after[name] {
					t.Errorf("the user's %s was changed", name)
				}
			}
		})
	}
}
