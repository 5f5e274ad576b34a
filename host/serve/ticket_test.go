package serve_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestTicketsOverHTTP: "Replace the execution engine's direct failTicket() with intelligent
// retry logic": a ticket that failed with a timeout waits, is listed with the seconds that
// are left, wakes a sentinel when it is due, and is claimed again. All of it is there after
// a restart.
func TestTicketsOverHTTP(t *testing.T) {
	project := t.TempDir()
	write(t, filepath.Join(project, ".sentinel", "sentinels", "wake.json"),
		`{"name": "wake", "trigger": {"type": "event", "event": "ticket:due"}, "steps": [{"command": "ticket/claim", "params": {"agent_id": "waker"}, "outputTo": "got"},
		  {"command": "ticket/release", "params": {"id": "$got.ticket.id", "token": "$got.token", "reason": "seen"}}]}`)
	l := begin(t, project)
	type ticket struct {
		ID             string `json:"id"`
		State          string `json:"state"`
		Status         string `json:"status"`
		AssigneeType   string `json:"assignee_type"`
		RepoURL        string `json:"repo_url"`
		RetryCount     int    `json:"retry_count"`
		RetryInSeconds *int   `json:"retryInSeconds"`
		Lease          *struct {
			Token  uint64 `json:"token"`
			Holder string `json:"holder"`
		} `json:"lease"`
	}
	var created ticket
	body := map[string]any{"title": "Test retry logic", "description": "This should fail and retry"}
	if status := l.ask("POST", "/api/tickets", body, &created); status != 201 || created.State != "ready" || created.AssigneeType != "agent" || created.RepoURL != project {
		t.Fatalf("status %d, %+v", status, created)
	}
	at := "/tickets/" + created.ID
	var claimed ticket
	if status := l.ask("POST", "/tickets/claim", map[string]any{"agent_id": "w1"}, &claimed); status != 200 || claimed.Lease == nil || claimed.Status != "in_progress" {
		t.Fatalf("claim: status %d, %+v", status, claimed)
	}
	var none *ticket
	if status := l.ask("POST", "/tickets/claim", map[string]any{"agent_id": "w2"}, &none); status != 200 || none != nil {
		t.Errorf("a second claim: status %d, %+v", status, none)
	}

	// The claim holds over a restart.
	l.end()
	l = begin(t, project)
	var outcome struct {
		Retried    bool
		RetryAfter string
		Strategy   struct{ ErrorCategory string }
	}
	report := map[string]any{"error": "operation timed out", "token": claimed.Lease.Token}
	if status := l.ask("POST", at+"/fail", report, &outcome); status != 200 || !outcome.Retried || outcome.Strategy.ErrorCategory != "timeout" || outcome.RetryAfter == "" {
		t.Fatalf("fail: status %d, %+v", status, outcome)
	}
	var problem struct{ Detail, Hint string }
	if status := l.ask("POST", at+"/fail", report, &problem); status != 409 || !strings.Contains(problem.Detail, "claim 1 has ended") {
		t.Errorf("a second report: status %d, %+v", status, problem)
	}
	var list struct{ Tickets []ticket }
	if status := l.ask("GET", "/tickets?status=ready", nil, &list); status != 200 || len(list.Tickets) != 1 || list.Tickets[0].RetryInSeconds == nil || list.Tickets[0].RetryCount != 1 {
		t.Errorf("while it waits: status %d, %+v", status, list)
	}
	var log struct {
		Activities []struct {
			Category string
			Metadata map[string]any
		}
		Total int
	}
	l.until("the sentinel to claim and release it", func() bool {
		l.ask("GET", at+"/activity?category=ticket_claimed,ticket_retry_scheduled", nil, &log)
		return len(log.Activities) == 3 && log.Activities[0].Metadata["attempt"] == 2.0
	})
	if again := log.Activities[1]; again.Category != "ticket_retry_scheduled" || again.Metadata["errorCategory"] != "timeout" || again.Metadata["delayMs"] != 2000.0 {
		t.Errorf("activity %+v", again)
	}
	if status := l.ask("POST", "/v1/commands/data/update", map[string]any{"collection": "tickets", "id": created.ID, "data": map[string]any{"state": "done"}}, &problem); status/100 != 4 || !strings.Contains(problem.Hint, "ticket/*") {
		t.Errorf("data/update of a ticket: status %d, %+v", status, problem)
	}
}
