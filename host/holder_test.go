package host_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// asAgent calls a command with the token of an agent.
func asAgent(t *testing.T, h *host.Host, name string, params map[string]any, into any) error {
	t.Helper()
	return as(t, h, "bot", name, params, into)
}

// as calls a command with the token of the agent with a name.
func as(t *testing.T, h *host.Host, agent, name string, params map[string]any, into any) error {
	t.Helper()
	text, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	out, err := h.CallAs(t.Context(), &command.Call{Command: name, Params: text, By: command.ByAgent, As: agent})
	if err == nil && into != nil {
		err = json.Unmarshal(out, into)
	}
	return err
}

// An agent ends the claim of another only with its token; a person needs none.
func TestClaimIsEndedWithItsToken(t *testing.T) {
	h := open(t, host.Options{Workspace: t.TempDir()})
	reports := map[string]map[string]any{
		"ticket/release": {"id": "T-1"}, "ticket/fail": {"id": "T-1", "error": "operation timed out"}, "ticket/cancel": {"id": "T-1", "error": "x"},
		"ticket/complete": {"id": "T-1"}, "ticket/escalate": {"id": "T-1"}, "ticket/reject": {"id": "T-1", "sentinel_feedback": "x"},
		"verify/run": {"ticket_id": "T-1", "branch_name": "main"},
	}
	must(t, h, "ticket/create", `{"id": "T-1", "title": "x", "acceptance_criteria": {"checks": [{"type": "file", "verify": {"path": "none"}}]}}`, nil)
	claim := func() map[string]any {
		var out map[string]any
		if err := asAgent(t, h, "ticket/claim", map[string]any{"id": "T-1", "agent_id": "worker-1"}, &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	token := claim()["token"]
	for name, params := range reports {
		if err := asAgent(t, h, name, params, nil); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "ticket T-1 is claimed by agent:bot/worker-1") {
			t.Errorf("%s without the token: %v", name, err)
		}
	}
	for _, name := range []string{"worktree/remove", "worktree/push", "worktree/add"} {
		if err := asAgent(t, h, name, map[string]any{"ticket": "T-1"}, nil); abi.CodeOf(err) != abi.BadFields || !strings.Contains(err.Error(), "token is missing") {
			t.Errorf("%s without the token: %v", name, err)
		}
	}
	if err := asAgent(t, h, "ticket/release", map[string]any{"id": "T-1", "token": token}, nil); err != nil {
		t.Errorf("with the token: %v", err)
	}
	claim()
	must(t, h, "ticket/release", `{"id": "T-1"}`, nil)
	if err := asAgent(t, h, "verify/run", map[string]any{"ticket_id": "T-1", "branch_name": "main"}, nil); err != nil {
		t.Errorf("a ticket without a claim: %v", err)
	}
}

// What a person decided about a ticket, and the queue, are not for agents to change: they report
// about claims of their own.
func TestAgentsReportAboutTheirClaims(t *testing.T) {
	h := open(t, host.Options{Workspace: t.TempDir()})
	for id, decide := range map[string]string{"T-1": "hold", "T-2": "reject", "T-3": ""} {
		must(t, h, "ticket/create", `{"id": "`+id+`", "title": "x"}`, nil)
		if decide != "" {
			must(t, h, "ticket/decide", `{"id": "`+id+`", "action": "`+decide+`"}`, nil)
		}
		var before, after map[string]any
		must(t, h, "ticket/get", `{"id": "`+id+`"}`, &before)
		for name, params := range map[string]map[string]any{
			"ticket/fail": {"error": "timeout", "code": "unavailable"}, "ticket/cancel": {"error": "x"}, "ticket/escalate": {}, "ticket/reject": {"sentinel_feedback": "x"}, "ticket/release": {},
		} {
			params["id"] = id
			if err := asAgent(t, h, name, params, nil); abi.CodeOf(err) != abi.Denied {
				t.Errorf("%s of %s: %v", name, id, err)
			}
		}
		if must(t, h, "ticket/get", `{"id": "`+id+`"}`, &after); before["state"] != after["state"] {
			t.Errorf("%s was %v and is %v", id, before["state"], after["state"])
		}
	}
}

// An agent does not review its own work.
func TestAgentsReviewTheWorkOfOthers(t *testing.T) {
	h := open(t, host.Options{Workspace: t.TempDir(), Set: map[string]string{"tickets.review": "on", "tickets.unverified": "true"}})
	must(t, h, "ticket/create", `{"id": "T-1", "title": "x"}`, nil)
	var claim map[string]any
	if err := asAgent(t, h, "ticket/claim", map[string]any{"id": "T-1"}, &claim); err != nil {
		t.Fatal(err)
	}
	if err := asAgent(t, h, "ticket/complete", map[string]any{"id": "T-1", "token": claim["token"]}, nil); err != nil {
		t.Fatal(err)
	}
	review := map[string]any{"id": "T-1", "role": "reviewer"}
	if err := asAgent(t, h, "ticket/claim", review, nil); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "worked on it in attempt 1") {
		t.Errorf("a review of its own work: %v", err)
	}
	if err := as(t, h, "other", "ticket/claim", review, nil); err != nil {
		t.Errorf("a review by another one: %v", err)
	}
}

// A run of a definition that an agent has stored is that agent's, also when a trigger starts it, and no
// person has accepted it.
func TestTriggeredRunsOfAgentsAreTheirs(t *testing.T) {
	h := open(t, host.Options{Workspace: t.TempDir(), Set: map[string]string{"tickets.review": "on", "tickets.unverified": "true"}})
	must(t, h, "ticket/create", `{"id": "T-1", "title": "x"}`, nil)
	var claim map[string]any
	if err := asAgent(t, h, "ticket/claim", map[string]any{"id": "T-1"}, &claim); err != nil {
		t.Fatal(err)
	}
	if err := asAgent(t, h, "ticket/complete", map[string]any{"id": "T-1", "token": claim["token"]}, nil); err != nil {
		t.Fatal(err)
	}
	if err := h.Runtime().Arm(t.Context()); err != nil {
		t.Fatal(err)
	}
	steps := []any{map[string]any{"type": "command", "command": "ticket/claim", "params": map[string]any{"id": "T-1", "role": "reviewer"}}}
	if err := asAgent(t, h, "sentinel/create", map[string]any{"definition": map[string]any{"id": "rev", "name": "rev", "trigger": map[string]any{"type": "event", "event": "go.rev"}, "steps": steps}}, nil); err != nil {
		t.Fatal(err)
	}
	if err := asAgent(t, h, "events/emit", map[string]any{"event": "go.rev"}, nil); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		runs, err := h.Runtime().Runs(runtime.RunFilter{Sentinel: "rev"})
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("%+v %v", runs, err)
		}
		if len(runs) > 0 && runs[0].Error != nil {
			if !strings.Contains(runs[0].Error.Message, "cannot be reviewed by agent:bot") {
				t.Errorf("%+v", runs[0].Error)
			}
			return
		}
	}
}

// The token of a claim is a number that everyone reads. It serves those who made the claim: an
// agent with the runs that it starts, or the steps and models of one tree of runs.
func TestClaimIsOfItsClaimant(t *testing.T) {
	h := open(t, host.Options{Workspace: t.TempDir()})
	reports := map[string]map[string]any{
		"ticket/heartbeat": {}, "ticket/release": {}, "ticket/fail": {"error": "x"}, "ticket/cancel": {"error": "x"}, "ticket/complete": {}, "ticket/escalate": {}, "ticket/reject": {"sentinel_feedback": "x"},
		"ticket/files": {"files": []any{}}, "ticket/context": {}, "verify/run": {}, "worktree/add": {}, "worktree/review": {}, "worktree/commit": {"message": "x"}, "worktree/rebase": {}, "worktree/diff": {},
		"worktree/push": {}, "worktree/remove": {}, "forge/open-pr": {"title": "x"}, "forge/comment": {"body": "x"},
	}
	must(t, h, "ticket/create", `{"id": "T-1", "title": "x"}`, nil)
	var claim struct {
		Token  uint64
		Ticket struct {
			Lease struct {
				By string `json:"claimed_by"`
			}
		}
	}
	if err := asAgent(t, h, "ticket/claim", map[string]any{"id": "T-1", "agent_id": "user"}, &claim); err != nil || claim.Ticket.Lease.By != "agent:bot" {
		t.Fatalf("%+v, %v", claim, err)
	}
	for name, params := range reports {
		family, _, _ := strings.Cut(name, "/")
		params["token"] = claim.Token
		params[map[string]string{"ticket": "id", "verify": "ticket_id", "worktree": "ticket", "forge": "ticket"}[family]] = "T-1"
		if err := as(t, h, "other", name, params, nil); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "claim 1 is of agent:bot, and the caller is agent:other") {
			t.Errorf("%s by another agent: %v", name, err)
		}
	}
	// A step that another agent starts is this agent's, too.
	run := func(agent string) string {
		t.Helper()
		var out json.RawMessage
		if err := as(t, h, agent, "sentinel/run", map[string]any{"definition": map[string]any{"name": "thief", "steps": []any{
			map[string]any{"type": "command", "command": "ticket/release", "params": map[string]any{"id": "T-1", "token": claim.Token}},
		}}}, &out); err != nil {
			return err.Error()
		}
		return string(out)
	}
	if got := run("other"); !strings.Contains(got, "the caller is agent:other") {
		t.Errorf("a step of another agent: %s", got)
	}
	if got := run("bot"); !strings.Contains(got, `"completed"`) {
		t.Errorf("a step of the agent itself: %s", got)
	}
}

// A tree of runs shares its claims. The model of another run cannot use one.
func TestClaimIsOfATreeOfRuns(t *testing.T) {
	h := open(t, host.Options{Workspace: t.TempDir()})
	must(t, h, "ticket/create", `{"id": "T-1", "title": "x"}`, nil)
	var root sentinels.RunID
	calls := func(by command.By, root sentinels.RunID, name, params string) error {
		_, err := h.CallAs(t.Context(), &command.Call{Command: name, Params: json.RawMessage(params), By: by, Run: "child", Root: root, Tools: []string{"ticket/*"}})
		return err
	}
	must(t, h, "sentinel/create", `{"definition": {"id": "claims", "steps": [
		{"type": "sentinel", "definition": {"name": "child", "steps": [{"type": "command", "command": "ticket/claim", "params": {"id": "T-1"}}]}}]}}`, nil)
	var out struct{ Run sentinels.RunID }
	must(t, h, "sentinel/start", `{"sentinelId": "claims"}`, &out)
	if _, err := h.Runtime().Wait(t.Context(), out.Run); err != nil {
		t.Fatal(err)
	}
	root = out.Run
	if err := calls(command.ByModel, "other", "ticket/release", `{"id": "T-1", "token": 1}`); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "claim 1 is of run "+string(root)) {
		t.Errorf("a model of another run: %v", err)
	}
	if err := calls(command.ByModel, root, "ticket/heartbeat", `{"id": "T-1", "token": 1}`); err != nil {
		t.Errorf("a model of a child: %v", err)
	}
	if err := calls(command.ByStep, "other", "ticket/release", `{"id": "T-1", "token": 1}`); err != nil {
		t.Errorf("a step of a person's definition: %v", err)
	}
}

// What an agent may not change of the work of others: what it is judged by and where, and that a
// ticket is for a person.
func TestWhatIsForPeopleStaysSo(t *testing.T) {
	h := open(t, host.Options{Workspace: t.TempDir(), Set: map[string]string{"tickets.review": "off", "tickets.unverified": "true"}})
	must(t, h, "ticket/create", `{"id": "T-1", "title": "sign off", "assignee_type": "human"}`, nil)
	if err := asAgent(t, h, "ticket/claim", map[string]any{"id": "T-1"}, nil); abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), "it is for people") {
		t.Errorf("an agent claims it: %v", err)
	}
	if err := asAgent(t, h, "ticket/update", map[string]any{"id": "T-1", "assignee_type": "agent"}, nil); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "assignee_type") {
		t.Errorf("an agent makes it one for agents: %v", err)
	}
	must(t, h, "ticket/claim", `{"id": "T-1"}`, nil)
	must(t, h, "ticket/complete", `{"id": "T-1"}`, nil)
	for field, value := range map[string]any{
		"base_branch": "evil", "branch_name": "evil", "acceptance_criteria": map[string]any{"checks": []any{map[string]any{"type": "file", "verify": map[string]any{"path": "a"}}}},
	} {
		if err := asAgent(t, h, "ticket/update", map[string]any{"id": "T-1", field: value}, nil); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "that is done") {
			t.Errorf("an agent changes %s: %v", field, err)
		}
	}
	must(t, h, "ticket/update", `{"id": "T-1", "base_branch": "release"}`, nil)
}

// An agent chooses no repository: the host works and pushes there with the rights of its user.
func TestAgentsChooseNoRepository(t *testing.T) {
	ws, other := t.TempDir(), t.TempDir()
	h := open(t, host.Options{Workspace: ws})
	must(t, h, "ticket/create", map[string]any{"id": "P-1", "title": "x", "repo_url": other}, nil)
	for name, params := range map[string]map[string]any{
		"ticket/create": {"title": "x", "repo_url": other},
		"verify/run":    {"repo_url": other, "branch_name": "main", "acceptance_criteria": map[string]any{"checks": []any{map[string]any{"type": "file", "verify": map[string]any{"path": "a"}}}}},
	} {
		if err := asAgent(t, h, name, params, nil); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "repo_url") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, params := range []map[string]any{{"title": "x", "repo_url": ws}, {"title": "x"}, {"title": "x", "repo_url": other, "parent_id": "P-1"}} {
		if err := asAgent(t, h, "ticket/create", params, nil); err != nil {
			t.Errorf("%v: %v", params, err)
		}
	}
}

// The log of a ticket names an agent by its token, whatever name it chooses, and has no entries of
// agents that look like those of the host.
func TestLogNamesItsAuthor(t *testing.T) {
	h := open(t, host.Options{Workspace: t.TempDir()})
	must(t, h, "ticket/create", `{"id": "T-1", "title": "x"}`, nil)
	for _, category := range []string{"ticket_state_changed", "verification_passed"} {
		if err := asAgent(t, h, "ticket/log", map[string]any{"id": "T-1", "agent_id": "user", "category": category}, nil); abi.CodeOf(err) != abi.Denied {
			t.Errorf("an entry of the kind %s: %v", category, err)
		}
	}
	var log struct {
		Activities []struct {
			Agent string `json:"agent_id"`
		}
	}
	is := func(what, name string) {
		t.Helper()
		must(t, h, "ticket/activity", `{"id": "T-1", "limit": 1}`, &log)
		if got := log.Activities[0].Agent; got != name {
			t.Errorf("%s is by %q, want %q", what, got, name)
		}
	}
	if err := asAgent(t, h, "ticket/log", map[string]any{"id": "T-1", "agent_id": "user", "category": "git_operation"}, nil); err != nil {
		t.Fatal(err)
	}
	is("a name of its own", "agent:bot/user")
	if err := asAgent(t, h, "sentinel/run", map[string]any{"definition": map[string]any{"name": "user", "steps": []any{
		map[string]any{"type": "command", "command": "ticket/comment", "params": map[string]any{"id": "T-1", "text": "merge this"}},
	}}}, nil); err != nil {
		t.Fatal(err)
	}
	is("a step of a definition that is called user", "agent:bot")
	if err := asAgent(t, h, "ticket/claim", map[string]any{"id": "T-1", "agent_id": "user"}, nil); err != nil {
		t.Fatal(err)
	}
	is("a claim", "agent:bot/user")
}

// TestAgentsKeepTheWordsOfPersons: no agent changes title or description of a ticket of any
// ticket after a person wrote them, and the inbox says whose they are otherwise. Without a claim an agent records no changed files.
func TestAgentsKeepTheWordsOfPersons(t *testing.T) {
	h := open(t, host.Options{Workspace: t.TempDir(), Set: map[string]string{"tickets.approval": "on", "tickets.review": "off", "tickets.unverified": "true"}})
	refused := func(agent, command string, params map[string]any, why string) {
		t.Helper()
		if err := as(t, h, agent, command, params, nil); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), why) {
			t.Errorf("%s by agent:%s: %v, want %q", command, agent, err, why)
		}
	}
	work := func(id string) (prompt string) {
		t.Helper()
		var claim struct{ Token uint64 }
		if err := as(t, h, "ci", "ticket/claim", map[string]any{"id": id}, &claim); err != nil {
			t.Fatal(err)
		}
		refused("ci", "ticket/update", map[string]any{"id": id, "title": "only a typo"}, "which a person wrote")
		files := []any{map[string]any{"file_path": "README.md", "change_type": "modified"}}
		if err := as(t, h, "ci", "ticket/files", map[string]any{"id": id, "token": claim.Token, "files": files}, nil); err != nil {
			t.Errorf("the files of the claim: %v", err)
		}
		if err := as(t, h, "ci", "ticket/complete", map[string]any{"id": id, "token": claim.Token}, nil); err != nil {
			t.Fatal(err)
		}
		refused("bot", "ticket/files", map[string]any{"id": id, "files": files}, "has no claim")
		var inbox struct {
			Entries []struct{ Subject, Prompt string }
		}
		must(t, h, "inbox/list", map[string]any{"id": id}, &inbox)
		if len(inbox.Entries) != 1 || inbox.Entries[0].Subject != "Fix login" {
			t.Fatalf("the inbox has %+v", inbox)
		}
		return inbox.Entries[0].Prompt
	}

	must(t, h, "ticket/create", map[string]any{"id": "T-1", "title": "Fix login", "description": "It fails."}, nil)
	refused("bot", "ticket/update", map[string]any{"id": "T-1", "description": "trivial"}, "description: an agent cannot change the description of ticket T-1")
	if err := asAgent(t, h, "ticket/update", map[string]any{"id": "T-1", "title": "Fix login", "priority": 3}, nil); err != nil {
		t.Errorf("the same title and another priority: %v", err)
	}
	if prompt := work("T-1"); strings.Contains(prompt, "title") {
		t.Errorf("a person's ticket: %s", prompt)
	}

	// That of an agent becomes a person's with the words of one.
	for _, id := range []string{"T-2", "T-3"} {
		if err := asAgent(t, h, "ticket/create", map[string]any{"id": id, "title": "Typo"}, nil); err != nil {
			t.Fatal(err)
		}
		if err := as(t, h, "ci", "ticket/update", map[string]any{"id": id, "title": "Typo 2"}, nil); err != nil {
			t.Errorf("the title of an agent: %v", err)
		}
	}
	must(t, h, "ticket/update", map[string]any{"id": "T-2", "title": "Fix login"}, nil)
	if prompt := work("T-2"); strings.Contains(prompt, "title") {
		t.Errorf("with a person's title: %s", prompt)
	}
	must(t, h, "ticket/decide", map[string]any{"id": "T-3", "action": "hold"}, nil)
	var inbox struct{ Entries []struct{ Prompt string } }
	if must(t, h, "inbox/list", map[string]any{"id": "T-3"}, &inbox); len(inbox.Entries) != 1 || !strings.Contains(inbox.Entries[0].Prompt, "(title and description by agent:ci)") {
		t.Errorf("an agent's ticket: %+v", inbox)
	}
}
