package ticket_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/ticket"
)

// R2: "one decision function, one place, all callers": each way in which an attempt ends
// without a result stores retry_after, and the claim obeys it.
func TestR2OneDecision(t *testing.T) {
	for name, fail := range map[string]func(d *desk, token uint64){
		"a reported failure": func(d *desk, token uint64) { d.fail("a", ticket.Failure{Error: "operation timed out", Token: token}) },
		"an expired lease": func(d *desk, _ uint64) {
			d.now = d.now.Add(time.Hour)
			if id, _ := d.claim(ticket.Claim{}); id != "" {
				d.t.Errorf("claimed %s at the moment of the expiry", id)
			}
		},
		"a rejection": func(d *desk, token uint64) {
			d.must(func(ctx context.Context, tx ticket.Tx) error {
				_, err := d.s.Reject(ctx, tx, "a", token, "reviewer", ticket.Feedback{Items: []string{"no"}})
				return err
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			d.create("a", ticket.Fields{})
			_, token := d.claim(ticket.Claim{Lease: time.Minute})
			fail(d, token)
			v := d.get("a")
			if v.State != ticket.Ready || v.RetryCount != 1 || v.RetryAfter == nil || !v.RetryAfter.After(d.now) {
				t.Fatalf("%s, %d retries, again after %v", v.State, v.RetryCount, v.RetryAfter)
			}
			d.now = v.RetryAfter.Add(-time.Millisecond)
			if id, _ := d.claim(ticket.Claim{}); id != "" {
				t.Error("claimed before retry_after")
			}
			d.now = *v.RetryAfter
			if id, _ := d.claim(ticket.Claim{}); id != "a" {
				t.Error("not claimed after retry_after")
			}
		})
	}
}

// TestHeldAtEndsWithTheHold: a ticket that a person finishes after a hold is not held any more (X3), and
// the hold of a failure without a text says so.
func TestHeldAtEndsWithTheHold(t *testing.T) {
	d := open(t)
	d.create("a", ticket.Fields{})
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		_, err := d.s.RetryOrFail(ctx, tx, "a", ticket.Failure{})
		return err
	})
	v := d.get("a")
	want(t, "state", ticket.OnHold, v.State)
	want(t, "hold_reason", "Not retried, because the failure was reported without an error text", v.HoldReason)
	d.create("b", ticket.Fields{})
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		_, err := d.s.Complete(ctx, tx, "b", "user", ticket.Result{})
		return err
	})
	if v = d.get("b"); v.State != ticket.Blocked || v.HeldAt == nil {
		t.Fatalf("complete without criteria: %s, held_at %v", v.State, v.HeldAt)
	}
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		_, err := d.s.Update(ctx, tx, "b", "user", ticket.Fields{State: p("done")})
		return err
	})
	if v = d.get("b"); v.HeldAt != nil || v.HoldReason != "" || v.CompletedAt == nil {
		t.Errorf("done: held_at %v, hold_reason %q, completed_at %v", v.HeldAt, v.HoldReason, v.CompletedAt)
	}
}

// R9: "every row id was null and errors were lost silently": an entry of the log has its
// id, and is written with the change that it is about or not at all.
func TestR9LogIsWrittenWithItsChange(t *testing.T) {
	d := open(t)
	d.create("a", ticket.Fields{})
	d.claim(ticket.Claim{})
	log := func() (ids []string) {
		d.must(func(ctx context.Context, tx ticket.Tx) error {
			page, err := d.s.ListActivities(ctx, tx, "a", nil, 200, 0)
			for _, a := range page.Activities {
				ids = append(ids, a.ID)
			}
			return err
		})
		return ids
	}
	before := log()
	fault := errors.New("the disk is full")
	if err := d.do(func(ctx context.Context, tx ticket.Tx) error {
		if _, err := d.s.RetryOrFail(ctx, tx, "a", ticket.Failure{Error: "operation timed out"}); err != nil {
			return err
		}
		return fault
	}); !errors.Is(err, fault) {
		t.Errorf("the error is lost: %v", err)
	}
	want(t, "state", ticket.InProgress, d.get("a").State)
	want(t, "log", before, log())
	d.fail("a", ticket.Failure{Error: "operation timed out"})
	after := log()
	if len(after) <= len(before) {
		t.Fatalf("log %v", after)
	}
	for i, id := range after {
		if want := fmt.Sprintf("a/%08d", len(after)-i); id != want {
			t.Errorf("entry %q, want %q", id, want)
		}
	}
}

// imported imports a row with further columns.
func (d *desk) imported(id, columns string) ticket.View {
	d.t.Helper()
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		_, err := d.s.Import(ctx, tx, "user", true, json.RawMessage(`{"id":"`+id+`","title":"t",`+columns+`}`))
		return err
	})
	return d.get(id)
}

// X6: "state (S000/1) vs status (S003); complete vs done": "one field, both names on the
// API; complete = done".
func TestX6StateAndStatus(t *testing.T) {
	d := open(t)
	for columns, state := range map[string]ticket.State{
		`"state":"done"`: ticket.Done, `"status":"done"`: ticket.Done, `"status":"complete"`: ticket.Done, `"state":"complete"`: ticket.Done, `"state":"merged"`: ticket.Done, `"status":"on_hold"`: ticket.OnHold,
	} {
		v := d.imported(fmt.Sprint("t", len(d.list(ticket.Filter{}))), columns)
		if v.State != state || v.Status != state {
			t.Errorf("%s: state %s, status %s", columns, v.State, v.Status)
		}
	}
}

// X7: "canonical pending, running, passing, failing, blocked, sentinel_rejected,
// needs_review; map the rest on input".
func TestX7VerificationStatuses(t *testing.T) {
	d := open(t)
	for input, status := range map[string]string{
		"pending": ticket.Pending, "passing": ticket.Passing, "failing": ticket.Failing, "blocked": ticket.VerifyBlocked, "sentinel_rejected": ticket.SentinelRejected, "needs_review": ticket.ReviewNeeded,
		"passed": ticket.Passing, "verified": ticket.Passing, "unverified": ticket.Pending, "failed": ticket.Failing, "error": ticket.VerifyBlocked,
		"running": ticket.Pending, // no verification of the older tracker is in progress here
	} {
		want(t, input, status, d.imported(input, `"state":"ready","verification_status":"`+input+`"`).VerificationStatus)
	}
}

// X9: "the embedded store behind an interface, same field names, UTC ISO times". S000: "ADD
// COLUMN retry_count, retry_after, sentinel_feedback, hold_reason".
func TestX9TimesAndColumns(t *testing.T) {
	d := open(t)
	d.now = d.now.In(time.FixedZone("UTC+5", 5*60*60))
	d.create("a", ticket.Fields{})
	reject := func() {
		_, token := d.claim(ticket.Claim{})
		d.must(func(ctx context.Context, tx ticket.Tx) error {
			_, err := d.s.Reject(ctx, tx, "a", token, "reviewer", ticket.Feedback{Items: []string{"no tests"}})
			return err
		})
	}
	columns := func() map[string]any {
		text, err := json.Marshal(d.get("a"))
		if err != nil {
			t.Fatal(err)
		}
		var have map[string]any
		if err := json.Unmarshal(text, &have); err != nil {
			t.Fatal(err)
		}
		for name, value := range have {
			if !strings.HasSuffix(name, "_at") && name != "retry_after" {
				continue
			}
			if at, err := time.Parse(time.RFC3339, value.(string)); err != nil || at.Location() != time.UTC || !strings.HasSuffix(value.(string), "Z") {
				t.Errorf("%s: %v, want a time in UTC", name, value)
			}
		}
		return have
	}
	reject()
	have := columns()
	feedback, _ := have["sentinel_feedback"].(map[string]any)
	want(t, "feedback", []any{"no tests"}, feedback["feedback_for_agent"].([]any))
	want(t, "retry_count", 1.0, have["retry_count"].(float64))
	want(t, "retry_after", "2026-05-01T12:00:05Z", have["retry_after"].(string))
	for range 2 {
		d.now = d.now.Add(time.Hour)
		reject()
	}
	have = columns()
	want(t, "hold_reason", "Sentinel rejected after max retries", have["hold_reason"].(string))
	for _, name := range []string{"created_at", "updated_at", "held_at", "completed_at"} {
		if _, ok := have[name].(string); !ok {
			t.Errorf("no field %s", name)
		}
	}
}
