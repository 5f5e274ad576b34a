//go:build linux

package crashtest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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

// TestKillDo: kill -9 at every state of the sentinel do. The task is completed, its program
// was executed once unless a person was asked about it, and restoring the run gives the files back.
func TestKillDo(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	server := httptest.NewServer(http.HandlerFunc(doModel))
	defer server.Close()
	text, _ := sentinels.ShippedText("do")
	definition := strings.NewReplacer(
		`"task": {"type": "string", "required": true`, `"task": {"type": "string", "default": "Change a.txt"`,
		`"default": "ask"`, `"default": "off"`,
		`"checks": {"type": "array", "default": []`, `"checks": {"type": "array", "default": ["grep -q two a.txt"]`,
	).Replace(string(text))
	ws := t.TempDir()
	o := order{Dir: filepath.Join(ws, ".sentinel"), Workspace: ws, Crashes: 1000, Verdict: "retry"}
	if err := errors.Join(os.WriteFile(filepath.Join(ws, "kill.json"), []byte(definition), 0o600),
		os.WriteFile(filepath.Join(ws, "a.txt"), []byte("one\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	result := lives(t, o, server.URL, func(life int) plan { return soon(life, 600) })
	var sum struct{ Outcome, Verified, Reason string }
	if err := json.Unmarshal(result.Variables["summary"], &sum); err != nil || sum.Outcome != "done" || sum.Verified != "passed" {
		t.Fatalf("%s: %+v, %v", result.Status, sum, err)
	}
	for name, want := range map[string]string{"a.txt": "two\n", "new.txt": "new\n"} {
		if got, err := os.ReadFile(filepath.Join(ws, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	h, err := host.Open(t.Context(), host.Options{Dir: o.Dir, Workspace: ws})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	params, _ := json.Marshal(map[string]any{"run": result.Run})
	out, err := h.Call(t.Context(), "checkpoint/restore", params)
	if err != nil || !strings.Contains(string(out), `"success":true`) {
		t.Fatalf("%s, %v", out, err)
	}
	if got, err := os.ReadFile(filepath.Join(ws, "a.txt")); err != nil || string(got) != "one\n" {
		t.Errorf("a.txt: %q, %v", got, err)
	}
	for _, name := range []string{"new.txt", "count.txt"} {
		if _, err := os.Lstat(filepath.Join(ws, name)); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
}
