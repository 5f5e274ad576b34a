package host_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
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
