package cli_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
)

// TestSpecDoBudget: "`--max-usd`". It ends the run in the state limit with how to continue, and
// what is done is kept; with more money the same run gets to its end.
func TestSpecDoBudget(t *testing.T) {
	env := taskModel(t,
		toolCall("code_write", map[string]any{"path": "b.txt", "content": "b\n"}),
		toolCall("code_read", map[string]any{"path": "b.txt"}), "done")
	dir := folder(t, nil)
	env["XDG_CONFIG_HOME"] = t.TempDir()
	config := filepath.Join(env["XDG_CONFIG_HOME"], "sentinel")
	if err := errors.Join(os.MkdirAll(config, 0o700), os.WriteFile(filepath.Join(config, "config.json"),
		[]byte(`{"models": {"known": [{"provider": "openai", "name": "parrot", "input": 10, "output": 10}]}}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	out, code := without(t, dir, env, "do", "Write b.txt", "--yolo", "--no-check", "--max-usd", "0.0011")
	if code != app.ExitTimedOut || !strings.Contains(out, "limit") || !strings.Contains(out, "sentinel do --continue --max-usd") || !strings.Contains(out, "budget.costUsd") {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	if out, code = without(t, dir, env, "do", "--continue", "--max-usd", "5"); code != 0 || !strings.Contains(out, "$0.") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if got := fileText(t, dir, "b.txt"); got != "b\n" {
		t.Errorf("b.txt is %q", got)
	}
	// A model on another machine that is not in the table has no price.
	env["OPENAI_BASE_URL"] = "https://llm.invalid/v1"
	out, code = without(t, dir, env, "do", "Write b.txt", "--yolo", "--max-usd", "1", "--model", "openai/unheard-of")
	if code == 0 || !strings.Contains(out, "the price of model openai/unheard-of is not known") || !strings.Contains(out, "models.known") || strings.Contains(out, "do  run ") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// TestDoNoModel checks that a machine without a model is an error with a hint before a run
// begins.
func TestDoNoModel(t *testing.T) {
	dir := folder(t, nil)
	out, code := without(t, dir, map[string]string{"HOME": t.TempDir(), "PATH": os.Getenv("PATH")}, "do", "x", "--yolo")
	if code == 0 || !strings.Contains(out, "hint: ") || strings.Contains(out, "do  run") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// TestDoUndoOfUndo reverts a run, reverts that, and reverts the run again.
func TestDoUndoOfUndo(t *testing.T) {
	env := taskModel(t,
		toolCall("code_edit", map[string]any{"path": "a.txt", "old": "one", "new": "two"}),
		toolCall("code_write", map[string]any{"path": "sub/b.txt", "content": "b\n"}), "done")
	dir := folder(t, map[string]string{"a.txt": "one\n"})
	if out, code := without(t, dir, env, "do", "x", "--yolo", "--no-check"); code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	last, undo := "", regexp.MustCompile(`--undo (undo-[0-9a-f]+)`)
	for i, want := range []string{"one\n", "two\n", "one\n"} {
		args := []string{"do", "--undo"}
		if last != "" {
			args = append(args, last)
		}
		out, code := without(t, dir, env, args...)
		m := undo.FindStringSubmatch(out)
		if code != 0 || m == nil {
			t.Fatalf("undo %d: exit code %d\n%s", i, code, out)
		}
		last = m[1]
		_, err := os.Lstat(filepath.Join(dir, "sub", "b.txt"))
		if got := fileText(t, dir, "a.txt"); got != want || (err == nil) != (want == "two\n") {
			t.Errorf("undo %d: a.txt is %q, b.txt: %v", i, got, err)
		}
	}
}

// TestDoUndoConflict changes a file after the run: nothing is reverted, and the hint has the
// short id that the summary printed.
func TestDoUndoConflict(t *testing.T) {
	env := taskModel(t,
		toolCall("code_edit", map[string]any{"path": "a.txt", "old": "one", "new": "two"}),
		toolCall("code_write", map[string]any{"path": "b.txt", "content": "b\n"}), "done")
	dir := folder(t, map[string]string{"a.txt": "one\n"})
	out, _ := without(t, dir, env, "do", "x", "--yolo", "--no-check")
	m := regexp.MustCompile(`undo: +(sentinel do --undo [0-9a-f]{8})\n`).FindStringSubmatch(out)
	if m == nil {
		t.Fatal(out)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, code := without(t, dir, env, "do", "--undo")
	if code != app.ExitFailed || !strings.Contains(out, "a.txt: it was changed since") || !strings.Contains(out, m[1]+" --force") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if fileText(t, dir, "a.txt") != "mine\n" || fileText(t, dir, "b.txt") != "b\n" {
		t.Error("something was reverted")
	}
	if out, code := without(t, dir, env, "do", "--undo", "--force"); code != 0 || fileText(t, dir, "a.txt") != "one\n" {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// TestDoUndoIgnored has a task that changes what git ignores, ignored files and a file above
// the limit: what --undo does not cover is named by the summary and by the undo, and the rest
// is restored.
func TestDoUndoIgnored(t *testing.T) {
	env := taskModel(t, toolCall("code_shell_execute", map[string]any{"command": "echo new > .env; echo new > large; rm .gitignore"}), "done")
	dir := folder(t, map[string]string{".gitignore": ".env\ndata.db\n", ".env": "old\n", "data.db": "mine\n", "large": strings.Repeat("large\n", 2<<20)})
	out, _ := without(t, dir, env, "do", "x", "--yolo", "--no-check")
	const named = "modified large  not covered by --undo: the content of before is not kept"
	if !strings.Contains(out, named) || !strings.Contains(out, "modified .env") {
		t.Errorf("the summary is\n%s", out)
	}
	out, code := without(t, dir, env, "do", "--undo")
	if code != 0 || !strings.Contains(out, named) {
		t.Errorf("exit code %d\n%s", code, out)
	}
	for name, want := range map[string]string{".gitignore": ".env\ndata.db\n", ".env": "old\n", "data.db": "mine\n", "large": "new\n"} {
		if got := fileText(t, dir, name); got != want {
			t.Errorf("%s is %.40q", name, got)
		}
	}
}

// TestDoStreamCut has a model whose answers end in the middle of a call: the run ends with a
// reason, and nothing of the call is made.
func TestDoStreamCut(t *testing.T) {
	env := modelServer(t, func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"parrot","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"code_write","arguments":"{\"path\":\"b.txt\",\"content\":\"b"}}]},"finish_reason":null}]}`+"\n\n")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	dir := folder(t, nil)
	out, code := without(t, dir, env, "do", "Write", "--yolo", "--no-check", "--timeout", "5s", "-o", "json")
	if code != app.ExitFailed && code != app.ExitTimedOut || !strings.Contains(out, `"reason": "`) {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if _, err := os.Lstat(filepath.Join(dir, "b.txt")); err == nil {
		t.Error("half a call was made")
	}
}
