package host_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/host/confine"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestWorkspaceOfHeldRunAtEachCall: a workspace that is replaced by a link while a run of an agent
// waits is refused by each command of its later steps.
func TestWorkspaceOfHeldRunAtEachCall(t *testing.T) {
	work, private := t.TempDir(), t.TempDir()
	filesOf(t, private, map[string]string{"key": "SECRETVAL"})
	filesOf(t, work, map[string]string{"sub/d/key": "inside"})
	h := open(t, host.Options{Workspace: work})
	var list []any
	for _, step := range []map[string]any{
		{"command": "code/read", "params": map[string]any{"path": "key"}},
		{"command": "code/write", "params": map[string]any{"path": "new", "content": "x"}},
		{"command": "code/edit", "params": map[string]any{"path": "key", "old": "SECRETVAL", "new": "x"}},
		{"command": "code/search", "params": map[string]any{"pattern": "SECRET"}},
		{"command": "code/tree"}, {"command": "checkpoint/create"}, {"command": "code/git", "params": map[string]any{"operation": "init"}},
		{"command": "rag/search", "params": map[string]any{"query": "SECRETVAL"}},
	} {
		step["type"], step["name"], step["onError"] = "command", step["command"], "skip"
		list = append(list, step)
	}
	steps := append([]any{map[string]any{"type": "wait", "event": "replaced"}}, list...)
	var run struct{ Run sentinels.RunID }
	if err := asAgent(t, h, "sentinel/start", map[string]any{"definition": map[string]any{"name": "waits", "workspace": "sub/d", "steps": steps}}, &run); err != nil {
		t.Fatal(err)
	}
	awaits(t, h, run.Run, 1)
	if err := os.Rename(filepath.Join(work, "sub/d"), filepath.Join(work, "sub/d.old")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(private, filepath.Join(work, "sub/d")); err != nil {
		t.Fatal(err)
	}
	tell(t, h, "replaced", run.Run)
	status := ended(t, h, run.Run).Status
	var trace json.RawMessage
	if err := asAgent(t, h, "sentinel/trace", map[string]any{"run": run.Run}, &trace); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(trace), "a link below"); n < len(list) || strings.Contains(string(trace), "SECRETVAL") && !strings.Contains(string(trace), "a link below") {
		t.Errorf("%s, %d of %d refused: %s", status, n, len(list), trace)
	}
	entries, err := os.ReadDir(private)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v %v", entries, err)
	}
	if text, err := os.ReadFile(filepath.Join(private, "key")); err != nil || string(text) != "SECRETVAL" {
		t.Errorf("%q %v", text, err)
	}
}

// TestWorkspaceInFoldersOfTheHost: an agent has no workspace in the folders of the host, whatever their
// names are, and no confined command has one there.
func TestWorkspaceInFoldersOfTheHost(t *testing.T) {
	work := t.TempDir()
	filesOf(t, work, map[string]string{"sub/a.txt": "a", "srv/other/b.txt": "b", "plugins/x": "", "sub/.git/hooks/x": "", ".hid/x": ""})
	h := open(t, host.Options{Workspace: work, Dir: filepath.Join(work, "srv"), State: filepath.Join(work, "store"), Plugins: filepath.Join(work, "plugins"), Set: map[string]string{"shell.confine": config.All}})
	for _, dir := range []string{"sentinels", "recipes"} {
		if err := os.MkdirAll(filepath.Join(work, "srv", dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	confined := len(confine.Gaps()) == 0
	for dir, want := range map[string]bool{".": true, "sub": true, "srv": false, "srv/sentinels": false, "srv/other": false, "store": false, "plugins": false, "sub/.git": false, "sub/.git/hooks": false, ".hid": false} {
		t.Run(dir, func(t *testing.T) {
			var run struct {
				Status string
				Error  *abi.Error
			}
			err := asAgent(t, h, "sentinel/run", map[string]any{"definition": map[string]any{"name": "w", "workspace": dir, "steps": []any{
				map[string]any{"type": "command", "command": "code/tree"},
			}}}, &run)
			if err == nil && run.Error != nil {
				err = run.Error
			}
			if (err == nil) != want || err != nil && abi.CodeOf(err) != abi.Denied {
				t.Errorf("run: %v", err)
			}
			for _, name := range []string{"code/tree", "code/shell/execute"} {
				if name == "code/shell/execute" && !confined {
					continue
				}
				params := `{}`
				if name == "code/shell/execute" {
					params = `{"command":"ls"}`
				}
				_, err := h.CallAs(t.Context(), &command.Call{Command: name, Params: json.RawMessage(params), By: command.ByAgent, As: "bot", Workspace: filepath.Join(work, dir)})
				if (err == nil) != want || err != nil && abi.CodeOf(err) != abi.Denied {
					t.Errorf("%s: %v", name, err)
				}
			}
			// Commands of persons are confined too: only the folders of the host are kept from them.
			_, err = h.CallAs(t.Context(), &command.Call{Command: "code/shell/execute", Params: json.RawMessage(`{"command":"ls"}`), Workspace: filepath.Join(work, dir)})
			if own := dir == "store" || dir == "plugins" || strings.HasPrefix(dir, "srv"); confined && own && abi.CodeOf(err) != abi.Denied {
				t.Errorf("confined command of a person: %v", err)
			}
		})
	}
}
