package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/host/confine"
)

// gitNames returns the paths with the name .git below a folder.
func gitNames(t *testing.T, dir string) (list []string) {
	t.Helper()
	state := filepath.Join(dir, ".sentinel", "state") // where the host removes homes of commands meanwhile
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if path == state {
			return fs.SkipDir
		}
		if err == nil && e.Name() == ".git" {
			name, err := filepath.Rel(dir, path)
			if err != nil {
				return err
			}
			list = append(list, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestConfinedShellMakesNoRepositories: a repository that a confined command makes in the workspace,
// in any way, is renamed when the command ends, and fails it; it cannot write those that exist.
// The git of the host executes nothing that its settings name, also while the command runs.
func TestConfinedShellMakesNoRepositories(t *testing.T) {
	for _, g := range confine.Gaps() {
		if g.Wall == confine.WallNamespaces {
			t.Skip(g)
		}
	}
	program, err := exec.LookPath("git")
	if err != nil {
		t.Skip(err)
	}
	git := func(dir string, args ...string) {
		t.Helper()
		cmd := exec.Command(program, append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	begin := func(t *testing.T) (*host.Host, string) {
		t.Helper()
		work := t.TempDir()
		git(work, "init", "-q", "-b", "main")
		git(work, "commit", "-q", "--allow-empty", "-m", "first")
		git(work, "init", "-q", "lib/known")
		git(filepath.Join(work, "lib/known"), "commit", "-q", "--allow-empty", "-m", "first")
		filesOf(t, work, map[string]string{"template/config": "[core]\n\tbare = false\n", "template/HEAD": "ref: refs/heads/main\n", "template/objects/x": "", "template/refs/x": ""})
		h, err := host.Open(t.Context(), host.Options{Workspace: work, Set: map[string]string{"shell.confine": config.Agents}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = h.Close() })
		return h, work
	}
	marker := filepath.Join(t.TempDir(), "executed")
	hostile := ` && git -C sub -c user.name=t -c user.email=t commit -q --allow-empty -m first && git -C sub config core.fsmonitor "touch ` + marker + `" && git -C sub config filter.f.clean "touch ` + marker + `" && git -C sub config filter.f.smudge "touch ` + marker + `" &&
		echo "* filter=f" > sub/.gitattributes && echo text > sub/file && printf "#!/bin/sh\ntouch ` + marker + `\n" > sub/.git/hooks/pre-commit && chmod +x sub/.git/hooks/pre-commit`
	h, work := begin(t)
	for name, c := range map[string]struct{ line, named string }{
		"git init":            {"git init -q sub" + hostile, "sub/.git"},
		"a moved folder":      {"mkdir sub && mv template sub/.git", "sub/.git"},
		"a file":              {`mkdir sub && echo "gitdir: ../template" > sub/.git`, "sub/.git"},
		"a link":              {"mkdir sub && ln -s ../template sub/.git", "sub/.git"},
		"unreadable":          {"git init -q sub" + hostile + " && mkdir keep && mv sub keep/sub && chmod 0 keep", "keep/sub/.git"},
		"in a name of a line": {`mkdir "$(printf 'a\nb')" && git init -q "$(printf 'a\nb')"`, "in-a-name-of-a-line/a"},
		"in a deep folder":    {"mkdir -p a/b/c/d/e/f && git init -q a/b/c/d/e/f", "a/b/c/d/e/f/.git"},
		"in the background":   {"(setsid sh -c 'sleep 0.2; git init -q sub; sleep 600' &) ; while ! [ -e sub/.git/HEAD ]; do sleep 0.02; done", "sub/.git"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := strings.ReplaceAll(name, " ", "-")
			out, err := confined(t, h, work, "mkdir "+dir+" && cp -r template "+dir+" && cd "+dir+" && "+c.line)
			_ = os.Chmod(filepath.Join(work, dir, "keep"), 0o700)
			if err != nil || !strings.Contains(out, `"exitCode":126`) || !strings.Contains(out, c.named) || !strings.Contains(out, "cannot make repositories") {
				t.Errorf("%s %v", out, err)
			}
			if found := gitNames(t, work); !slices.Equal(found, []string{".git", "lib/known/.git"}) {
				t.Errorf("repositories: %q", found)
			}
			git(work, "status")
			if out, err := confined(t, h, work, "echo next"); err != nil || !strings.Contains(out, `"exitCode":0`) {
				t.Errorf("the next command: %s %v", out, err)
			}
		})
	}
	t.Run("those that exist", func(t *testing.T) {
		out, err := confined(t, h, work, `cd lib/known; echo evil >> .git/config && echo wrote; echo x > .git/hooks/pre-commit && echo wrote; mv .git away && echo moved; rm -rf .git; cd ..; mv known other && echo moved; echo text > known/file; exit 0`)
		if err != nil || strings.Contains(out, "wrote") || strings.Contains(out, "moved\n") || !strings.Contains(out, `"exitCode":0`) {
			t.Errorf("%s %v", out, err)
		}
		git(filepath.Join(work, "lib/known"), "status")
	})
	t.Run("no repository of the workspace", func(t *testing.T) {
		h, work := begin(t)
		if err := os.Rename(filepath.Join(work, ".git"), filepath.Join(t.TempDir(), "git")); err != nil {
			t.Fatal(err)
		}
		out, err := confined(t, h, work, "git init -q .")
		if err != nil || !strings.Contains(out, `"exitCode":126`) || len(gitNames(t, work)) != 1 {
			t.Errorf("%s %v %q", out, err, gitNames(t, work))
		}
	})
	t.Run("the host meanwhile", func(t *testing.T) {
		h, work := begin(t)
		call := func(name string, params map[string]any, by command.By, workspace string) string {
			t.Helper()
			text, err := json.Marshal(params)
			if err != nil {
				t.Fatal(err)
			}
			out, err := h.CallAs(context.WithoutCancel(t.Context()), &command.Call{Command: name, Params: text, By: by, Workspace: workspace})
			return fmt.Sprintf("%s %v", out, err)
		}
		call("code/shell/execute", map[string]any{"command": "git init -q sub" + hostile + " && echo > ready; sleep 600", "wait": false}, command.ByAgent, work)
		for {
			if _, err := os.Stat(filepath.Join(work, "ready")); err == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		for _, workspace := range []string{work, filepath.Join(work, "sub")} {
			for _, params := range []map[string]any{
				{"operation": "status"}, {"operation": "diff"}, {"operation": "add", "paths": []string{"."}},
				{"operation": "commit", "message": "all", "all": true}, {"operation": "status"}, {"operation": "checkout", "paths": []string{"."}},
			} {
				if out := call("code/git", params, command.ByUser, workspace); strings.Contains(out, "is unknown") || strings.Contains(out, "is missing") {
					t.Error(params, out) // others may be refused
				} else {
					t.Log(params, out)
				}
			}
		}
	})
	if _, err := os.Stat(marker); err == nil {
		t.Error("a program of a repository was executed")
	}
}
