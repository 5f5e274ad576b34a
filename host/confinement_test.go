package host_test

import (
	"context"
	"encoding/json"
	"os"
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
