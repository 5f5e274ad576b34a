package host_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/command"
)

// TestTriggersOfAgentsLookInTheWorkspace: a file trigger says that files change, and an agent's says it
// of the files that its runs may have alone.
func TestTriggersOfAgentsLookInTheWorkspace(t *testing.T) {
	ws, outside := t.TempDir(), t.TempDir()
	for _, dir := range []string{"src", ".sentinel/state/x", ".hidden"} {
		if err := os.MkdirAll(filepath.Join(ws, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(ws, "link")); err != nil {
		t.Skip("no links: ", err)
	}
	h := open(t, host.Options{Workspace: ws})
	if err := h.Runtime().Arm(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := 0
	armed := func(by command.By, workspace string) bool {
		t.Helper()
		n++
		id := fmt.Sprintf("s%d", n)
		call := &command.Call{Command: "sentinel/create", By: by, Params: json.RawMessage(fmt.Sprintf(
			`{"definition": {"id": %q, "name": %[1]q, "workspace": %q, "trigger": {"type": "file", "paths": ["**"]}, "steps": [{"type": "set", "values": {"a": 1}}]}}`, id, workspace))}
		if by == command.ByAgent {
			call.As = "ci"
		}
		if _, err := h.CallAs(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		list, err := h.Runtime().Triggers("")
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range list {
			if string(info.Sentinel) == id {
				return info.Armed
			}
		}
		t.Fatalf("%s has no trigger", id)
		return false
	}
	for workspace, want := range map[string]bool{
		ws: true, filepath.Join(ws, "src"): true,
		outside: false, "/": false, filepath.Join(ws, "link"): false, filepath.Join(ws, ".sentinel", "state"): false, filepath.Join(ws, ".hidden"): false,
	} {
		if got := armed(command.ByAgent, workspace); got != want {
			t.Errorf("%s for an agent: armed %t", workspace, got)
		}
	}
	if !armed(command.ByUser, outside) {
		t.Error("a person's is not armed")
	}
}
