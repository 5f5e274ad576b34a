package gitsource_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/host/internal/gitsource"
	"github.com/sentinel-runtime/sentinel/host/internal/trash"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestMirrorKeepsWhatIsBorrowed: a branch that is in the way of another one leaves the mirror, and
// its objects stay for the checkouts of running checks. The name of the default branch in a mirror
// is that of no branch.
func TestMirrorKeepsWhatIsBorrowed(t *testing.T) {
	program := gitexec.LookPath()
	if program == "" {
		t.Skip("git is not installed")
	}
	repo := t.TempDir()
	git := func(dir string, args ...string) string {
		t.Helper()
		cmd := exec.Command(program, args...)
		cmd.Dir = dir
		cmd.Env = append(cmd.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git(repo, "init", "-q", "-b", "main")
	git(repo, "commit", "-q", "--allow-empty", "-m", "one")
	git(repo, "checkout", "-q", "-b", "x")
	git(repo, "commit", "-q", "--allow-empty", "-m", "of x")
	commit := git(repo, "rev-parse", "HEAD")
	m := &gitsource.Mirrors{
		Dir: filepath.Join(t.TempDir(), "mirrors"), Git: gitexec.Runner{Program: program}, Removed: &trash.Bin{Dir: filepath.Join(t.TempDir(), "removed")},
	}
	fetch := func(branch string) string {
		t.Helper()
		dir, err := m.Fetch(t.Context(), repo, "branch_name", branch)
		if err != nil {
			t.Fatalf("fetch %q: %v", branch, err)
		}
		return dir
	}
	dir := fetch("x")
	git(repo, "checkout", "-q", "main")
	git(repo, "branch", "-q", "-D", "x")
	git(repo, "branch", "-q", "x/y")
	fetch("x/y")
	if kind := git(dir, "--git-dir="+dir, "cat-file", "-t", commit); kind != "commit" {
		t.Errorf("the commit of x is a %s", kind)
	}
	git(repo, "branch", "-q", "-D", "x/y")
	git(repo, "branch", "-q", "x")
	fetch("x")
	fetch("")
	for _, branch := range []string{gitsource.DefaultBranch, gitsource.DefaultBranch + "/x"} {
		if _, err := m.Fetch(t.Context(), repo, "branch_name", branch); abi.CodeOf(err) != abi.BadFields {
			t.Errorf("%s: %v", branch, err)
		}
	}
}

// TestMirrorAfterKill: what a git that was killed at any moment of its init has left does not fail the next fetch.
func TestMirrorAfterKill(t *testing.T) {
	program := gitexec.LookPath()
	if program == "" {
		t.Skip("git is not installed")
	}
	repo := t.TempDir()
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "one"}} {
		cmd := exec.Command(program, args...)
		cmd.Dir = repo
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, out)
		}
	}
	for name, left := range map[string][]string{
		"a lock": {"refs/heads/", "HEAD.lock"}, "a lock of the configuration": {"refs/heads/", "HEAD", "config.lock"}, "no objects": {"refs/", "HEAD"},
	} {
		m := &gitsource.Mirrors{
			Dir: filepath.Join(t.TempDir(), "mirrors"), Git: gitexec.Runner{Program: program}, Removed: &trash.Bin{Dir: filepath.Join(t.TempDir(), "removed")},
		}
		killed := m.Folder(repo) + ".new"
		for _, file := range left {
			at := filepath.Join(killed, file)
			if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(file, "/") {
				continue
			}
			if err := os.WriteFile(at, []byte("ref: refs/heads/main\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := m.Fetch(t.Context(), repo, "branch_name", "main"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// An earlier version of this program made the mirror in its place.
	m := &gitsource.Mirrors{
		Dir: filepath.Join(t.TempDir(), "mirrors"), Git: gitexec.Runner{Program: program}, Removed: &trash.Bin{Dir: filepath.Join(t.TempDir(), "removed")},
	}
	if err := os.MkdirAll(m.Folder(repo), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(m.Folder(repo), "HEAD.lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Fetch(t.Context(), repo, "branch_name", "main"); err != nil {
		t.Errorf("a lock in the place of the mirror: %v", err)
	}
}
