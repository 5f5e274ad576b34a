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
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
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
		members, err := command.Members(c.Input())
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
		"sentinel/delete": map[string]any{"sentinelId": "do"},
		"sentinel/stop":   map[string]any{"runId": "x"},
		"sentinel/pause":  map[string]any{"sentinelId": "do"},
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

// What a model defines and starts calls no command that the model may not call itself.
func TestDefinitionsOfModelsAreBounded(t *testing.T) {
	h := open(t, host.Options{})
	ws := t.TempDir()
	write := map[string]any{"id": "w", "type": "command", "command": "code/write", "params": map[string]any{"path": "a.txt", "content": "x"}}
	shell := map[string]any{"id": "s", "type": "shell", "command": "touch executed"}
	inner := map[string]any{"id": "i", "type": "sentinel", "definition": map[string]any{"name": "inner", "steps": []any{shell}}}
	inside := map[string]any{"id": "c", "type": "command", "command": "sentinel/run", "params": map[string]any{"definition": map[string]any{"name": "c", "steps": []any{shell}}}}
	call := func(name string, tools []string, params map[string]any) (runtime.Result, error) {
		text, err := json.Marshal(params)
		if err != nil {
			t.Fatal(err)
		}
		out, err := h.Commands().Call(t.Context(), &command.Call{Command: name, Params: text, By: command.ByModel, Tools: tools, Workspace: ws})
		var r runtime.Result
		if err == nil {
			err = json.Unmarshal(out, &r)
		}
		return r, err
	}
	for _, c := range []struct {
		step   map[string]any
		tools  []string
		status sentinels.Status
	}{
		{write, []string{"sentinel/run", "code/*"}, "completed"},
		{write, []string{"sentinel/run", "code/read"}, "failed"},
		{shell, []string{"sentinel/run", "code/*"}, "failed"},
		{inner, []string{"sentinel/run", "code/*"}, "failed"},
		{inside, []string{"sentinel/run", "code/*"}, "completed"}, // with the result that the inner one failed
	} {
		r, err := call("sentinel/run", c.tools, map[string]any{"definition": map[string]any{"name": "d", "steps": []any{c.step}}})
		if err != nil || r.Status != c.status {
			t.Errorf("%v with %v: %v %+v", c.step["id"], c.tools, err, r)
		}
	}
	_, err := call("sentinel/run", []string{"sentinel/run", "code/*"}, map[string]any{"workspace": t.TempDir(), "definition": map[string]any{"name": "d", "steps": []any{write}}})
	if abi.CodeOf(err) != abi.Denied {
		t.Errorf("in another workspace: %v", err)
	}
	if _, err := os.Stat(filepath.Join(ws, "executed")); err == nil {
		t.Error("a shell line was executed")
	}
	if _, err := os.Stat(filepath.Join(ws, "a.txt")); err != nil {
		t.Error(err)
	}
}

// TestSearchesAreMarked: what reads and matches a regular expression ends when the process begins
// to stop.
func TestSearchesAreMarked(t *testing.T) {
	h := open(t, host.Options{})
	for _, name := range []string{"code/search", "logs/search"} {
		if c, ok := h.Commands().Lookup(name); !ok || !c.Search {
			t.Errorf("%s is no search", name)
		}
	}
}
