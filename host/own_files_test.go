package host_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// filesOf writes files below a folder.
func filesOf(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// held calls a command as an agent, whom files hold to the rules for models.
func held(t *testing.T, h *host.Host, workspace, name string, params map[string]any) (string, error) {
	t.Helper()
	text, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	out, err := h.Commands().Call(t.Context(), &command.Call{Command: name, Params: text, By: command.ByAgent, As: "ci", Workspace: workspace})
	return string(out), err
}

// TestOwnFilesByAnyName: the host's own files are known by where they are. The folder that is
// served may have any name, and a workspace may hold the host's cache and configuration.
func TestOwnFilesByAnyName(t *testing.T) {
	home := t.TempDir()
	ops := filepath.Join(home, "ops")
	filesOf(t, home, map[string]string{
		"ops/sentinels/mine.json":                           `{"name":"mine","steps":[{"type":"set","values":{"a":"needle"}}]}`,
		"ops/notes.txt":                                     "needle of a note",
		"ops/state/audit/old.jsonl":                         "needle of the state",
		".cache/sentinel/worktrees/x/trees/T/worktree.json": `{"config":"needle of the cache"}`,
		".config/sentinel/grants.key":                       "needle of the key",
	})
	if err := os.Symlink(filepath.Join(ops, "state"), filepath.Join(home, "link")); err != nil {
		t.Fatal(err)
	}
	environment := map[string]string{"HOME": home, "XDG_CONFIG_HOME": filepath.Join(home, ".config"), "PATH": os.Getenv("PATH")}
	h := open(t, host.Options{Dir: ops, Workspace: home, Getenv: func(name string) string { return environment[name] }})
	closed := []string{"ops/state/audit/old.jsonl", "OPS/state/audit/old.jsonl", "link/audit/old.jsonl", ".cache/sentinel/worktrees/x/trees/T/worktree.json", ".config/sentinel/grants.key"}
	for _, path := range closed {
		for _, name := range []string{"code/read", "fs/read"} {
			if out, err := held(t, h, home, name, map[string]any{"path": path}); err == nil || strings.Contains(err.Error(), "needle") {
				t.Errorf("%s of %s: %s %v", name, path, out, err)
			}
		}
	}
	fixed := []string{"ops/sentinels/pwn.json", "ops/recipes/x.json", "ops/plugins/x.wasm", "ops/do.json", "ops/state/new", ".cache/sentinel/worktrees/x/trees/T/worktree.json", ".config/sentinel/config.json"}
	for _, path := range fixed {
		for _, name := range []string{"code/write", "fs/write"} {
			if _, err := held(t, h, home, name, map[string]any{"path": path, "content": "x"}); abi.CodeOf(err) != abi.Denied {
				t.Errorf("%s of %s: %v", name, path, err)
			}
		}
	}
	for name, params := range map[string]map[string]any{"code/search": {"pattern": "needle"}, "code/tree": {"depth": 9}, "fs/list": {"path": ".", "recursive": true}} {
		out, err := held(t, h, home, name, params)
		if strings.Contains(out, "old.jsonl") || strings.Contains(out, "worktree.json") || strings.Contains(out, "grants.key") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		if name == "code/search" && !strings.Contains(out, "notes.txt") {
			t.Errorf("%s does not find other files of the folder: %v\n%s", name, err, out)
		}
	}
	if _, err := held(t, h, home, "code/write", map[string]any{"path": "ops/notes.txt", "content": "new"}); err != nil {
		t.Errorf("another file of the folder: %v", err)
	}
}

// TestPathsOfHeldCallers: whatever command is given a path, a caller that files hold to the
// rules for models learns nothing of a file outside of its workspace.
func TestPathsOfHeldCallers(t *testing.T) {
	h := open(t, host.Options{})
	workspace, outside := t.TempDir(), filepath.Join(t.TempDir(), "secret.json")
	if err := os.WriteFile(outside, []byte(`{"name":"x","canary-key":"canary-value","steps":[{"type":"canary-type"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(workspace, "link.json")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	paths := []string{"path", "file", "dir", "folder", "to", "from", "source", "repo", "paths", "files", "sources", "root", "cwd", "workspace"}
	called := 0
	for _, c := range h.Commands().List() {
		members, err := command.Members(c.Input())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range members {
			if !slices.Contains(paths, m.Path) || c.Effect == command.Decides || c.Name == "code/shell/execute" { // that one may do what it likes
				continue
			}
			for _, path := range []string{outside, link, "link.json", filepath.Dir(outside)} {
				params := map[string]any{m.Path: path}
				if strings.HasPrefix(m.Type, "array") {
					params[m.Path] = []string{path}
				}
				for _, other := range members {
					if _, given := params[other.Path]; !other.Required || given || strings.ContainsAny(other.Path, ".[") {
						continue
					}
					params[other.Path] = map[string]any{"integer": 1, "boolean": false, "object": map[string]any{}, "array": []any{}}[strings.Split(other.Type, "|")[0]]
					if params[other.Path] == nil {
						params[other.Path] = "canary"
					}
				}
				out, err := held(t, h, workspace, c.Name, params)
				text := out
				if err != nil {
					text += err.Error() + abi.As(err).Hint
				}
				for _, word := range []string{"canary-key", "canary-value", "canary-type"} {
					if strings.Contains(text, word) {
						t.Errorf("%s with %s %s shows %s:\n%s", c.Name, m.Path, path, word, text)
					}
				}
				called++
			}
		}
	}
	if called < 40 {
		t.Errorf("only %d calls", called)
	}
	if _, err := held(t, h, workspace, "sentinel/validate", map[string]any{"file": outside}); abi.CodeOf(err) != abi.Denied {
		t.Errorf("sentinel/validate of a file outside: %v", err)
	}
	filesOf(t, workspace, map[string]string{"mine.json": `{"name":"mine","steps":[]}`})
	if _, err := held(t, h, workspace, "sentinel/validate", map[string]any{"file": "mine.json"}); err != nil {
		t.Errorf("sentinel/validate of a file of the workspace: %v", err)
	}
}
