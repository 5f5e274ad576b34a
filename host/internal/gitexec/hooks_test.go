package gitexec_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestHooksOfSettings: git that receives a push gets the hooks switched off which the settings of the
// repository name, of a bare one and of one with a work tree.
func TestHooksOfSettings(t *testing.T) {
	program := gitexec.LookPath()
	if program == "" {
		t.Skip("no git on this machine")
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	run := func(args ...string) {
		t.Helper()
		if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v %s", args, err, out)
		}
	}
	g := &gitexec.Runner{Program: program, Env: []string{"GIT_DIR=" + t.TempDir()}}
	for _, args := range [][]string{{"init", "-q"}, {"init", "-q", "--bare"}} {
		repo := filepath.Join(t.TempDir(), "r")
		run(append(args, repo)...)
		dir := repo
		if len(args) == 2 {
			dir = filepath.Join(repo, ".git")
		}
		run("--git-dir="+dir, "config", "hook.A b.command", "true")
		run("--git-dir="+dir, "config", "hook.A b.event", "post-receive")
		service, err := g.ReceivePack(t.Context(), []string{repo}, "receive.denyCurrentBranch=refuse")
		if want := "hook.A b.enabled=false"; err != nil || !strings.Contains(service, want) || !strings.Contains(service, "receive.denyCurrentBranch=refuse") {
			t.Errorf("%v: %v, %q, want %q in it", args, err, service, want)
		}
		run("--git-dir="+dir, "config", "hook.x=y.command", "true")
		if _, err := g.ReceivePack(t.Context(), []string{repo}); abi.CodeOf(err) != abi.Denied {
			t.Errorf("%v: a name that no argument can have: %v", args, err)
		}
	}
}
