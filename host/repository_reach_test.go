package host_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/command"
)

// TestContextsStayInTheRepository: a context is read by a model, so it has nothing of a repository that
// .git of the workspace leads to, also one that the user builds. In a worktree that git has made it has all.
func TestContextsStayInTheRepository(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	git := func(dir string, args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	other, planted, tree := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "tree")
	filesOf(t, other, map[string]string{"a.txt": "text"})
	git(other, "init", "-q", "-b", "main")
	git(other, "add", ".")
	git(other, "commit", "-q", "-m", "PRIVATE")
	git(other, "worktree", "add", "-q", tree)
	filesOf(t, planted, map[string]string{".git": "gitdir: " + filepath.Join(other, ".git") + "\n", "a.txt": "text"})
	for work, found := range map[string]bool{planted: false, tree: true} {
		h, err := host.Open(t.Context(), host.Options{Workspace: work})
		if err != nil {
			t.Fatal(err)
		}
		for _, by := range []command.By{command.ByUser, command.ByAgent} {
			params := json.RawMessage(`{"sources": ["git"]}`)
			out, err := h.CallAs(t.Context(), &command.Call{Command: "rag/build", Params: params, By: by, Workspace: work})
			if err != nil || strings.Contains(string(out), "PRIVATE") != found {
				t.Errorf("%s, found %t: %s %v", by, found, out, err)
			}
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}
