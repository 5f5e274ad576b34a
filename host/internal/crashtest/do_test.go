//go:build linux

package crashtest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// doModel works on a task in as many turns as there are results of tools: it writes a file,
// edits another, executes a program and replies.
func doModel(w http.ResponseWriter, req *http.Request) {
	if req.Method == http.MethodGet {
		operatorModel(w, req)
		return
	}
	var r chatRequest
	if err := json.NewDecoder(req.Body).Decode(&r); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	results := 0
	for _, m := range r.Messages {
		if m.Role == "tool" {
			results++
		}
	}
	calls := [][2]string{
		{"code_write", `{"path":"new.txt","content":"new\n"}`},
		{"code_edit", `{"path":"a.txt","old":"one","new":"two"}`},
		{"code_shell_execute", `{"command":"echo once >> count.txt"}`},
	}
	if results >= len(calls) {
		answerText(w, "done")
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	chunk(w, map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{
		"index": 0, "id": fmt.Sprintf("call_%d", results), "type": "function",
		"function": map[string]any{"name": calls[results][0], "arguments": calls[results][1]},
	}}}, nil)
	chunk(w, map[string]any{}, "tool_calls")
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// doProject makes a project in git with the definition of the test, and returns an order for it.
func doProject(t *testing.T, files map[string]string) order {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	ws := t.TempDir()
	files["a.txt"], files[".gitignore"] = "one\n", ".cache\n.sentinel\nstderr\n"
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(ws, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git(t, ws, "init", "-q")
	o := order{Dir: filepath.Join(ws, ".sentinel"), Workspace: ws, Crashes: 1000}
	warmCache(t, o.Workspace)
	return o
}

// git runs git in a folder and returns what it prints.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// expectFiles checks the files of a task; "" stands for a file that is not there.
func expectFiles(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if string(got) != text || err != nil && text != "" {
			t.Errorf("%s: %q, want %q, %v", name, got, text, err)
		}
	}
}

var (
	doneFiles   = map[string]string{"a.txt": "two\n", "new.txt": "new\n"}
	beforeFiles = map[string]string{"a.txt": "one\n", "new.txt": "", "count.txt": ""}
)

// nothingLeft checks what a killed do must not leave once its run was continued or reverted:
// processes, worktrees, locks and half checkpoints.
func nothingLeft(t *testing.T, o order) {
	t.Helper()
	nothingLives(t, o.Workspace, o.Life)
	if list := git(t, o.Workspace, "worktree", "list"); strings.Count(list, "\n") != 1 {
		t.Errorf("worktrees\n%s", list)
	}
	var locks []string
	err := filepath.WalkDir(o.Workspace, func(path string, e fs.DirEntry, err error) error {
		name := filepath.Base(path)
		if strings.HasSuffix(name, ".lock") && strings.Contains(path, "git") || strings.HasPrefix(name, "tmp_") || strings.HasPrefix(name, "marks.") || strings.HasPrefix(name, "fast_import_crash_") {
			locks = append(locks, path)
		}
		return err
	})
	repositories, globErr := filepath.Glob(filepath.Join(o.Dir, "state", "checkpoints", "*"))
	if err = errors.Join(err, globErr); err != nil || len(locks) > 0 {
		t.Errorf("left: %v, %v", locks, err)
	}
	for _, dir := range repositories {
		if text := git(t, o.Workspace, "--git-dir", dir, "fsck", "--strict", "--no-dangling", "--no-progress"); strings.Contains(text, "error") || strings.Contains(text, "missing") {
			t.Errorf("fsck: %s", text)
		}
		for line := range strings.Lines(git(t, o.Workspace, "--git-dir", dir, "for-each-ref", "--format=%(contents:subject)", "refs/checkpoints")) {
			var c struct{ ID, Of, Label string }
			if err := json.Unmarshal([]byte(line), &c); err != nil || c.ID == "" || c.Of == "" || c.Label == "" {
				t.Errorf("half a checkpoint: %q, %v", line, err)
			}
		}
	}
}

// doVerb is one sentinel do, to its end, in a process without a terminal.
func doVerb(t *testing.T, o order, server string, args ...string) (out string, code int) {
	t.Helper()
	o.CLI = append([]string{args[0], "--workspace", o.Workspace, "--state", filepath.Join(o.Dir, "state")}, args[1:]...)
	l := command(t, o, server)
	text, err := l.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(text), l.ProcessState.ExitCode()
}

// TestSpecKillDo: "kill -9 at each state of do". The processes that execute the run are
// killed one after the other until one of them gets to its end. The task is completed then, and
// restoring the run gives the files back.
func TestSpecKillDo(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(doModel))
	defer server.Close()
	text, _ := sentinels.ShippedText("do")
	o := doProject(t, map[string]string{"kill.json": strings.NewReplacer(
		`"task": {"type": "string", "required": true`, `"task": {"type": "string", "default": "Change a.txt"`,
		`"default": "ask"`, `"default": "off"`,
		`"checks": {"type": "array", "default": []`, `"checks": {"type": "array", "default": ["grep -q two a.txt"]`,
	).Replace(string(text))})
	o.Verdict = "retry"
	longer := 1 // how much longer a life is than the one before it, in steps of 13 ms
	if testing.Short() {
		longer = 5
	}
	result, count := lives(t, o, server.URL, func(life int) plan { return soon(longer*life, 0, 600, 50) })
	var sum struct{ Outcome, Verified, Reason string }
	if err := json.Unmarshal(result.Variables["summary"], &sum); err != nil || sum.Outcome != "done" || sum.Verified != "passed" || count < 2 {
		t.Fatalf("%s after %d lives: %+v, %v", result.Status, count, sum, err)
	}
	expectFiles(t, o.Workspace, doneFiles)
	h, err := host.Open(t.Context(), host.Options{Dir: o.Dir, Workspace: o.Workspace})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	params, _ := json.Marshal(map[string]any{"run": result.Run})
	out, err := h.Call(t.Context(), "checkpoint/restore", params)
	if err != nil || !strings.Contains(string(out), `"success":true`) {
		t.Fatalf("%s, %v", out, err)
	}
	expectFiles(t, o.Workspace, beforeFiles)
	nothingLeft(t, o)
}

// TestSpecKillDoContinueUndo kills the program sentinel do at its states: "after the kill the
// workspace can be restored by `do --undo`, `do --continue` goes on, no worktree, lock or half
// checkpoint left".
func TestSpecKillDoContinueUndo(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(doModel))
	defer server.Close()
	step := 5 // progress events between two states at which the program is killed
	if testing.Short() {
		step = 30
	}
	task := []string{"do", "Change a.txt", "--yolo", "--check", "grep -q two a.txt"}
	for i, after := range []string{"--undo", "--continue"} {
		for count, killed := 1+i*step/2, true; killed && count < 200; count += step {
			t.Run(fmt.Sprintf("%s %d", after, count), func(t *testing.T) {
				o := doProject(t, map[string]string{})
				o.Life = 1
				o.CLI = append(task[:len(task):len(task)], "-o", "jsonl", "--workspace", o.Workspace, "--state", filepath.Join(o.Dir, "state"))
				l := start(t, o, server.URL)
				l.live(t, plan{after: afterEvent, count: count, delay: time.Duration(count%4*7) * time.Millisecond}, nil)
				killed = l.killed
				if after == "--undo" {
					undoKilled(t, o, server.URL, killed)
				} else if killed {
					continueKilled(t, o, server.URL)
				}
				nothingLeft(t, o)
			})
		}
	}
}

// undoKilled reverts a run that was killed, or one that came to its end. Of one without an end
// the changes cannot be known, so it takes --force.
func undoKilled(t *testing.T, o order, server string, killed bool) {
	t.Helper()
	out, code := doVerb(t, o, server, "do", "--undo")
	if killed && code != 0 {
		if !strings.Contains(out, "--force") && !strings.Contains(out, "has no checkpoint") {
			t.Errorf("exit code %d\n%s", code, out)
		}
		out, code = doVerb(t, o, server, "do", "--undo", "--force")
	}
	if code != 0 && !strings.Contains(out, "has no checkpoint") { // killed before it was made
		t.Errorf("exit code %d\n%s", code, out)
	}
	expectFiles(t, o.Workspace, beforeFiles)
	if code == 0 { // the run has ended by it
		if out, code := doVerb(t, o, server, "do", "--continue"); code != 2 || !strings.Contains(out, "what is the next task?") {
			t.Errorf("exit code %d\n%s", code, out)
		}
	}
}

// continueKilled continues a run until it has ended. A program that was killed with it is
// asked about.
func continueKilled(t *testing.T, o order, server string) {
	t.Helper()
	for range 3 {
		out, code := doVerb(t, o, server, "do", "--continue")
		switch {
		case code == 0 && strings.Contains(out, "verified"), strings.Contains(out, "what is the next task?"):
			expectFiles(t, o.Workspace, doneFiles)
			return
		case code != 8:
			t.Fatalf("exit code %d\n%s", code, out)
		}
		run := regexp.MustCompile(`sentinel decide.* ([0-9a-f-]{36}) \S+ retry`).FindStringSubmatch(out)
		if run == nil {
			t.Fatalf("no decision to make:\n%s", out)
		}
		if out, code := doVerb(t, o, server, "decide", run[1], "retry"); code != 0 {
			t.Fatalf("exit code %d\n%s", code, out)
		}
	}
	t.Error("it does not end")
}
