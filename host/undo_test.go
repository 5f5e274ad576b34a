package host_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/checkpoint"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// checkpoints calls a command of checkpoints as a person, with the scope "task".
func checkpoints(t *testing.T, h *host.Host, work, name string, params map[string]any) (out checkpoint.Restored, err error) {
	t.Helper()
	params["run"] = "task"
	raw, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := h.CallAs(t.Context(), &command.Call{Command: "checkpoint/" + name, Params: raw, By: command.ByUser, Workspace: work})
	if err == nil && name == "restore" {
		err = json.Unmarshal(answer, &out)
	}
	return out, err
}

// TestUndoBesideConfinedCommands: while a confined command is executed that can write the workspace, an undo
// is refused, changes nothing, and says what to do; it works once the command has ended.
func TestUndoBesideConfinedCommands(t *testing.T) {
	h, work := beginConfined(t, map[string]string{"w/file": "of before"})
	must := func(name string, params map[string]any) checkpoint.Restored {
		t.Helper()
		out, err := checkpoints(t, h, work, name, params)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	read := func() string {
		text, err := os.ReadFile(filepath.Join(work, "w/file"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	must("create", map[string]any{"label": checkpoint.Begin})
	filesOf(t, work, map[string]string{"w/file": "of the task"})
	must("create", map[string]any{"label": checkpoint.End})
	ended := make(chan string)
	go func() {
		out, err := confined(t, h, work, "touch ready; i=0; while test ! -e end && test $i -lt 600; do sleep 0.05; i=$((i+1)); done")
		if err != nil {
			out = err.Error()
		}
		ended <- out
	}()
	awaitFile(t, filepath.Join(work, "ready"))
	for _, force := range []bool{false, true} {
		_, err := checkpoints(t, h, work, "restore", map[string]any{"force": force})
		if e := abi.As(err); e == nil || e.Code != abi.Conflict || !strings.Contains(err.Error(), "a confined command is being executed") || !strings.Contains(e.Hint, "code/shell/kill") {
			t.Errorf("beside a command, force %v: %v", force, err)
		}
	}
	if text := read(); text != "of the task" {
		t.Errorf("a refused undo wrote %q", text)
	}
	if err := os.WriteFile(filepath.Join(work, "end"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out := <-ended; !strings.Contains(out, `"exitCode":0`) {
		t.Error(out)
	}
	if out := must("restore", map[string]any{}); !out.Success || read() != "of before" {
		t.Errorf("afterwards: %+v %q", out, read())
	}
}

// TestUndoMakesNothingThatProgramsObey: a checkpoint that was made while a confined command had folders and
// links of repositories and servers does not bring them back.
func TestUndoMakesNothingThatProgramsObey(t *testing.T) {
	h, work := beginConfined(t, map[string]string{"file": "of before"})
	ended := make(chan string)
	go func() {
		out, err := confined(t, h, work, `mkdir -p sub/.sentinel/sentinels evil/hooks; echo '{}' > sub/.sentinel/sentinels/x.json; ln -s ../evil sub/.git; touch ready
			i=0; while test ! -e end && test $i -lt 600; do sleep 0.05; i=$((i+1)); done`)
		if err != nil {
			out = err.Error()
		}
		ended <- out
	}()
	awaitFile(t, filepath.Join(work, "ready"))
	if _, err := checkpoints(t, h, work, "create", map[string]any{"label": checkpoint.Begin}); err != nil {
		t.Fatal(err)
	}
	filesOf(t, work, map[string]string{"end": "", "file": "of the task"})
	if out := <-ended; !strings.Contains(out, "renamed to names with") {
		t.Fatal(out)
	}
	if _, err := checkpoints(t, h, work, "create", map[string]any{"label": checkpoint.End}); err != nil {
		t.Fatal(err)
	}
	out, err := checkpoints(t, h, work, "restore", map[string]any{"force": true})
	if err != nil || !out.Success {
		t.Fatalf("%+v %v", out, err)
	}
	left := map[string]bool{}
	for _, c := range out.Files {
		left[c.Path] = c.Left != ""
	}
	for _, name := range []string{"sub/.git", "sub/.sentinel/sentinels/x.json"} {
		if _, err := os.Lstat(filepath.Join(work, name)); err == nil || !left[name] {
			t.Errorf("the undo made %s: %v, %+v", name, err, out)
		}
	}
	if text, err := os.ReadFile(filepath.Join(work, "file")); err != nil || string(text) != "of before" {
		t.Errorf("%q %v", text, err)
	}
}
