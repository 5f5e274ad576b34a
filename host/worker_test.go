package host_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A forged is a run of the shipped worker that has ended.
type forged struct {
	runtime.Result
	Worked []struct {
		Ticket, State, Reason, Branch string
		Attempts                      int
		PullRequest                   *struct{ Outcome, Branch, Commit string } `json:"pull_request"`
	}
}

// withoutReview has work that passed be done, as S003 says: "create PR, status complete".
var withoutReview = map[string]string{"tickets.review": "off"}

// withoutDelays returns the text of a shipped definition whose commands are retried at once.
// The number of retries stays; package retry tests the delays.
func withoutDelays(t testing.TB, text []byte) []byte {
	t.Helper()
	const delay = `"baseDelayMs": 1000`
	if !bytes.Contains(text, []byte(delay)) {
		t.Fatalf("the definition has no %s", delay)
	}
	return bytes.ReplaceAll(text, []byte(delay), []byte(`"baseDelayMs": 20`))
}

// startShipped starts a sentinel that is part of the program.
func startShipped(t testing.TB, h *host.Host, ws string, name sentinels.ID, inputs map[string]json.RawMessage) sentinels.RunID {
	t.Helper()
	id, err := h.Runtime().Start(t.Context(), shipped(t, h, name), runtime.StartOptions{Workspace: ws, Inputs: inputs})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// shipped decodes a sentinel that is part of the program.
func shipped(t testing.TB, h *host.Host, name sentinels.ID) *sentinels.Definition {
	t.Helper()
	text, ok := sentinels.ShippedText(name)
	if !ok {
		t.Fatal("no sentinel " + name)
	}
	def, problems := h.Runtime().Decode(withoutDelays(t, text), string(name)+".json")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return def
}

// forge runs the shipped worker until no ticket is ready.
func forge(t testing.TB, h *host.Host, ws string) *forged {
	t.Helper()
	return workerEnd(t, h, startShipped(t, h, ws, "forge-worker", nil))
}

func workerEnd(t testing.TB, h *host.Host, id sentinels.RunID) *forged {
	t.Helper()
	f := workerResult(t, h, id)
	var list struct{ Worktrees []any }
	must(t, h, "worktree/list", `{}`, &list)
	if len(list.Worktrees) > 0 {
		t.Errorf("worktrees are left: %v", list.Worktrees)
	}
	return f
}

// workerResult waits for a worker, which must complete.
func workerResult(t testing.TB, h *host.Host, id sentinels.RunID) *forged {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	res, err := h.Runtime().Wait(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	if res.Status != sentinels.StatusCompleted {
		t.Fatalf("the worker %s: %+v", res.Status, res.Error)
	}
	f := &forged{Result: res}
	if err := json.Unmarshal(res.Variables["worked"], &f.Worked); err != nil {
		t.Fatal(err)
	}
	return f
}

// writes returns a model that writes a file per attempt: nth returns the tool calls of
// an attempt, one after the other.
func writes(nth func(n int, prompt string) []answer) func(chatRequest) answer {
	return func(r chatRequest) answer {
		prompt := r.text("user")
		n := 1
		for k := 9; k > 1; k-- {
			if strings.Contains(prompt, fmt.Sprintf("This is attempt %d of", k)) {
				n = k
				break
			}
		}
		calls := nth(n, prompt)
		if done := r.answers(); done < len(calls) {
			return calls[done]
		}
		return answer{text: "I wrote it."}
	}
}

func fileOf(path, content string) answer {
	return answer{tool: "fs_write", args: map[string]any{"path": path, "content": content}}
}

// A filed ticket as the tests read it.
type filed struct {
	Ticket struct {
		State, Branch      string
		VerificationStatus string            `json:"verification_status"`
		HoldCode           string            `json:"hold_code"`
		HoldReason         string            `json:"hold_reason"`
		Error              string            `json:"error"`
		BranchName         string            `json:"branch_name"`
		Log                []json.RawMessage `json:"verification_log"`
		RetryAfter         *time.Time        `json:"retry_after"`
		Files              []struct {
			Path   string `json:"file_path"`
			Change string `json:"change_type"`
		}
		PullRequest *struct{ Branch, Commit string } `json:"pull_request"`
	}
}

func ticketOf(t testing.TB, h *host.Host, id string) filed {
	t.Helper()
	var f filed
	must(t, h, "ticket/get", map[string]any{"id": id}, &f)
	return f
}

const wantsGreen = `{"id": "T-1", "title": "Make it green", "description": "a.txt must say green",
	"acceptance_criteria": {"checks": [{"id": "green", "type": "code_pattern", "verify": {"file": "a.txt", "pattern": "green", "should_match": true}}]}}`

// S003: "while (attempts < MAX_VERIFY_ATTEMPTS)": generate "with lastResult?.failedChecks",
// verify; "passing: create PR, status complete + passing". The second attempt reads what
// failed in the first one.
func TestSpecWorkerRepairs(t *testing.T) {
	ws, git := project(t)
	var prompts []string
	newModelServer(t, writes(func(n int, prompt string) []answer {
		if len(prompts) < n {
			prompts = append(prompts, prompt)
		}
		return []answer{fileOf("a.txt", map[int]string{1: "red\n"}[n]+map[int]string{2: "green\n"}[n])}
	}))
	h := open(t, host.Options{Workspace: ws, Dir: filepath.Join(t.TempDir(), ".sentinel"), Set: withoutReview})
	must(t, h, "ticket/create", wantsGreen, nil)
	if err := os.WriteFile(filepath.Join(ws, "mine.txt"), []byte("not committed"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := forge(t, h, ws)
	if len(f.Worked) != 1 || f.Worked[0].State != "done" || f.Worked[0].Attempts != 2 || f.Worked[0].PullRequest == nil || f.Worked[0].PullRequest.Outcome != "recorded" {
		t.Fatalf("worked: %+v", f.Worked)
	}
	got := ticketOf(t, h, "T-1").Ticket
	if got.State != "done" || got.VerificationStatus != "passing" || got.BranchName != "sentinel/T-1" || len(got.Log) != 2 || got.PullRequest == nil || len(got.Files) != 1 || got.Files[0].Path != "a.txt" {
		t.Errorf("the ticket: %+v", got)
	}
	if git("show", "sentinel/T-1:a.txt") != "green" || git("show", "main:a.txt") != "one" || git("status", "--porcelain") != "?? mine.txt" {
		t.Error("the branch or the user's tree is not as it should be")
	}
	if len(prompts) != 2 || !strings.Contains(prompts[0], "must say green") || strings.Contains(prompts[0], "verification failed") || !strings.Contains(prompts[1], "Attempt 1/3: The verification failed:") {
		t.Errorf("prompts: %q", prompts)
	}
	events, err := h.Runtime().Events("worker:*", 100)
	if err != nil || len(events) != 3 || events[2].Name != "worker:finished" {
		t.Errorf("events: %v, %v", events, err)
	}
}

// S003: "after 3: escalate, status blocked + failing, {success false, attempts, reason
// max_attempts_exceeded}; no PR".
func TestSpecWorkerEscalates(t *testing.T) {
	ws, git := project(t)
	newModelServer(t, writes(func(n int, _ string) []answer { return []answer{fileOf("a.txt", fmt.Sprintf("red %d\n", n))} }))
	h := open(t, host.Options{Workspace: ws, Dir: filepath.Join(t.TempDir(), ".sentinel")})
	must(t, h, "ticket/create", wantsGreen, nil)
	f := forge(t, h, ws)
	got := ticketOf(t, h, "T-1").Ticket
	if f.Worked[0].State != "escalated" || f.Worked[0].Attempts != 3 || got.State != "blocked" || got.VerificationStatus != "failing" || got.HoldCode != "max_verification_attempts" || got.PullRequest != nil {
		t.Errorf("worked %+v, the ticket: %+v", f.Worked, got)
	}
	if last := string(got.Log[len(got.Log)-1]); !strings.Contains(last, `"action":"escalated"`) && !strings.Contains(string(got.Log[len(got.Log)-2]), `"action":"escalated"`) {
		t.Errorf("the log: %s", got.Log)
	}
	if git("show", "sentinel/T-1:a.txt") != "red 3" {
		t.Error("the work of the last attempt is lost")
	}
	var shown struct{ Branch string }
	if err := call(t, h, "forge/pr", `{"ticket": "T-1"}`, &shown); err == nil {
		t.Errorf("a pull request: %+v", shown)
	}
}

// A base that moved is rebased before the verification, and a conflict is feedback: the
// next attempt finds both sides in its files.
func TestSpecWorkerConflict(t *testing.T) {
	ws, git := project(t)
	moved := false
	var marked string
	newModelServer(t, func(r chatRequest) answer {
		if !moved {
			moved = true
			if err := os.WriteFile(filepath.Join(ws, "a.txt"), []byte("theirs\n"), 0o600); err != nil {
				t.Error(err)
			}
			git("commit", "-qam", "theirs")
		}
		return writes(func(n int, prompt string) []answer {
			if n == 1 {
				return []answer{fileOf("a.txt", "green\n")}
			}
			if !strings.Contains(prompt, "conflict markers: a.txt") {
				t.Errorf("the second prompt: %s", prompt)
			}
			return []answer{{tool: "fs_read", args: map[string]any{"path": "a.txt"}}, func() answer {
				if r.answers() > 0 && marked == "" {
					marked = r.text("tool")
				}
				return fileOf("a.txt", "theirs\ngreen\n")
			}()}
		})(r)
	})
	h := open(t, host.Options{Workspace: ws, Dir: filepath.Join(t.TempDir(), ".sentinel"), Set: withoutReview})
	must(t, h, "ticket/create", wantsGreen, nil)
	f := forge(t, h, ws)
	if f.Worked[0].State != "done" || f.Worked[0].Attempts != 2 || git("show", "sentinel/T-1:a.txt") != "theirs\ngreen" || git("rev-parse", "sentinel/T-1~1") != git("rev-parse", "main") {
		t.Errorf("worked %+v", f.Worked)
	}
	if !strings.Contains(marked, "<<<<<<<") {
		t.Errorf("the agent read %q", marked)
	}
}

// Each bad model and each bad repository ends in a state with a reason, and the worker goes
// on with the next ticket.
func TestSpecWorkerBadInput(t *testing.T) {
	rubbish := func(text string) func(chatRequest) answer {
		return func(chatRequest) answer { return answer{text: text} }
	}
	good := writes(func(int, string) []answer { return []answer{fileOf("a.txt", "green\n")} })
	for _, c := range []struct {
		name          string
		ticket        string
		model         func(chatRequest) answer
		refuse        func(n int, w http.ResponseWriter) bool
		prepare       func(t *testing.T, ws string, git func(...string) string)
		state, reason string // of the ticket
	}{
		{name: "a model that writes nothing", model: rubbish("Certainly! {]"), state: "blocked", reason: "verification failed 3 times"},
		{name: "a model that repeats itself", model: func(chatRequest) answer { return answer{tool: "fs_read", args: map[string]any{"path": "a.txt"}} }, state: "blocked", reason: "verification failed 3 times"},
		{name: "a model that calls what it does not have", model: func(r chatRequest) answer {
			if r.answers() > 0 {
				return answer{text: "done"}
			}
			return answer{tool: "code_shell_execute", args: map[string]any{"command": "touch pwned"}}
		}, state: "blocked", reason: "verification failed 3 times"},
		{name: "a model that is refused", model: good, refuse: func(_ int, w http.ResponseWriter) bool {
			http.Error(w, `{"error": {"message": "invalid model"}}`, http.StatusBadRequest)
			return true
		}, state: "ready", reason: "400"},
		{name: "a repository without commits", model: good, prepare: func(t *testing.T, ws string, _ func(...string) string) {
			if err := os.RemoveAll(filepath.Join(ws, ".git")); err != nil {
				t.Fatal(err)
			}
		}, state: "on_hold", reason: "not a git repository"},
		{name: "no criteria", ticket: `{"id": "T-1", "title": "Make it green"}`, model: good, state: "blocked", reason: "unverified"},
		{name: "a person decides", ticket: `{"id": "T-1", "title": "Make it green", "acceptance_criteria": {"checks": [{"id": "look", "type": "manual", "verify": null}]}}`, model: good, state: "blocked", reason: "look"},
	} {
		if testing.Short() && (c.name == "a model that repeats itself" || c.name == "a model that is refused") {
			continue // in the short form TestSpecWorkerBadModels has cases with the same ends
		}
		t.Run(c.name, func(t *testing.T) {
			ws, git := project(t)
			if c.prepare != nil {
				c.prepare(t, ws, git)
			}
			s := newModelServer(t, c.model)
			s.refuse = c.refuse
			h := open(t, host.Options{Workspace: ws, Dir: filepath.Join(t.TempDir(), ".sentinel")})
			if c.ticket == "" {
				c.ticket = wantsGreen
			}
			must(t, h, "ticket/create", c.ticket, nil)
			f := forge(t, h, ws)
			got := ticketOf(t, h, "T-1").Ticket
			if len(f.Worked) != 1 || got.State != c.state || !strings.Contains(got.Error+got.HoldReason+got.HoldCode, c.reason) || got.PullRequest != nil {
				t.Errorf("worked %+v\nthe ticket: %+v", f.Worked, got)
			}
			if _, err := os.Stat(filepath.Join(ws, "pwned")); err == nil {
				t.Error("a command that the agent does not have was executed")
			}
		})
	}
}

// A remote that is down does not lose the work: the ticket waits with the reason, and the
// next claim begins with the branch that was verified, without the model.
func TestSpecWorkerRemoteIsDown(t *testing.T) {
	ws, git := project(t)
	remote := filepath.Join(t.TempDir(), "remote.git")
	git("remote", "add", "origin", remote)
	s := newModelServer(t, writes(func(int, string) []answer { return []answer{fileOf("a.txt", "green\n")} }))
	h := open(t, host.Options{Workspace: ws, Dir: filepath.Join(t.TempDir(), ".sentinel")})
	must(t, h, "ticket/create", wantsGreen, nil)
	f := forge(t, h, ws)
	got := ticketOf(t, h, "T-1").Ticket
	if got.State != "ready" || got.RetryAfter == nil || !strings.Contains(got.Error, "remote.git") || git("show", "sentinel/T-1:a.txt") != "green" {
		t.Errorf("worked %+v\nthe ticket: %+v", f.Worked, got)
	}
	turns := s.turns()
	git("init", "-q", "--bare", remote)
	for f.Worked = nil; len(f.Worked) == 0; time.Sleep(100 * time.Millisecond) { // until the delay is over
		f = forge(t, h, ws)
	}
	if len(f.Worked) != 1 || f.Worked[0].State != "done" || s.turns() != turns || git("--git-dir", remote, "show", "sentinel/T-1:a.txt") != "green" {
		t.Errorf("with the remote: %+v, %d turns behind %d", f.Worked, s.turns(), turns)
	}
}

// A verification that is repeated with its key, as after a crash, gives its result again:
// it is one attempt of the ticket.
func TestVerificationIsRepeated(t *testing.T) {
	ws, _ := project(t)
	h := open(t, host.Options{Workspace: ws, Dir: filepath.Join(t.TempDir(), ".sentinel")})
	must(t, h, "ticket/create", wantsGreen, nil)
	var claim struct{ Token uint64 }
	must(t, h, "ticket/claim", `{"id": "T-1"}`, &claim)
	verify := func(key string) (out struct{ Verification, Attempt int }) {
		t.Helper()
		raw, err := h.CallAs(t.Context(), &command.Call{
			Command: "verify/run", Params: fmt.Appendf(nil, `{"ticket_id": "T-1", "branch_name": "main", "token": %d}`, claim.Token), Key: key, By: command.ByStep,
		})
		if err == nil {
			err = json.Unmarshal(raw, &out)
		}
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	first, second := verify("one"), verify("two")
	if again := verify("one"); first.Attempt != 1 || second.Attempt != 2 || again != first {
		t.Errorf("first %+v, second %+v, the first again %+v", first, second, again)
	}
}
