//go:build linux

package crashtest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestKillWorker: kill -9 at every state of the worker. The first attempt conflicts with a
// base that moved, the second fails the verification, and the third one passes. The
// ticket is in review once, its branch has one commit, the user's repository has nothing else,
// and no worktree is left.
func TestKillWorker(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not on this machine")
	}
	want := workerRun(t, func(int) plan { return plan{} })
	if !slices.Equal(want, []string{"attempt", "attempt", "attempt", "finished"}) {
		t.Fatalf("events %v", want)
	}
	most := 60 // milliseconds of a life after the run continues
	if testing.Short() {
		most = 200
	}
	got := workerRun(t, func(life int) plan {
		return soon(life, most)
	})
	if !slices.Equal(got, want) {
		t.Errorf("events\n%v\nwithout kills\n%v", got, want)
	}
}

// workerRun runs the worker in one life after the other until it ends, checks what it did,
// and returns the names of its events.
func workerRun(t *testing.T, ends func(life int) plan) []string {
	t.Helper()
	ws := t.TempDir()
	repo := filepath.Join(ws, "repo")
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", repo, "-c", "user.name=t", "-c", "user.email=t@t"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if err := os.Mkdir(repo, 0o700); err != nil {
		t.Fatal(err)
	}
	save := func(text string) {
		if err := os.WriteFile(filepath.Join(repo, "a.txt"), []byte(text), 0o600); err != nil {
			t.Error(err)
		}
	}
	git("init", "-q", "-b", "main")
	save("one\n")
	git("add", "a.txt")
	git("commit", "-q", "-m", "first")

	var move sync.Once
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var r chatRequest
		if req.Method == http.MethodGet || json.NewDecoder(req.Body).Decode(&r) != nil {
			operatorModel(w, req)
			return
		}
		move.Do(func() {
			save("theirs\n")
			git("commit", "-q", "-a", "-m", "theirs")
		})
		prompt, answered := "", false
		for _, m := range r.Messages {
			if m.Role == "user" {
				prompt = text(m.Content)
			}
			answered = answered || m.Role == "tool"
		}
		content := "red\n"
		switch {
		case answered:
			answerText(w, "I wrote it.")
			return
		case strings.Contains(prompt, "This is attempt 2 of 3"):
			content = "theirs, and red\n"
		case strings.Contains(prompt, "This is attempt 3 of 3"):
			content = "theirs, and green\n"
		}
		w.Header().Set("Content-Type", "text/event-stream")
		args, _ := json.Marshal(map[string]string{"path": "a.txt", "content": content})
		chunk(w, map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{
			"index": 0, "id": "call_1", "type": "function", "function": map[string]any{"name": "fs_write", "arguments": string(args)},
		}}}, nil)
		chunk(w, map[string]any{}, "tool_calls")
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	defer server.Close()

	definition, _ := sentinels.ShippedText("forge-worker")
	if err := os.WriteFile(filepath.Join(ws, "kill.json"), definition, 0o600); err != nil {
		t.Fatal(err)
	}
	o := order{Dir: filepath.Join(ws, ".sentinel"), Workspace: ws, Crashes: 1000}
	t.Setenv("HOME", ws) // the worktrees are in its cache, for this process too
	t.Setenv("XDG_CACHE_HOME", "")
	with := func(fn func(h *host.Host)) {
		t.Helper()
		h, err := host.Open(t.Context(), host.Options{Dir: o.Dir, Workspace: ws})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		fn(h)
	}
	invoke := func(h *host.Host, name string, params any, out any) {
		t.Helper()
		raw, err := json.Marshal(params)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := h.Call(t.Context(), name, raw)
		if err == nil {
			err = json.Unmarshal(answer, out)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	with(func(h *host.Host) {
		invoke(h, "ticket/create", map[string]any{"id": "T-1", "title": "Make it green", "repo_url": repo, "acceptance_criteria": map[string]any{
			"checks": []any{map[string]any{"id": "green", "type": "code_pattern", "verify": map[string]any{"file": "a.txt", "pattern": "green", "should_match": true}}},
		}}, new(any))
	})
	result := lives(t, o, server.URL, ends)
	var worked []struct {
		State, Reason string
		Attempts      int
	}
	if err := json.Unmarshal(result.Variables["worked"], &worked); err != nil || len(worked) != 1 || worked[0].State != "in_review" || worked[0].Attempts != 3 {
		t.Errorf("%s: %v, worked %+v, %v", result.Status, result.Error, worked, err)
	}
	with(func(h *host.Host) {
		var got struct {
			Ticket struct {
				State, VerificationStatus string
				Attempts, Fence           int
			}
		}
		invoke(h, "ticket/get", map[string]any{"id": "T-1"}, &got)
		if got.Ticket.State != "in_review" || got.Ticket.Attempts != 1 || got.Ticket.Fence != 1 {
			t.Errorf("the ticket: %+v", got.Ticket)
		}
		var list struct{ Worktrees []any }
		invoke(h, "worktree/list", map[string]any{}, &list)
		if len(list.Worktrees) > 0 {
			t.Errorf("worktrees are left: %v", list.Worktrees)
		}
	})
	if got := git("show", "sentinel/T-1:a.txt"); got != "theirs, and green" || git("rev-parse", "sentinel/T-1~2") != git("rev-parse", "main") {
		t.Errorf("the branch has %q\n%s", got, git("log", "--oneline", "--graph", "--all"))
	}
	if heads := git("for-each-ref", "--format=%(refname)", "refs/heads"); heads != "refs/heads/main\nrefs/heads/sentinel/T-1" || git("status", "--porcelain") != "" {
		t.Errorf("the user's repository: %s, %s", heads, git("status", "--porcelain"))
	}
	if left, _ := filepath.Glob(filepath.Join(ws, ".cache", "sentinel", "*", "*", "*", "T-1*")); len(left) > 0 {
		t.Errorf("left in the cache: %q", left)
	}
	return eventsOf(t, o, "worker:")
}
