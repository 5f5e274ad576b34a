package host_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
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

// TestPausedTriggersOfAPersonStayPaused: neither a resume of an agent ends a person's pause, nor one that it
// puts in its place and that ends by itself, nor a delete. Its own pause it may end.
func TestPausedTriggersOfAPersonStayPaused(t *testing.T) {
	h := open(t, host.Options{Workspace: t.TempDir()})
	call := func(by command.By, name string, params map[string]any) error {
		t.Helper()
		return callBy(t, h, by, name, params)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	paused := func() runtime.TriggerInfo {
		t.Helper()
		list, err := h.Runtime().Triggers("nightly")
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		return list[0]
	}
	must(call(command.ByUser, "sentinel/create", map[string]any{"definition": map[string]any{
		"id": "nightly", "name": "nightly", "trigger": map[string]any{"type": "schedule", "cron": "0 3 * * *"},
		"steps": []any{map[string]any{"type": "set", "values": map[string]any{"a": 1}}},
	}}))
	of := map[string]any{"sentinelId": "nightly"}
	must(call(command.ByUser, "sentinel/pause", of))
	for name, params := range map[string]map[string]any{
		"sentinel/resume": of, "sentinel/delete": of, "sentinel/pause": {"sentinelId": "nightly", "until": time.Now().Add(time.Hour).Format(time.RFC3339)},
	} {
		for _, by := range []command.By{command.ByAgent, command.ByModel} {
			if err := call(by, name, params); abi.CodeOf(err) != abi.Denied {
				t.Errorf("%s by %s: %v", name, by, err)
			}
		}
	}
	if got := paused(); !got.Paused || !got.PausedUntil.IsZero() || got.PausedBy != string(command.ByUser) {
		t.Errorf("%+v", got)
	}
	// The pause is the sentinel's, also while its newest revision has no triggers.
	steps := []any{map[string]any{"type": "set", "values": map[string]any{"a": 2}}}
	must(call(command.ByAgent, "sentinel/update", map[string]any{"sentinelId": "nightly", "definition": map[string]any{"id": "nightly", "name": "nightly", "steps": steps}}))
	for _, name := range []string{"sentinel/resume", "sentinel/delete"} {
		if err := call(command.ByAgent, name, of); abi.CodeOf(err) != abi.Denied {
			t.Errorf("%s without triggers: %v", name, err)
		}
	}
	must(call(command.ByAgent, "sentinel/rollback", map[string]any{"sentinelId": "nightly", "to": 1}))
	if got := paused(); !got.Paused || got.PausedBy != string(command.ByUser) {
		t.Errorf("after a rollback: %+v", got)
	}
	must(call(command.ByUser, "sentinel/resume", of))
	must(call(command.ByAgent, "sentinel/pause", of))
	if got := paused(); !got.Paused || got.PausedBy != string(command.ByAgent) {
		t.Errorf("%+v", got)
	}
	must(call(command.ByAgent, "sentinel/resume", of))
	if paused().Paused {
		t.Error("an agent has not ended its own pause")
	}
}

// TestMessagesAboutEditedRuns: who listens for the failures of all sentinels gets that of a person's run which an agent has edited.
func TestMessagesAboutEditedRuns(t *testing.T) {
	h := open(t, host.Options{})
	must(t, h, "sentinel/create", `{"definition": {"id": "tell", "trigger": {"type": "event", "event": "sentinel:*:failed"}, "steps": [{"type": "set", "values": {"a": 1}}]}}`, nil)
	must(t, h, "sentinel/create", `{"definition": {"id": "bad", "safety": {"maxIterations": 2}, "loop": {"type": "until", "check": "$iteration >= 2"}, "steps": [
		{"type": "watch", "event": "go:x"}, {"type": "condition", "check": "$iteration == 2", "then": [{"type": "shell", "command": "exit 3"}]}]}}`, nil)
	if err := h.Runtime().Arm(t.Context()); err != nil {
		t.Fatal(err)
	}
	var made struct{ Run sentinels.RunID }
	must(t, h, "sentinel/start", `{"sentinelId": "bad"}`, &made)
	if err := callBy(t, h, command.ByAgent, "sentinel/step/update", map[string]any{"sentinelId": made.Run, "index": 0, "params": map[string]any{"name": "x"}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		must(t, h, "events/emit", `{"event": "go:x"}`, nil)
	}
	if res, err := h.Runtime().Wait(t.Context(), made.Run); err != nil || res.Status != sentinels.StatusFailed {
		t.Fatalf("%+v %v", res, err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		runs, err := h.Runtime().Runs(runtime.RunFilter{Sentinel: "tell"})
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("no run of tell: %v", err)
		}
		if len(runs) > 0 {
			return
		}
	}
}
