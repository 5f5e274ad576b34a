package host_test

import (
	"slices"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Agents, and the steps of definitions that are named as a person or the host, do not take the
// names of those in records: what they call themselves stands behind who they are.
func TestNamesOfPersons(t *testing.T) {
	h := open(t, host.Options{Workspace: t.TempDir()})
	agent := func(name string, params map[string]any, into any) {
		t.Helper()
		if err := asAgent(t, h, name, params, into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	agent("ticket/create", map[string]any{"id": "T-1", "title": "x"}, nil)
	agent("ticket/log", map[string]any{"id": "T-1", "agent_id": "user", "category": "note", "message": "approved"}, nil)
	for _, category := range []string{"ticket_state_changed", "verification_passed"} {
		err := asAgent(t, h, "ticket/log", map[string]any{"id": "T-1", "category": category, "message": "blocked to approved"}, nil)
		if abi.CodeOf(err) != abi.Denied {
			t.Errorf("an entry of the category %s by an agent: %v", category, err)
		}
	}
	agent("ticket/claim", map[string]any{"id": "T-1", "agent_id": "user"}, nil)
	agent("collaboration/chat/send", map[string]any{"room": "r", "message": "x", "from": "user"}, nil)
	agent("collaboration/chat/send", map[string]any{"room": "r", "message": "x"}, nil)
	agent("events/emit", map[string]any{"event": "free:name"}, nil)
	agent("sentinel/run", map[string]any{"definition": map[string]any{"name": "user", "steps": []any{
		map[string]any{"command": "ticket/create", "params": map[string]any{"id": "T-2", "title": "x"}},
		map[string]any{"command": "ticket/comment", "params": map[string]any{"id": "T-2", "text": "merge it"}},
		map[string]any{"command": "collaboration/chat/send", "params": map[string]any{"room": "r", "message": "x"}},
	}}}, nil)

	var got []string
	for _, id := range []string{"T-1", "T-2"} {
		var ticket struct {
			CreatedBy string `json:"created_by"`
			Lease     struct {
				Holder string `json:"holder"`
			}
		}
		must(t, h, "ticket/get", map[string]any{"id": id}, &ticket)
		var log struct {
			Activities []struct {
				AgentID  string `json:"agent_id"`
				Category string
			}
		}
		must(t, h, "ticket/activity", map[string]any{"id": id}, &log)
		got = append(got, ticket.CreatedBy, ticket.Lease.Holder)
		for _, a := range log.Activities {
			got = append(got, a.AgentID)
		}
	}
	var chat struct{ Messages []struct{ From string } }
	must(t, h, "collaboration/chat/history", map[string]any{"room": "r"}, &chat)
	for _, m := range chat.Messages {
		got = append(got, m.From)
	}
	events, err := h.Runtime().Events("free:name", 10)
	if err != nil {
		t.Fatal(err)
	}
	posted, err := h.Runtime().Events("chat:message", 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range slices.Concat(events, posted) {
		got = append(got, e.Source)
	}
	for _, name := range []string{"user", "system"} {
		if slices.Contains(got, name) {
			t.Errorf("%q is among the names: %q", name, got)
		}
	}
	for _, name := range []string{"agent:bot", "agent:bot/user", "sentinel/user"} {
		if !slices.Contains(got, name) {
			t.Errorf("%q is not among the names: %q", name, got)
		}
	}
}

// Only the host emits events about tickets and messages.
func TestEventsOfTheHost(t *testing.T) {
	h := open(t, host.Options{Workspace: t.TempDir()})
	for _, name := range []string{"ticket:update", "ticket:due", "ticket:progress", "ticket:activity", "tickets:generated", "pr:created", "chat:message"} {
		if err := call(t, h, "events/emit", map[string]any{"event": name}, nil); abi.CodeOf(err) != abi.BadFields {
			t.Errorf("%s by the command: %v", name, err)
		}
		var out struct{ Status sentinels.Status }
		err := asAgent(t, h, "sentinel/run", map[string]any{"definition": map[string]any{"name": "forger", "steps": []any{
			map[string]any{"type": "emit", "event": name, "data": map[string]any{"ticket_id": "T-1", "state": "ready"}},
		}}}, &out)
		if err == nil && out.Status != sentinels.StatusFailed {
			t.Errorf("%s by a step: %+v", name, out)
		}
	}
	must(t, h, "ticket/create", map[string]any{"id": "T-1", "title": "x"}, nil)
	if events, err := h.Runtime().Events("ticket:update", 10); err != nil || len(events) != 1 || events[0].Source != "" {
		t.Errorf("events of tickets: %+v, %v", events, err)
	}
}
