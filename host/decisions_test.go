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
	if err := asAgent(t, h, "ticket/cancel", map[string]any{"id": "T-1", "error": "x"}, nil); abi.CodeOf(err) != abi.Denied {
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

// A person approves the commit of one branch. An agent that verifies another branch, or the same
// one after it moved, changes neither what is approved nor that it is.
func TestApprovalIsOfTheCommitThatWasShown(t *testing.T) {
	ws, git := project(t)
	commit := func(branch, text string) string {
		t.Helper()
		git("checkout", "-q", "-B", branch, "main")
		write(t, ws, map[string]string{"a.txt": text})
		git("commit", "-q", "-a", "-m", branch)
		return git("rev-parse", "HEAD")
	}
	good, evil := commit("work", "green"), commit("evil", "green, and a backdoor")
	commit("broken", "blue")
	git("checkout", "-q", "main")
	h := open(t, host.Options{Workspace: ws, Set: map[string]string{"tickets.review": "off", "tickets.approval": "on", "tickets.deploy": "on"}})
	must(t, h, "ticket/create", strings.Replace(wantsGreen, `"title"`, `"branch_name": "work", "title"`, 1), nil)
	type ticket struct {
		Ticket struct {
			State    string
			HoldCode string `json:"hold_code"`
			Status   string `json:"verification_status"`
			Branch   string `json:"branch_name"`
			Verified string `json:"verified_commit"`
			Judged   string `json:"judged_commit"`
		}
	}
	is := func(when, state, code string) {
		t.Helper()
		var v ticket
		must(t, h, "ticket/get", `{"id": "T-1"}`, &v)
		if got := v.Ticket; got.State != state || got.HoldCode != code || got.Status != "passing" || got.Branch != "work" || got.Verified != good || got.Judged != good {
			t.Errorf("%s: %+v, want %s %s of %s", when, got, state, code, good)
		}
	}
	finish := func(role string) {
		t.Helper()
		var claim struct{ Token uint64 }
		if err := asAgent(t, h, "ticket/claim", map[string]any{"id": "T-1", "role": role}, &claim); err != nil {
			t.Fatal(err)
		}
		if role == "worker" {
			if err := asAgent(t, h, "verify/run", map[string]any{"ticket_id": "T-1", "token": claim.Token}, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := asAgent(t, h, "ticket/complete", map[string]any{"id": "T-1", "token": claim.Token}, nil); err != nil {
			t.Fatal(err)
		}
	}
	attack := func(state, code string) {
		t.Helper()
		for _, branch := range []string{"evil", "broken"} {
			err := asAgent(t, h, "verify/run", map[string]any{"ticket_id": "T-1", "branch_name": branch}, nil)
			if abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "is work") {
				t.Errorf("%s: an agent verifies branch %s: %v", state, branch, err)
			}
			is("denied", state, code)
			git("branch", "-q", "-f", "work", branch)
			var out struct {
				Judged string `json:"judged_commit"`
			}
			if err := asAgent(t, h, "verify/run", map[string]any{"ticket_id": "T-1"}, &out); err != nil || out.Judged != good {
				t.Errorf("%s: the branch moved to %s: %+v, %v", state, branch, out, err)
			}
			is("moved to "+branch, state, code)
		}
		git("branch", "-q", "-f", "work", good)
	}
	finish("worker")
	attack("blocked", "work_approval")
	must(t, h, "ticket/decide", `{"id": "T-1", "action": "accept"}`, nil)
	attack("approved", "")
	if err := asAgent(t, h, "verify/run", map[string]any{"ticket_id": "T-1", "repo_url": t.TempDir()}, nil); abi.CodeOf(err) != abi.Denied {
		t.Errorf("an agent verifies another repository: %v", err)
	}
	is("another repository", "approved", "")
	git("branch", "-q", "-f", "work", evil)
	var claim struct{ Token uint64 }
	if err := asAgent(t, h, "ticket/claim", map[string]any{"id": "T-1", "role": "deployer"}, &claim); err != nil {
		t.Fatal(err)
	}
	err := asAgent(t, h, "ticket/complete", map[string]any{"id": "T-1", "token": claim.Token}, nil)
	if abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), "the branch is at "+evil[:7]) {
		t.Errorf("deployed from a branch that moved: %v", err)
	}
	git("branch", "-q", "-f", "work", good)
	if err := asAgent(t, h, "ticket/complete", map[string]any{"id": "T-1", "token": claim.Token}, nil); err != nil {
		t.Fatal(err)
	}
	is("deployed", "done", "")
}

// A ticket that was done is verified again on its base. An agent does not end this with the
// branch on which the work once passed.
func TestWorkThatIsAffectedIsVerifiedOnItsBase(t *testing.T) {
	ws, git := project(t)
	h := open(t, host.Options{Workspace: ws, Set: withoutReview})
	git("checkout", "-q", "-b", "work")
	write(t, ws, map[string]string{"a.txt": "green"})
	git("commit", "-q", "-a", "-m", "work")
	git("checkout", "-q", "main")
	for _, id := range []string{"T-1", "T-2"} {
		var claim struct{ Token uint64 }
		must(t, h, "ticket/create", strings.NewReplacer("T-1", id, `"title"`, `"branch_name": "work", "title"`).Replace(wantsGreen), nil)
		must(t, h, "ticket/claim", map[string]any{"id": id}, &claim)
		must(t, h, "verify/run", map[string]any{"ticket_id": id, "token": claim.Token}, nil)
		must(t, h, "ticket/complete", map[string]any{"id": id, "token": claim.Token, "files": []any{map[string]any{"file_path": "a.txt", "change_type": "modified"}}}, nil)
	}
	err := asAgent(t, h, "verify/run", map[string]any{"ticket_id": "T-1", "branch_name": "work"}, nil)
	if got := ticketOf(t, h, "T-1").Ticket; abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "verified on the default branch") || got.State != "needs_review" {
		t.Errorf("the old branch: %v, the ticket %+v", err, got)
	}
	err = asAgent(t, h, "verify/run", map[string]any{"ticket_id": "T-1"}, nil)
	if got := ticketOf(t, h, "T-1").Ticket; err != nil || got.State != "needs_review" || got.VerificationStatus != "failing" {
		t.Errorf("the base: %v, the ticket %+v", err, got)
	}
}
