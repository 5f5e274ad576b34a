package host_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// The inbox shows a person all shell lines of an agent's criteria, and what binds the decision
// to them. What the agent makes of the criteria meanwhile is refused.
func TestApprovalOfCommandsIsOfWhatTheInboxShows(t *testing.T) {
	h := open(t, host.Options{Workspace: t.TempDir()})
	long := "echo " + strings.Repeat("long ", 200) + "\necho second line"
	criteria := func(line string) map[string]any {
		return map[string]any{"checks": []any{
			map[string]any{"type": "test_pass", "verify": map[string]any{"command": line}},
			map[string]any{"type": "http_request", "verify": map[string]any{"path": "/", "service": map[string]any{"command": "serve $PORT"}}},
		}}
	}
	if err := asAgent(t, h, "ticket/create", map[string]any{"id": "T-1", "title": "x", "acceptance_criteria": criteria(long)}, nil); err != nil {
		t.Fatal(err)
	}
	var inbox struct {
		Entries []struct {
			Lines []string
			Pin   map[string]any
		}
	}
	must(t, h, "inbox/list", map[string]any{}, &inbox)
	if len(inbox.Entries) != 1 || !slices.Equal(inbox.Entries[0].Lines, []string{long, "serve $PORT"}) || inbox.Entries[0].Pin["criteria_digest"] == nil {
		t.Fatalf("inbox %+v", inbox)
	}
	err := asAgent(t, h, "ticket/update", map[string]any{"id": "T-1", "acceptance_criteria": criteria("echo unseen")}, nil)
	if abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), "wait for the approval of a person") {
		t.Errorf("the agent changes what is looked at: %v", err)
	}
	if err := asAgent(t, h, "ticket/cancel", map[string]any{"id": "T-1", "error": "x"}, nil); abi.CodeOf(err) != abi.Conflict {
		t.Errorf("the agent cancels: %v", err)
	}
	release := map[string]any{"id": "T-1", "action": "release", "criteria_digest": strings.Repeat("0", 64)}
	if err := call(t, h, "ticket/decide", release, nil); abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), "\n+ "+long) {
		t.Errorf("a release of other criteria: %v", err)
	}
	release["criteria_digest"] = inbox.Entries[0].Pin["criteria_digest"]
	var got filed
	must(t, h, "ticket/decide", release, &got)
	if got.Ticket.State != "ready" {
		t.Errorf("released: %+v", got)
	}
}

// A ticket whose work was committed behind its verification is not done as verified: push, pull
// request and complete name both commits. The uncommitted work of the claim does not move the branch.
func TestWorkIsDoneAtTheCommitThatWasVerified(t *testing.T) {
	ws, git := project(t)
	h := open(t, host.Options{Workspace: ws, Dir: filepath.Join(t.TempDir(), ".sentinel"), Set: withoutReview})
	must(t, h, "ticket/create", wantsGreen, nil)
	agent := func(name string, params map[string]any, into any) {
		t.Helper()
		if err := asAgent(t, h, name, params, into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	var claim struct{ Token uint64 }
	var tree struct{ Path, Branch string }
	agent("ticket/claim", map[string]any{"id": "T-1"}, &claim)
	of := func(more map[string]any) map[string]any {
		params := map[string]any{"ticket": "T-1", "token": claim.Token}
		for name, value := range more {
			params[name] = value
		}
		return params
	}
	agent("worktree/add", of(nil), &tree)
	work := func(text string) string {
		t.Helper()
		var out struct{ Commit string }
		write(t, tree.Path, map[string]string{"a.txt": text})
		agent("worktree/commit", of(map[string]any{"message": text}), &out)
		return out.Commit
	}
	verify := func() {
		t.Helper()
		var out struct {
			Status string `json:"verification_status"`
		}
		agent("verify/run", map[string]any{"ticket_id": "T-1", "token": claim.Token, "branch_name": tree.Branch}, &out)
		if out.Status != "passing" {
			t.Fatalf("the work is %s", out.Status)
		}
	}
	complete := map[string]any{"id": "T-1", "token": claim.Token}
	completeWith := func(key string, into any) error {
		text := fmt.Sprintf(`{"id": "T-1", "token": %d}`, claim.Token)
		out, err := h.CallAs(t.Context(), &command.Call{Command: "ticket/complete", Params: json.RawMessage(text), By: command.ByAgent, As: "bot", Key: key})
		if err == nil && into != nil {
			err = json.Unmarshal(out, into)
		}
		return err
	}
	good := work("green")
	verify()
	evil := work("green, and a backdoor")
	says := "verified " + good[:7] + "; the branch is at " + evil[:7] + ": verify again"
	for name, params := range map[string]map[string]any{
		"worktree/push": of(nil), "forge/open-pr": of(map[string]any{"title": "x"}), "ticket/complete": complete,
	} {
		if err := asAgent(t, h, name, params, nil); abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", name, err, says)
		}
	}
	// A branch that another program moves is seen too.
	verify()
	git("update-ref", "refs/heads/"+tree.Branch, good)
	says = "verified " + evil[:7] + "; the branch is at " + good[:7]
	if err := asAgent(t, h, "ticket/complete", complete, nil); abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), says) {
		t.Errorf("moved by git: %v, want %q", err, says)
	}
	git("update-ref", "refs/heads/"+tree.Branch, evil)
	write(t, tree.Path, map[string]string{"a.txt": "unseen"})
	var done filed
	for range 2 { // repeated with its key, as after a crash, it finds what it did
		done = filed{}
		if err := completeWith("first", &done); err != nil || done.Ticket.State != "done" {
			t.Fatalf("%+v, %v", done, err)
		}
	}
	if err := completeWith("second", nil); abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), "claim 1 has ended") {
		t.Errorf("another report: %v", err)
	}
	agent("worktree/remove", of(nil), nil)
	if got := git("rev-parse", tree.Branch); got != evil {
		t.Errorf("the branch is at %s, want %s", got, evil)
	}
}
