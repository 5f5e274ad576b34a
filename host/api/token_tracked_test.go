package api_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/host/internal/trust"
	"github.com/sentinel-runtime/sentinel/host/internal/trust/content"
	"github.com/sentinel-runtime/sentinel/host/principal"
)

// TestTokensOfACommit: tokens that git writes into the state folder of a running server are not
// valid, nor any other until git tracks nothing there.
func TestTokensOfACommit(t *testing.T) {
	git := gitexec.LookPath()
	if git == "" {
		t.Skip("git is not installed")
	}
	work := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(git, args...)
		cmd.Dir = work
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	dir := filepath.Join(work, ".sentinel")
	state := filepath.Join(dir, "state")
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("/state/\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run("init", "-q", "-b", "main")
	run("add", "-A")
	run("commit", "-qm", "one")

	// Another person makes a token elsewhere and commits its digest.
	elsewhere := t.TempDir()
	theirs, err := (api.TokenStore{State: elsewhere}).New(principal.Person, "me", 0, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	run("checkout", "-q", "-b", "theirs")
	object := run("hash-object", "-w", filepath.Join(elsewhere, api.NamedName))
	run("update-index", "--add", "--cacheinfo", "100644,"+object+",.sentinel/state/"+api.NamedName)
	run("commit", "-qm", "two")
	run("checkout", "-qf", "main")

	folder := content.Open(dir, work, content.Options{Records: filepath.Join(t.TempDir(), "trusted"), Git: git})
	if err := folder.CheckState(state); err != nil {
		t.Fatal(err)
	}
	store := api.TokenStore{State: state, Trust: (*trust.Policy)(nil).WithContent(folder)}
	own, err := store.Token()
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := store.Open(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	tokens.SetNow(func() time.Time { return now })
	if !tokens.Valid(own) {
		t.Fatal("the own token is not valid")
	}
	run("merge", "-q", "theirs")
	if err := os.Chmod(filepath.Join(state, api.NamedName), 0o600); err != nil { // as with umask 077
		t.Fatal(err)
	}
	now = now.Add(time.Second)
	if tokens.Valid(theirs) || tokens.Valid(own) {
		t.Error("a token is valid in a folder that git tracks")
	}
	// Untracked before a host looks, the file stays, and does not count either. A file with other line ends is the same file.
	run("rm", "-q", "-r", "--cached", ".sentinel/state")
	for _, text := range []func(string) string{func(s string) string { return s }, func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }} {
		brought, err := os.ReadFile(filepath.Join(elsewhere, api.NamedName))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(state, api.NamedName), []byte(text(string(brought))), 0o600); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
		if tokens.Valid(theirs) || tokens.Valid(own) {
			t.Error("a token of a commit is valid once git does not track it")
		}
		later, err := store.Open(nil, nil)
		if err == nil && later.Valid(theirs) {
			t.Error("a token of a commit is valid at the next start")
		}
		if err := folder.CheckTracked(state); err == nil || !strings.Contains(err.Error(), api.NamedName) {
			t.Errorf("the folder with tokens of a commit: %v", err)
		}
	}
	if err := os.Remove(filepath.Join(state, api.NamedName)); err != nil {
		t.Fatal(err)
	}
	run("commit", "-qm", "three")
	now = now.Add(time.Second)
	if !tokens.Valid(own) || tokens.Valid(theirs) {
		t.Error("want the own token alone once git tracks nothing")
	}

	// When git has removed the objects of the commit, the file that it left is still not this program's.
	run("checkout", "-q", "theirs")
	run("rm", "-q", "-r", "--cached", ".sentinel/state")
	run("reset", "-q", "--soft", "main~2") // the commit before the merge
	run("checkout", "-qf", "-B", "main")
	run("branch", "-qD", "theirs")
	run("reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all")
	if err := os.RemoveAll(filepath.Join(work, ".git", "ORIG_HEAD")); err != nil {
		t.Fatal(err)
	}
	run("gc", "-q", "--prune=now")
	brought, err := os.ReadFile(filepath.Join(elsewhere, api.NamedName))
	if err != nil {
		t.Fatal(err)
	}
	if exec.Command(git, "-C", work, "cat-file", "-e", object).Run() == nil {
		t.Fatal("git still has the object")
	}
	if err := os.WriteFile(filepath.Join(state, api.NamedName), brought, 0o600); err != nil { // whether git left it or not
		t.Fatal(err)
	}
	now = now.Add(time.Second)
	if tokens.Valid(theirs) || tokens.Valid(own) {
		t.Error("a token of a commit is valid once git has removed the commit")
	}
	if err := os.Remove(filepath.Join(state, api.NamedName)); err != nil {
		t.Fatal(err)
	}

	// Own tokens count, and one that is revoked does not when its file comes back.
	mine, err := store.New(principal.Agent, "ci", 0, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(state, api.NamedName))
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Second)
	if !tokens.Valid(mine) || !tokens.Valid(own) {
		t.Error("own tokens are not valid")
	}
	if err := store.Revoke("ci"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(state, api.NamedName), before, 0o600); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Second)
	if tokens.Valid(mine) {
		t.Error("a revoked token is valid when its file comes back")
	}
}
