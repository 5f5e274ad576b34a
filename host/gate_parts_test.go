package host_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// onlyPersons expects that a call of an agent is refused because it concerns a gate of persons.
func onlyPersons(t *testing.T, h *host.Host, name string, params map[string]any) {
	t.Helper()
	if err := callBy(t, h, command.ByAgent, name, params); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "only a person pauses") {
		t.Errorf("%s %v by an agent: %v", name, params, err)
	}
}

// define stores a definition of a person.
func define(t *testing.T, h *host.Host, id, rest string) {
	t.Helper()
	def := json.RawMessage(`{"id": "` + id + `", "name": "` + id + `", ` + rest + `}`)
	if err := callBy(t, h, command.ByUser, "sentinel/create", map[string]any{"definition": def}); err != nil {
		t.Fatal(err)
	}
}

// TestPartsOfGatesStay: an agent changes no sentinel that a reviewer starts, at any depth, since the verdict may be made
// there; nor one that claims or sends for a sentinel with triggers. It makes none that is missing.
func TestPartsOfGatesStay(t *testing.T) {
	h := open(t, host.Options{})
	verdict := `"steps": [{"type": "set", "values": {"ok": false}}]`
	define(t, h, "deep", verdict)
	define(t, h, "weigh", verdict)
	define(t, h, "other", verdict)
	define(t, h, "judge", `"steps": [{"type": "sentinel", "definition": {"name": "inner", "steps": [{"type": "sentinel", "definition": {"$ref": "deep"}}]}}]`)
	define(t, h, "rev", `"trigger": {"type": "event", "event": "never"}, "steps": [
		{"type": "command", "command": "ticket/claim", "params": {"role": "reviewer"}},
		{"type": "sentinel", "definition": {"$ref": "judge"}}, {"type": "sentinel", "definition": {"$ref": "missing"}},
		{"type": "command", "command": "sentinel/run", "params": {"sentinelId": "weigh"}}]`)
	define(t, h, "send", `"steps": [{"type": "command", "command": "notify/send", "params": {"title": "x", "text": "y"}}]`)
	define(t, h, "tell", `"trigger": {"type": "event", "event": "never"}, "steps": [{"type": "sentinel", "definition": {"$ref": "send"}}]`)

	changed := func(id string) map[string]any {
		return map[string]any{"sentinelId": id, "definition": json.RawMessage(`{"name": "` + id + `", "steps": [{"type": "set", "values": {"ok": true}}]}`)}
	}
	for _, id := range []string{"rev", "judge", "deep", "weigh", "tell", "send"} {
		onlyPersons(t, h, "sentinel/update", changed(id))
		onlyPersons(t, h, "sentinel/delete", map[string]any{"sentinelId": id})
	}
	missing := map[string]any{"definition": json.RawMessage(`{"id": "missing", "name": "missing", ` + verdict + `}`)}
	onlyPersons(t, h, "sentinel/create", missing)
	if err := callBy(t, h, command.ByAgent, "sentinel/update", changed("other")); err != nil {
		t.Errorf("a sentinel that is part of no gate: %v", err)
	}
	must(t, h, "sentinel/delete", `{"sentinelId": "rev"}`, nil)
	if err := callBy(t, h, command.ByAgent, "sentinel/update", changed("deep")); err != nil {
		t.Errorf("a part of a gate that was deleted: %v", err)
	}
}

// TestReviewsWhereAChildClaims: a sentinel whose child claims the work is a reviewer, too.
func TestReviewsWhereAChildClaims(t *testing.T) {
	h := open(t, host.Options{Set: map[string]string{"tickets.unverified": "true"}})
	if err := h.Runtime().Arm(t.Context()); err != nil {
		t.Fatal(err)
	}
	define(t, h, "claims", `"steps": [{"type": "command", "command": "ticket/claim", "params": {"role": "reviewer"}}]`)
	define(t, h, "rev", `"trigger": {"type": "event", "event": "never"}, "steps": [{"type": "sentinel", "definition": {"$ref": "claims"}}]`)
	must(t, h, "ticket/create", `{"title": "a", "description": "b"}`, nil)
	var claim struct{ Token uint64 }
	must(t, h, "ticket/claim", `{"id": "T-1"}`, &claim)
	var done struct{ Ticket struct{ State string } }
	if must(t, h, "ticket/complete", map[string]any{"id": "T-1", "token": claim.Token}, &done); done.Ticket.State != "in_review" {
		t.Errorf("finished work is %s", done.Ticket.State)
	}
}

// TestRunsOfGatesGoOn: an agent neither pauses, stops nor edits an active run of a gate, one below it, or one above it.
// It stops the run that it has started itself, and does not pause it, since firings would wait behind it.
func TestRunsOfGatesGoOn(t *testing.T) {
	h := open(t, host.Options{})
	define(t, h, "tell", `"trigger": {"type": "event", "event": "never"}, "steps": [
		{"type": "sentinel", "definition": {"name": "first", "steps": [{"type": "wait", "durationMs": 3600000}]}},
		{"type": "command", "command": "notify/send", "params": {"title": "x", "text": "y"}}]`)
	define(t, h, "top", `"steps": [{"type": "sentinel", "definition": {"$ref": "tell"}}]`)
	active := func() []runtime.RunInfo {
		t.Helper()
		runs, err := h.Runtime().Runs(runtime.RunFilter{Statuses: runtime.Unfinished()})
		if err != nil {
			t.Fatal(err)
		}
		return runs
	}
	start := func(by command.By, id string, runs int) {
		t.Helper()
		if err := callBy(t, h, by, "sentinel/start", map[string]any{"sentinelId": id}); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(time.Minute); len(active()) < runs; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d active runs, want %d", len(active()), runs)
			}
		}
	}
	root := func() sentinels.RunID {
		t.Helper()
		list := active()
		i := slices.IndexFunc(list, func(r runtime.RunInfo) bool { return r.Parent == "" })
		if i < 0 {
			t.Fatal("no run is active")
		}
		return list[i].ID
	}

	start(command.ByUser, "top", 3)
	for _, r := range active() {
		onlyPersons(t, h, "sentinel/pause", map[string]any{"run": r.ID})
		onlyPersons(t, h, "sentinel/stop", map[string]any{"run": r.ID})
		if r.Sentinel != "top" { // which is not a gate itself
			onlyPersons(t, h, "sentinel/step/remove", map[string]any{"sentinelId": r.ID, "index": 0})
		}
	}
	onlyPersons(t, h, "sentinel/pause", map[string]any{"sentinelId": "tell"})
	must(t, h, "sentinel/pause", map[string]any{"run": root()}, nil)
	must(t, h, "sentinel/stop", map[string]any{"run": root()}, nil)

	start(command.ByAgent, "tell", 2)
	onlyPersons(t, h, "sentinel/pause", map[string]any{"run": root()})
	if err := callBy(t, h, command.ByAgent, "sentinel/stop", map[string]any{"run": root()}); err != nil {
		t.Errorf("stop by the agent that started it: %v", err)
	}
}

// TestAgentsAnswerNotInAdvance: what happens to calls in doubt of a run, a person says, also when it starts.
func TestAgentsAnswerNotInAdvance(t *testing.T) {
	h := open(t, host.Options{})
	define(t, h, "doubt", `"steps": [{"type": "set", "values": {"a": 1}}]`)
	own := json.RawMessage(`{"name": "own", "steps": [{"type": "sentinel", "definition": {"$ref": "doubt"}}]}`)
	for _, name := range []string{"sentinel/start", "sentinel/run"} {
		for _, params := range []map[string]any{{"sentinelId": "doubt"}, {"definition": own}} {
			for answer, denied := range map[string]bool{"retry": true, "fail": true, "ask": false} {
				params["onInterrupt"] = answer
				err := callBy(t, h, command.ByAgent, name, params)
				if abi.CodeOf(err) == abi.Denied != denied || !denied && err != nil {
					t.Errorf("%s %v by an agent: %v", name, params, err)
				}
				if err := callBy(t, h, command.ByUser, name, params); err != nil {
					t.Errorf("%s %v by a person: %v", name, params, err)
				}
			}
		}
	}
}

// TestAgentsPushNoBranchOfATicket: code/git of an agent would publish a commit of a ticket that was not verified. It
// pushes other branches, and a person all.
func TestAgentsPushNoBranchOfATicket(t *testing.T) {
	ws, git := project(t)
	remote := t.TempDir()
	git("init", "-q", "--bare", remote)
	git("remote", "add", "origin", remote)
	h := open(t, host.Options{Workspace: ws})
	must(t, h, "ticket/create", `{"title": "a", "branch_name": "work/taken"}`, nil)
	git("branch", "local")
	git("config", "branch.local.remote", "origin")
	git("config", "branch.local.merge", "refs/heads/work/taken")
	for branch, denied := range map[string]bool{"sentinel/T-1": true, "work/taken": true, "local": true, "work/free": false} {
		if branch != "local" {
			git("branch", branch)
		}
		push := map[string]any{"operation": "push", "branch": branch}
		err := callBy(t, h, command.ByAgent, "code/git", push)
		if (abi.CodeOf(err) == abi.Denied) != denied || !denied && err != nil || denied && !strings.Contains(abi.As(err).Hint, "ticket/complete") {
			t.Errorf("push of %s by an agent: %v", branch, err)
		}
		if err := callBy(t, h, command.ByUser, "code/git", push); err != nil {
			t.Errorf("push of %s by a person: %v", branch, err)
		}
	}
}

// TestGatesFollowChanges: what is kept of definitions is that of their newest revisions.
func TestGatesFollowChanges(t *testing.T) {
	h := open(t, host.Options{})
	define(t, h, "judge", `"steps": [{"type": "set", "values": {"ok": false}}]`)
	update := func(by command.By, id, rest string) error {
		return callBy(t, h, by, "sentinel/update", map[string]any{"sentinelId": id, "definition": json.RawMessage(`{"id": "` + id + `", "name": "` + id + `", ` + rest + `}`)})
	}
	const claims = `"trigger": {"type": "event", "event": "never"}, "steps": [{"type": "command", "command": "ticket/claim", "params": {"role": "reviewer"}}`
	define(t, h, "rev", claims+`]`)
	for i, c := range []struct {
		rev  string
		gate bool
	}{{claims + `]`, false}, {claims + `, {"type": "sentinel", "definition": {"$ref": "judge"}}]`, true}, {claims + `]`, false}} {
		if err := update(command.ByUser, "rev", c.rev); err != nil {
			t.Fatal(err)
		}
		err := update(command.ByAgent, "judge", `"steps": [{"type": "set", "values": {"ok": `+string(rune('0'+i))+`}}]`)
		if (abi.CodeOf(err) == abi.Denied) != c.gate || !c.gate && err != nil {
			t.Errorf("change %d: %v", i, err)
		}
	}
}
