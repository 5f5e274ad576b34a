package host_test

import (
	"context"
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

// programs are parameters that carry what is executed: a shell line, a definition or steps of
// one, or a folder or archive of definitions.
var programs = []string{"definition", "step", "steps", "bundle", "sentinel", "trigger"}

// TestEffects: no pattern matches a command that takes a program, a definition or steps, or
// that starts what is defined.
func TestEffects(t *testing.T) {
	h := open(t, host.Options{})
	patterns := []string{"*"}
	for _, c := range h.Commands().List() {
		if family := filepath.Dir(c.Name) + "/*"; !slices.Contains(patterns, family) {
			patterns = append(patterns, family)
		}
		members, err := command.Members(c.Input)
		if err != nil {
			t.Fatal(err)
		}
		takes := len(c.Shell) > 0 || slices.ContainsFunc(members, func(m command.Member) bool {
			return slices.Contains(programs, m.Path) && strings.Contains(m.Type, "object") || m.Path == "steps"
		})
		if takes && c.Effect == command.Changes {
			t.Errorf("%s takes a program or a definition and has the effect %q", c.Name, c.Effect)
		}
	}
	for _, c := range h.Commands().Offer(patterns) {
		if !c.Effect.Matchable() {
			t.Errorf("patterns match %s, which %s", c.Name, c.Effect)
		}
	}
	for _, name := range []string{"sentinel/run", "sentinel/start", "sentinel/retry", "sentinel/fork", "sentinel/create", "sentinel/deploy", "sentinel/import", "sentinel/step/update", "code/shell/execute", "code/verify", "verify/run"} {
		c, ok := h.Commands().Lookup(name)
		if !ok || c.Effect.Matchable() {
			t.Errorf("%s: %t, effect %q", name, ok, c.Effect)
		}
	}
}

// A model whose tools are "sentinel/*" executes nothing through definitions.
func TestPatternOfSentinels(t *testing.T) {
	h := open(t, host.Options{})
	ws := t.TempDir()
	marker := filepath.Join(ws, "executed")
	definition := map[string]any{"name": "evil", "steps": []any{map[string]any{"type": "shell", "command": "touch " + marker}}}
	for name, params := range map[string]any{
		"sentinel/run":    map[string]any{"definition": definition},
		"sentinel/start":  map[string]any{"definition": definition},
		"sentinel/create": definition,
		"sentinel/deploy": map[string]any{"sentinelId": "do", "to": filepath.Join(ws, "other")},
		"sentinel/load":   map[string]any{"path": ws},
	} {
		text, err := json.Marshal(params)
		if err != nil {
			t.Fatal(err)
		}
		_, err = h.Commands().Call(context.Background(), &command.Call{Command: name, Params: text, By: command.ByModel, Tools: []string{"*", "sentinel/*", "sentinel/step/*"}, Workspace: ws})
		if e := abi.As(err); e == nil || e.Code != abi.Denied || !strings.Contains(e.Hint, `name "`+name+`" itself`) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("it was executed")
	}
}
