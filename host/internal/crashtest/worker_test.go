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
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestKillWorkerAndReviewer: kill -9 at every state of the worker and the reviewer. The first
// attempt conflicts with a base that moved, the second one fails the verification, the third
// one passes and is rejected by the review; the next claim continues, and is approved. The
// ticket then has each attempt and each item of feedback once, one pull request and one
// comment; its branch has the commits of the work and is what the forge has; the user's
// repository has nothing else, and no worktree is left.
//
// SENTINEL_KILLS is the number of kills, in as many rounds as that takes.
func TestKillWorkerAndReviewer(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not on this machine")
	}
	want, _ := gatesRun(t, func(int) plan { return plan{} })
	if diff := cmp.Diff(gatesResult{
		Worker: "attempt attempt attempt finished attempt finished", Reviewer: "finished finished", State: "done", Fence: 4, Rejections: 1, Pulls: 1, Comments: 1, Failed: 1,
		Attempts: []gatesAttempt{{"worker", "completed", nil}, {"reviewer", "rejected", []string{"make it greener", "and nothing else"}}, {"worker", "completed", nil}, {"reviewer", "completed", nil}},
		Subjects: "T-1: Make it green\nT-1: Make it green\nT-1: Make it green",
	}, want); diff != "" {
		t.Fatalf("without a kill (-want +got):\n%s", diff)
	}
	most, every := 60, 50 // milliseconds of a life after the run continues, and the lives after which they double
	if testing.Short() {
		most, every = 250, 5 // some 20 lives, on a busy machine too; all others are of `make soak`
	}
	kills := 1
	if n, err := strconv.Atoi(os.Getenv("SENTINEL_KILLS")); err == nil {
		kills = n
	}
	for round := 0; kills > 0 && !t.Failed(); round++ {
		got, lives := gatesRun(t, func(life int) plan { return soon(life, round, most, every) })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("round %d (-without kills +with %d):\n%s", round, lives-1, diff)
		}
		kills -= lives - 1
	}
}

// A gatesResult is what must not depend on kills.
type gatesResult struct {
	Worker, Reviewer string // their events
	State            string
	Fence            int // claims
	Rejections       int
	Attempts         []gatesAttempt
	Subjects         string // of the commits of the branch
	Pulls, Comments  int
	Failed           int // verdicts that count against the ticket
}

type gatesAttempt struct {
	Role, Outcome string
	Feedback      []string
}

// A forge keeps the pull requests and comments that it was asked for.
type crashForge struct {
	mu       sync.Mutex
	pulls    []map[string]any
	comments []map[string]any
	head     func() string // commit of the branch
}

func (f *crashForge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	say := func(status int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body) // a host that was killed does not read it
	}
	var body map[string]string
	_ = json.NewDecoder(r.Body).Decode(&body)
	list := func(all []map[string]any) []map[string]any {
		if page := r.URL.Query().Get("page"); page != "" && page != "1" {
			return []map[string]any{}
		}
		return append([]map[string]any{}, all...)
	}
	switch rest := strings.TrimPrefix(r.URL.Path, "/api/v1/repos/o/r/"); {
	case rest == "pulls" && r.Method == http.MethodGet:
		say(http.StatusOK, list(f.pulls))
	case rest == "pulls":
		for _, p := range f.pulls {
			if p["head"].(map[string]any)["ref"] == body["head"] {
				say(http.StatusConflict, map[string]any{"message": "pull request already exists for these targets"})
				return
			}
		}
		p := map[string]any{"number": len(f.pulls) + 1, "html_url": "https://forge.example/o/r/pulls/1", "state": "open", "title": body["title"],
			"head": map[string]any{"ref": body["head"], "sha": f.head()}, "base": map[string]any{"ref": body["base"]}}
		f.pulls = append(f.pulls, p)
		say(http.StatusCreated, p)
	case rest == "pulls/1" && len(f.pulls) > 0:
		f.pulls[0]["head"].(map[string]any)["sha"] = f.head()
		say(http.StatusOK, f.pulls[0])
	case rest == "issues/1/comments" && r.Method == http.MethodGet:
		say(http.StatusOK, list(f.comments))
	case rest == "issues/1/comments":
		c := map[string]any{"id": len(f.comments) + 1, "html_url": "https://forge.example/o/r/pulls/1#1", "body": body["body"]}
		f.comments = append(f.comments, c)
		say(http.StatusCreated, c)
	default:
		say(http.StatusNotFound, map[string]any{"message": "not found"})
	}
}

// gatesModel answers the worker and the reviewer by what their prompts say.
func gatesModel(moved func()) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		var r chatRequest
		if req.Method == http.MethodGet || json.NewDecoder(req.Body).Decode(&r) != nil {
			operatorModel(w, req)
			return
		}
		moved()
		system, prompt, answered := "", "", false
		for _, m := range r.Messages {
			switch m.Role {
			case "system":
				system = text(m.Content)
			case "user":
				prompt = text(m.Content)
			case "tool":
				answered = true
			}
		}
		call := func(name string, arguments map[string]string) {
			args, _ := json.Marshal(arguments)
			w.Header().Set("Content-Type", "text/event-stream")
			chunk(w, map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{
				"index": 0, "id": "call_1", "type": "function", "function": map[string]any{"name": name, "arguments": string(args)},
			}}}, nil)
			chunk(w, map[string]any{}, "tool_calls")
			fmt.Fprint(w, "data: [DONE]\n\n")
		}
		review := strings.HasPrefix(system, "You review ")
		switch {
		case review && !answered:
			call("fs_read", map[string]string{"path": "a.txt"})
		case review && strings.Contains(prompt, "+theirs, and greener"):
			answerText(w, `{"decision": "APPROVE", "score": 91, "issues": [], "feedback_for_agent": []}`)
		case review:
			answerText(w, `{"decision": "REQUEST_CHANGES", "score": 70, "issues": [], "feedback_for_agent": ["make it greener", "and nothing else"]}`)
		case answered:
			answerText(w, "I wrote it.")
		case strings.Contains(prompt, "make it greener"):
			call("fs_write", map[string]string{"path": "a.txt", "content": "theirs, and greener\n"})
		case strings.Contains(prompt, "This is attempt 1 of 3"):
			call("fs_write", map[string]string{"path": "a.txt", "content": "red\n"})
		case strings.Contains(prompt, "This is attempt 2 of 3"):
			call("fs_write", map[string]string{"path": "a.txt", "content": "theirs, and red\n"})
		default:
			call("fs_write", map[string]string{"path": "a.txt", "content": "theirs, and green\n"})
		}
	}
}

// gatesRun runs the worker and the reviewer twice, in one life after the other until all
// have ended, and returns what they did and how many lives it took.
func gatesRun(t *testing.T, ends func(life int) plan) (out gatesResult, count int) {
	t.Helper()
	ws := t.TempDir()
	repo, remote := filepath.Join(ws, "repo"), filepath.Join(ws, "remote.git")
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
	save := func(path, text string, mode os.FileMode) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Error(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Error(err)
		}
	}
	save(filepath.Join(repo, "a.txt"), "one\n", 0o600)
	git("init", "-q", "-b", "main")
	git("add", "a.txt")
	git("commit", "-q", "-m", "first")
	git("clone", "-q", "--bare", repo, remote)
	git("remote", "add", "origin", "ssh://git@127.0.0.1/o/r.git")
	// The program in place of ssh executes the command on this machine.
	save(filepath.Join(ws, "bin", "ssh"), "#!/bin/sh\nfor last; do :; done\nexec sh -c \"$(printf %s \"$last\" | sed 's|/o/r.git|"+remote+"|')\"\n", 0o700)
	t.Setenv("PATH", filepath.Join(ws, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))

	pulls := &crashForge{head: func() string { return git("--git-dir", remote, "rev-parse", "sentinel/T-1") }}
	forge := httptest.NewServer(pulls)
	defer forge.Close()
	var once sync.Once
	model := httptest.NewServer(gatesModel(func() {
		once.Do(func() {
			save(filepath.Join(repo, "a.txt"), "theirs\n", 0o600)
			git("commit", "-q", "-a", "-m", "theirs")
		})
	}))
	defer model.Close()
	save(filepath.Join(ws, "token"), "forge-token-forge-token\n", 0o600)
	settings, _ := json.Marshal(map[string]any{
		"tickets": map[string]any{"reviewDelay": "0s"}, "forge": map[string]any{"url": forge.URL},
		"secrets": map[string]any{"FORGE_TOKEN": map[string]any{"file": filepath.Join(ws, "token")}},
	})
	save(filepath.Join(ws, ".config", "sentinel", "config.json"), string(settings), 0o600)
	var steps []any
	for _, id := range []sentinels.ID{"forge-worker", "reviewer", "forge-worker", "reviewer"} {
		var definition map[string]any
		text, _ := sentinels.ShippedText(id)
		if err := json.Unmarshal(text, &definition); err != nil {
			t.Fatal(err)
		}
		delete(definition, "trigger") // the step starts it
		steps = append(steps, map[string]any{"type": "sentinel", "definition": definition})
	}
	campaign, _ := json.Marshal(map[string]any{"name": "campaign", "steps": steps, "safety": map[string]any{"onInterrupt": "retry", "maxStepTimeoutMs": 14400000}})
	save(filepath.Join(ws, "kill.json"), string(campaign), 0o600)

	o := order{Dir: filepath.Join(ws, ".sentinel"), Workspace: ws, Crashes: 1000, Set: map[string]string{"tickets.review": "on"}} // the reviewer is started, not armed
	t.Setenv("HOME", ws)                                                                                                          // the worktrees are in its cache, for this process too
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("XDG_CONFIG_HOME", "")
	with := func(fn func(invoke func(name string, params any, out any))) {
		t.Helper()
		h, err := host.Open(t.Context(), host.Options{Dir: o.Dir, Workspace: ws})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		fn(func(name string, params any, out any) {
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
		})
	}
	with(func(invoke func(string, any, any)) {
		invoke("ticket/create", map[string]any{"id": "T-1", "title": "Make it green", "repo_url": repo, "acceptance_criteria": map[string]any{
			"checks": []any{map[string]any{"id": "green", "type": "code_pattern", "verify": map[string]any{"file": "a.txt", "pattern": "green", "should_match": true}}},
		}}, new(any))
	})
	defer func() {
		if t.Failed() { // what became of the ticket says why
			with(func(invoke func(string, any, any)) {
				var ticket json.RawMessage
				invoke("ticket/get", map[string]any{"id": "T-1"}, &ticket)
				t.Logf("the ticket: %s", ticket)
			})
			for _, e := range append(published(t, o, "worker:"), published(t, o, "reviewer:")...) {
				t.Logf("%s: %s", e.Name, e.Data)
			}
		}
	}()
	warmCache(t, o.Workspace)
	result, n := lives(t, o, model.URL, ends)
	if result.Status != sentinels.StatusCompleted {
		t.Errorf("the campaign %s: %v", result.Status, result.Error)
	}
	var record struct {
		Number         int
		Commit, Branch string
	}
	with(func(invoke func(string, any, any)) {
		var got struct {
			Ticket struct {
				State      string
				Fence      int
				Rejections int               `json:"rejection_count"`
				Verified   string            `json:"verified_commit"`
				Log        []json.RawMessage `json:"verification_log"`
				PR         struct {
					Number int
					Commit string
				} `json:"pull_request"`
				Lease any
			}
		}
		invoke("ticket/get", map[string]any{"id": "T-1"}, &got)
		out.State, out.Fence, out.Rejections = got.Ticket.State, got.Ticket.Fence, got.Ticket.Rejections
		var attempts struct {
			Attempts []struct {
				Role, Outcome string
				Feedback      *struct {
					Items []string `json:"feedback_for_agent"`
				} `json:"sentinel_feedback"`
			}
		}
		invoke("ticket/attempts", map[string]any{"id": "T-1"}, &attempts)
		for _, a := range attempts.Attempts {
			one := gatesAttempt{Role: a.Role, Outcome: a.Outcome}
			if a.Feedback != nil {
				one.Feedback = a.Feedback.Items
			}
			out.Attempts = append(out.Attempts, one)
		}
		for _, entry := range got.Ticket.Log {
			if strings.Contains(string(entry), `"verification_status":"failing"`) || strings.Contains(string(entry), `"status":"failing"`) {
				out.Failed++
			}
		}
		invoke("forge/pr", map[string]any{"ticket": "T-1"}, &record)
		tip := git("rev-parse", "sentinel/T-1")
		if got.Ticket.Verified != tip || got.Ticket.PR.Commit != tip || got.Ticket.PR.Number != 1 || record.Commit != tip || record.Number != 1 || pulls.head() != tip || got.Ticket.Lease != nil {
			t.Errorf("the branch is at %s, the forge at %s, the record is %+v, the ticket %+v", tip, pulls.head(), record, got.Ticket)
		}
		var list struct{ Worktrees []any }
		invoke("worktree/list", map[string]any{}, &list)
		if len(list.Worktrees) > 0 {
			t.Errorf("worktrees are left: %v", list.Worktrees)
		}
	})
	if heads := git("for-each-ref", "--format=%(refname)", "refs/heads"); heads != "refs/heads/main\nrefs/heads/sentinel/T-1" || git("status", "--porcelain") != "" {
		t.Errorf("the user's repository: %s, %s", heads, git("status", "--porcelain"))
	}
	if left, _ := filepath.Glob(filepath.Join(ws, ".cache", "sentinel", "*", "*", "*", "T-1*")); len(left) > 0 {
		t.Errorf("left in the cache: %q", left)
	}
	if got := git("show", "sentinel/T-1:a.txt"); got != "theirs, and greener" {
		t.Errorf("the branch has %q", got)
	}
	out.Subjects = git("log", "--reverse", "--format=%s", "main..sentinel/T-1")
	pulls.mu.Lock()
	out.Pulls, out.Comments = len(pulls.pulls), len(pulls.comments)
	pulls.mu.Unlock()
	out.Worker, out.Reviewer = strings.Join(eventsOf(t, o, "worker:"), " "), strings.Join(eventsOf(t, o, "reviewer:"), " ")
	return out, n
}
