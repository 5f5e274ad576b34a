package host_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// asAgent calls a command with the token of an agent.
func asAgent(t *testing.T, h *host.Host, name string, params map[string]any, into any) error {
	t.Helper()
	text, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	out, err := h.CallAs(t.Context(), &command.Call{Command: name, Params: text, By: command.ByAgent, As: "bot"})
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
