package ticket_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/runtime/retry"
)

// TestSpecAcceptanceS001 has the acceptance criteria of S001, with its own numbers in the
// profile coarse and with those of S000 in the profile fine. Criterion 1, the columns, is
// TestTicketColumns; 7, the WebSocket, is TestSpecRooms of host/serve.
func TestSpecAcceptanceS001(t *testing.T) {
	for _, c := range []struct {
		profile, criterion, message string
		delays                      []time.Duration
	}{
		{"coarse", "2: transient errors are retried 3 times with exponential backoff", "ETIMEDOUT: connection timed out", []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}},
		{"coarse", "3: API errors are retried 2 times with linear backoff", "HTTP 500 internal server error", []time.Duration{2 * time.Second, 4 * time.Second}},
		{"coarse", "4: code errors are retried once, then on hold", "SyntaxError: Unexpected token", []time.Duration{0}},
		{"fine", "2: timeouts are retried 5 times with exponential backoff", "operation timed out", []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second}},
		{"fine", "3: API errors are retried 7 times", "HTTP 500 internal server error", []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, 64 * time.Second}},
		{"fine", "4: syntax errors are not retried", "SyntaxError: Unexpected token", nil},
	} {
		t.Run(c.profile+"/"+c.criterion, func(t *testing.T) {
			d := open(t, func(o *ticket.Options) { o.Profile, _ = retry.ProfileNamed(c.profile) })
			d.create("a", ticket.Fields{})
			for n, delay := range c.delays {
				if id, _ := d.claim(ticket.Claim{}); id != "a" {
					t.Fatalf("attempt %d cannot be claimed", n+1)
				}
				out := d.fail("a", ticket.Failure{Error: c.message})
				if !out.Retried || out.RetryAfter == nil || out.RetryAfter.Sub(d.now) != delay {
					t.Fatalf("attempt %d: %+v, want a delay of %s", n+1, out, delay)
				}
				v := d.get("a")
				want(t, "state", ticket.Ready, v.State)
				want(t, "assignee_type (R1)", "agent", v.AssigneeType)
				want(t, "retry_count", n+1, v.RetryCount)
				if delay > 0 { // 5: not before retry_after; and R4: it is in the list meanwhile
					d.now = d.now.Add(delay - time.Millisecond)
					if id, _ := d.claim(ticket.Claim{}); id != "" {
						t.Errorf("attempt %d was claimed before retry_after", n+2)
					}
					want(t, "list", []string{"a"}, d.list(ticket.Filter{}))
				}
				d.now = d.now.Add(time.Millisecond)
			}
			// 9: what is exhausted is on hold, not cancelled.
			if id, _ := d.claim(ticket.Claim{}); id != "a" {
				t.Fatal("the last attempt cannot be claimed")
			}
			out := d.fail("a", ticket.Failure{Error: c.message})
			v := d.get("a")
			if out.Retried || !out.OnHold || v.State != ticket.OnHold || v.CompletedAt == nil || v.HoldCode != ticket.MaxRetries {
				t.Errorf("after the last retry: %+v %s %s", out, v.State, v.HoldCode)
			}
			reason := fmt.Sprintf("Max retries exceeded for %s error (%d attempts)", out.Strategy.ErrorCategory, out.Strategy.MaxRetries)
			if len(c.delays) == 0 {
				reason = fmt.Sprintf("Not retried, because %s errors are not: %s", out.Strategy.ErrorCategory, c.message)
			}
			want(t, "hold_reason (X2)", reason, v.HoldReason)
			// 6: the log has each decision.
			d.must(func(ctx context.Context, tx ticket.Tx) error {
				page, err := d.s.ListActivities(ctx, tx, "a", []string{"ticket_retry_scheduled", "ticket_on_hold"}, 50, 0)
				if err != nil {
					return err
				}
				want(t, "decisions", len(c.delays)+1, len(page.Activities))
				for i, a := range page.Activities {
					var m struct {
						ErrorCategory string
						MaxRetries    int
						RetryAfter    string
						DelayMs       *int64
						Reason        string
						TotalAttempts int
					}
					if err := json.Unmarshal(a.Metadata, &m); err != nil {
						return err
					}
					if i == 0 { // the newest
						if m.Reason != "max_retries_exceeded" || m.ErrorCategory == "" || m.TotalAttempts != len(c.delays)+1 {
							t.Errorf("on hold: %+v", m)
						}
					} else if m.ErrorCategory == "" || m.RetryAfter == "" || m.DelayMs == nil {
						t.Errorf("retry: %+v", m)
					}
				}
				return nil
			})
		})
	}
}

// TestTicketColumns: the columns that the documents add are fields of a new ticket or
// appear when they have a value.
func TestTicketColumns(t *testing.T) {
	d := open(t)
	d.create("a", ticket.Fields{})
	d.claim(ticket.Claim{ID: "a", VM: "vm-1"})
	d.fail("a", ticket.Failure{Error: "operation timed out"})
	text, err := json.Marshal(d.get("a"))
	if err != nil {
		t.Fatal(err)
	}
	var have map[string]any
	if err := json.Unmarshal(text, &have); err != nil {
		t.Fatal(err)
	}
	for _, column := range []string{"retry_count", "retry_after", "retry_strategy", "state", "status", "assignee_type", "error", "rejection_count", "verification_status", "verification_log", "impact_flags", "updated_at"} {
		if _, ok := have[column]; !ok {
			t.Errorf("no field %s", column)
		}
	}
	for _, field := range []string{"errorCategory", "errorSubcategory", "confidence", "maxRetries", "backoffType", "nextDelayMs", "attemptsRemaining"} {
		if _, ok := have["retry_strategy"].(map[string]any)[field]; !ok {
			t.Errorf("no field retry_strategy.%s", field)
		}
	}
	want(t, "verification_status", "pending", have["verification_status"].(string))
}
