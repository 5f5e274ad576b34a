package host_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/host/confine"
)

// TestConfinedShell: with shell.confine the commands of models and agents, or of all callers,
// write to the workspace alone, cannot change its repository, and do not see the folders of the
// host.
func TestConfinedShell(t *testing.T) {
	for _, g := range confine.Gaps() {
		if g.Wall == confine.WallNamespaces {
			t.Skip(g)
		}
	}
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("the secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		setting  string
		by       command.By
		confined bool
	}{
		{config.None, command.ByAgent, false}, {config.Agents, command.ByAgent, true}, {config.Agents, command.ByUser, false}, {config.All, command.ByUser, true},
	} {
		t.Run(c.setting+" "+string(c.by), func(t *testing.T) {
			work := t.TempDir()
			for path, text := range map[string]string{".git/config": "[core]\n", "file": "x"} {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(work, path)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(work, path), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			h, err := host.Open(t.Context(), host.Options{Workspace: work, Set: map[string]string{"shell.confine": c.setting}})
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			line := `echo text > new; cat '` + outside + `'; test -e .sentinel/state/store.db && echo the state is seen; echo evil >> .git/config; echo "home $HOME"; exit 3`
			params, err := json.Marshal(map[string]any{"command": line})
			if err != nil {
				t.Fatal(err)
			}
			raw, err := h.CallAs(context.WithoutCancel(t.Context()), &command.Call{Command: "code/shell/execute", Params: params, By: c.by, Workspace: work})
			if err != nil {
				t.Fatal(err)
			}
			var out struct {
				ExitCode int
				Stdout   string
			}
			if err := json.Unmarshal(raw, &out); err != nil || out.ExitCode != 3 {
				t.Errorf("%s %v", raw, err)
			}
			if text, _ := os.ReadFile(filepath.Join(work, "new")); string(text) != "text\n" {
				t.Errorf("it does not write to the workspace: %s", raw)
			}
			changed, err := os.ReadFile(filepath.Join(work, ".git/config"))
			seen := strings.Contains(out.Stdout, "the secret") || strings.Contains(out.Stdout, "the state is seen") || strings.Contains(string(changed), "evil")
			if err != nil || seen == c.confined {
				t.Errorf("confined %v: %s %s", c.confined, raw, changed)
			}
		})
	}
}

// confined executes a shell line as an agent with shell.confine.
func confined(t *testing.T, h *host.Host, work, line string) (string, error) {
	t.Helper()
	params, err := json.Marshal(map[string]any{"command": line})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := h.CallAs(context.WithoutCancel(t.Context()), &command.Call{Command: "code/shell/execute", Params: params, By: command.ByAgent, Workspace: work})
	return string(raw), err
}

// TestConfinedShellKeepsPlaces: what is kept from a confined command stays where the host looks
// for it. Folders above it cannot be renamed, and links are refused.
func TestConfinedShellKeepsPlaces(t *testing.T) {
	for _, g := range confine.Gaps() {
		if g.Wall == confine.WallNamespaces {
			t.Skip(g)
		}
	}
	// begin opens a host with these homes. The folder of compiled plugins is in them by default; only
	// one test needs it there, because each such folder takes seconds to fill.
	begin := func(t *testing.T, work, cache string) *host.Host {
		t.Helper()
		environment := map[string]string{"HOME": work, "XDG_CONFIG_HOME": filepath.Join(work, ".config"), "PATH": os.Getenv("PATH")}
		h, err := host.Open(t.Context(), host.Options{
			Dir: filepath.Join(work, "projects", "one", ".sentinel"), Workspace: work, CacheDir: cache, Set: map[string]string{"shell.confine": config.Agents},
			Getenv: func(name string) string { return environment[name] },
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = h.Close() })
		return h
	}
	t.Run("folders", func(t *testing.T) {
		work := t.TempDir()
		filesOf(t, work, map[string]string{"projects/one/a.txt": "a", "projects/two/b.txt": "b", ".git/config": "[core]\n"})
		h := begin(t, work, "")
		out, err := confined(t, h, work, `for dir in projects projects/one .config .cache projects/one/.sentinel .git; do mv $dir away 2>/dev/null && echo "moved $dir"; done
			mkdir -p .config/sentinel && echo '{}' > .config/sentinel/config.json; echo new > projects/two/c.txt; mv projects/two projects/three; echo done`)
		if err != nil || strings.Contains(out, "moved") || !strings.Contains(out, "done") {
			t.Errorf("%s %v", out, err)
		}
		for path, want := range map[string]bool{"projects/one/.sentinel/state/store.db": true, ".config/sentinel/config.json": false, "projects/three/c.txt": true, ".git/config": true} {
			if _, err := os.Stat(filepath.Join(work, path)); (err == nil) != want {
				t.Errorf("%s: %v, want %v", path, err, want)
			}
		}
		if out, err := confined(t, h, work, "find . -name store.db; echo done"); err != nil || strings.Contains(out, "store.db") || !strings.Contains(out, "done") {
			t.Errorf("the next command: %s %v", out, err)
		}
	})
	t.Run("workspace by a link", func(t *testing.T) {
		work := t.TempDir()
		filesOf(t, work, map[string]string{"projects/one/a.txt": "a", "elsewhere/key": "secret"})
		h := begin(t, filepath.Join(work, "projects"), compiled())
		if err := os.Symlink(filepath.Join(work, "elsewhere"), filepath.Join(work, "projects", "sub")); err != nil {
			t.Fatal(err)
		}
		out, err := confined(t, h, filepath.Join(work, "projects", "sub"), "cat key")
		if err == nil || strings.Contains(out, "secret") || !strings.Contains(err.Error(), "a link below") {
			t.Errorf("%s %v", out, err)
		}
		if out, err := confined(t, h, filepath.Join(work, "projects", "one"), "cat a.txt"); err != nil || !strings.Contains(out, "a") {
			t.Errorf("%s %v", out, err)
		}
	})
	t.Run("pipe as gitfile", func(t *testing.T) {
		work := t.TempDir()
		if err := exec.Command("mkfifo", filepath.Join(work, ".git")).Run(); err != nil {
			t.Skip("mkfifo: ", err)
		}
		if out, err := confined(t, begin(t, work, compiled()), work, "echo done"); err != nil || !strings.Contains(out, "done") {
			t.Errorf("%s %v", out, err)
		}
	})
	t.Run("gitfile", func(t *testing.T) {
		work := t.TempDir()
		filesOf(t, work, map[string]string{".git": "gitdir: ./.bare/worktrees/w\n", ".bare/worktrees/w/commondir": "../..\n", ".bare/hooks/a": "x"})
		out, err := confined(t, begin(t, work, compiled()), work, `for path in .git .bare/hooks/new .bare/worktrees/w/config; do echo evil > $path && echo "wrote $path"; done; mv .bare away && echo moved; echo done`)
		if err != nil || strings.Contains(out, "wrote") || strings.Contains(out, "moved") || !strings.Contains(out, "done") {
			t.Errorf("%s %v", out, err)
		}
	})
	for name, to := range map[string]string{".git": "real/.git", ".config": "real/config", "projects": "real/projects"} {
		t.Run("link "+name, func(t *testing.T) {
			work := t.TempDir()
			filesOf(t, work, map[string]string{to + "/x": "x"})
			if err := os.Symlink(filepath.Join(work, to), filepath.Join(work, name)); err != nil {
				t.Fatal(err)
			}
			out, err := confined(t, begin(t, work, compiled()), work, "rm "+name+"; echo executed")
			if err == nil || strings.Contains(out, "executed") || !strings.Contains(err.Error(), name+" is a symbolic link") {
				t.Errorf("%s %v", out, err)
			}
			if _, err := os.Lstat(filepath.Join(work, name)); err != nil {
				t.Error(err)
			}
		})
	}
}
