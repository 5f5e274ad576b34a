package ticket_test

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// gates sets which gates are on: of "review", "approval" and "deploy".
func gates(on ...string) func(*ticket.Options) {
	return func(o *ticket.Options) {
		o.AllowUnverified, o.ReviewDelay = true, -1
		o.Review = func() bool { return slices.Contains(on, "review") }
		o.Approval, o.Deploy = slices.Contains(on, "approval"), slices.Contains(on, "deploy")
	}
}

// complete reports the work of the newest claim as finished. The branch is where it was verified.
func (d *desk) complete(id string, r ticket.Result) (ticket.View, error) {
	var v ticket.View
	r.Tip = cmp.Or(r.Tip, d.get(id).VerifiedCommit)
	err := d.do(func(ctx context.Context, tx ticket.Tx) (err error) {
		v, err = d.s.Complete(ctx, tx, id, "a1", r)
		return err
	})
	return v, err
}

// decide answers as a person.
func (d *desk) decide(id, action string) (v ticket.View) {
	d.t.Helper()
	d.must(func(ctx context.Context, tx ticket.Tx) (err error) {
		v, err = d.s.Decide(ctx, tx, id, ticket.Decision{Action: action, By: "ann"})
		return err
	})
	return v
}

// finish has each role in turn claim the ticket and complete it without a state, and a
// person accept it where it waits for one. It returns the states on the way.
func (d *desk) finish(id string) (states []string) {
	d.t.Helper()
	for range 10 {
		v := d.get(id)
		var err error
		switch v.State {
		case ticket.Ready, ticket.InReview, ticket.Approved:
			role := map[ticket.State]ticket.Role{ticket.Ready: ticket.Worker, ticket.InReview: ticket.Reviewer, ticket.Approved: ticket.Deployer}[v.State]
			_, token := d.claim(ticket.Claim{ID: id, Role: role})
			v, err = d.complete(id, ticket.Result{Token: token})
		case ticket.Blocked:
			v = d.decide(id, "accept")
		default:
			return states
		}
		if err != nil {
			d.t.Fatal(err)
		}
		state := string(v.State)
		if v.HoldCode != "" {
			state += " " + v.HoldCode
		}
		states = append(states, state)
	}
	d.t.Fatalf("the gates do not end: %v", states)
	return nil
}

// Gates: "verify, PR, review, approval, done. Review is on when a model is configured,
// approval off by default; with neither, complete follows the PR as S003 says". X22: "Order
// of gates is never stated in one place: generate, verify loop (S003), PR, reviewer (S000),
// approval, done".
func TestSpecGatesX22Order(t *testing.T) {
	const person = "blocked " + ticket.WorkApproval
	for _, c := range []struct {
		on   []string
		want []string
	}{
		{nil, []string{"done"}},
		{[]string{"review"}, []string{"in_review", "done"}},
		{[]string{"approval"}, []string{person, "done"}},
		{[]string{"deploy"}, []string{"approved", "done"}},
		{[]string{"review", "approval"}, []string{"in_review", person, "done"}},
		{[]string{"review", "deploy"}, []string{"in_review", "approved", "done"}},
		{[]string{"approval", "deploy"}, []string{person, "approved", "done"}},
		{[]string{"review", "approval", "deploy"}, []string{"in_review", person, "approved", "done"}},
	} {
		d := open(t, gates(c.on...))
		d.create("a", ticket.Fields{})
		want(t, strings.Join(c.on, ", "), c.want, d.finish("a"))
	}
}

// A state that an agent names never passes over a gate that is on; one before it is taken.
func TestSpecGatesOnlyAPersonPassesOver(t *testing.T) {
	for _, c := range []struct {
		on     string
		state  string
		person bool
		want   ticket.State
	}{
		{"", "in_review", false, ticket.InReview},
		{"", "approved", false, ticket.Approved},
		{"", "done", false, ticket.Done},
		{"review", "done", false, ticket.InReview},
		{"review", "approved", false, ticket.InReview},
		{"review", "done", true, ticket.Done},
		{"approval", "done", false, ticket.Blocked},
		{"approval", "approved", false, ticket.Blocked},
		{"approval", "in_review", false, ticket.InReview},
		{"approval", "approved", true, ticket.Approved},
	} {
		d := open(t, gates(c.on))
		d.create("a", ticket.Fields{})
		_, token := d.claim(ticket.Claim{})
		v, err := d.complete("a", ticket.Result{Token: token, Next: c.state, Person: c.person})
		if err != nil || v.State != c.want {
			t.Errorf("%q, state %s, person %v: %s, %v; want %s", c.on, c.state, c.person, v.State, err, c.want)
		}
	}
}

// TestAgentKeepsWhatAPersonReads: while a person decides about a ticket, no agent changes what the person reads of it.
// The refusal names the field. Other fields change, a person changes all of them, and the log names those that changed.
func TestAgentKeepsWhatAPersonReads(t *testing.T) {
	d := open(t, gates("approval"))
	d.create("b", ticket.Fields{})
	d.create("a", ticket.Fields{Description: p("what to do"), BranchName: p("work")})
	update := func(f ticket.Fields) error {
		return d.do(func(ctx context.Context, tx ticket.Tx) error {
			_, err := d.s.Update(ctx, tx, "a", "agent:ci", f)
			return err
		})
	}
	if err := update(ticket.Fields{Title: p("before"), Description: p("before the work")}); err != nil {
		t.Errorf("before the decision: %v", err)
	}
	_, token := d.claim(ticket.Claim{ID: "a"})
	if v, err := d.complete("a", ticket.Result{Token: token}); err != nil || v.State != ticket.Blocked {
		t.Fatalf("%+v, %v", v, err)
	}
	for field, f := range map[string]ticket.Fields{
		"title": {Title: p("only a typo")}, "description": {Description: p("")},
		"assignee_type": {AssigneeType: p("human")}, "depends_on": {DependsOn: &[]string{"b"}},
		"labels": {Labels: &[]string{"trivial"}}, "parent_id": {ParentID: p("b")},
	} {
		err := update(f)
		if abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), field+": an agent cannot change") {
			t.Errorf("%s by an agent: %v", field, err)
		}
	}
	if err := update(ticket.Fields{Title: p("before"), Priority: p(3)}); err != nil {
		t.Errorf("the same title and another priority: %v", err)
	}
	if err := update(ticket.Fields{Title: p("after"), Description: p("x"), Person: true}); err != nil {
		t.Errorf("by a person: %v", err)
	}
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		page, err := d.s.ListActivities(ctx, tx, "a", []string{"ticket_updated"}, 10, 0)
		var got []string
		for _, a := range page.Activities {
			got = append(got, a.Message)
		}
		slices.Sort(got)
		if want := []string{"priority", "title, description", "title, description"}; !slices.Equal(got, want) {
			t.Errorf("the log has %q, want %q", got, want)
		}
		return err
	})
}

// What waits for an approval changes by the decision of a person alone.
func TestSpecGatesApproval(t *testing.T) {
	d := open(t, gates("approval"))
	d.create("a", ticket.Fields{BranchName: p("work")})
	_, token := d.claim(ticket.Claim{})
	v, err := d.complete("a", ticket.Result{Token: token})
	if err != nil || v.HoldReason == "" || v.Lease != nil {
		t.Fatalf("%+v, %v", v, err)
	}
	for name, try := range map[string]func(ctx context.Context, tx ticket.Tx) error{
		"complete": func(ctx context.Context, tx ticket.Tx) error {
			_, err := d.s.Complete(ctx, tx, "a", "a1", ticket.Result{Next: "done"})
			return err
		},
		"fail": func(ctx context.Context, tx ticket.Tx) error {
			_, err := d.s.RetryOrFail(ctx, tx, "a", ticket.Failure{Error: "x"})
			return err
		},
		"escalate": func(ctx context.Context, tx ticket.Tx) error {
			_, err := d.s.Escalate(ctx, tx, "a", "a1", ticket.Escalation{})
			return err
		},
		"reject": func(ctx context.Context, tx ticket.Tx) error {
			_, err := d.s.Reject(ctx, tx, "a", 0, "a1", ticket.Feedback{})
			return err
		},
		"another branch": func(ctx context.Context, tx ticket.Tx) error {
			_, err := d.s.Update(ctx, tx, "a", "a1", ticket.Fields{BranchName: p("other")})
			return err
		},
		"other criteria": func(ctx context.Context, tx ticket.Tx) error {
			_, err := d.s.Update(ctx, tx, "a", "a1", ticket.Fields{AcceptanceCriteria: &ticket.Criteria{}})
			return err
		},
		"dependencies": func(ctx context.Context, tx ticket.Tx) error {
			_, err := d.s.Depend(ctx, tx, "a", "a1", false, []string{"b"}, nil)
			return err
		},
	} {
		if code := abi.CodeOf(d.do(try)); code != abi.Conflict && code != abi.Denied {
			t.Errorf("%s: %v", name, code)
		}
	}
	if v := d.get("a"); v.State != ticket.Blocked || v.HoldCode != ticket.WorkApproval {
		t.Fatalf("%s %s", v.State, v.HoldCode)
	}
	want(t, "choices", []string{"release", "accept", "reject", "hold"}, p(d.get("a")).Choices())
	// Sent back with a comment, the work is done again and approved again.
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		v, err := d.s.Decide(ctx, tx, "a", ticket.Decision{Action: "release", Comment: "shorter", By: "ann"})
		want(t, "feedback", []string{"shorter"}, v.SentinelFeedback.Items)
		return err
	})
	want(t, "states", []string{"blocked " + ticket.WorkApproval, "done"}, d.finish("a"))
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		page, err := d.s.ListActivities(ctx, tx, "a", nil, 1, 0)
		if len(page.Activities) != 1 || page.Activities[0].AgentID != "ann" || page.Activities[0].Message != "blocked to done" {
			t.Errorf("log %+v", page.Activities)
		}
		return err
	})
}

// X21: "three gates by time: before PR (S003), review of the PR (S000), after human approval
// (S001)": "verification failure after approval never retries (cancelled)".
func TestSpecGatesX21AfterApproval(t *testing.T) {
	for name, fail := range map[string]func(d *desk, token uint64) error{
		"fail": func(d *desk, token uint64) error {
			out := d.fail("a", ticket.Failure{Error: "503 service unavailable", Token: token, RawReply: "raw"})
			if out.Retried || out.OnHold || out.Reason != ticket.AfterApproval || out.Ticket.State != ticket.Cancelled {
				d.t.Errorf("outcome %+v", out)
			}
			return nil
		},
		"verification": func(d *desk, _ uint64) error {
			return d.do(func(ctx context.Context, tx ticket.Tx) error { return d.verdict(ctx, tx, "a", ticket.Failing) })
		},
		"rejection": func(d *desk, token uint64) error {
			return d.do(func(ctx context.Context, tx ticket.Tx) error {
				out, err := d.s.Reject(ctx, tx, "a", token, "a1", ticket.Feedback{Summary: "broken"})
				if out.Retried || out.OnHold || out.Reason != ticket.AfterApproval {
					d.t.Errorf("outcome %+v", out)
				}
				return err
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t, gates("approval", "deploy"))
			d.create("a", ticket.Fields{})
			_, token := d.claim(ticket.Claim{})
			if _, err := d.complete("a", ticket.Result{Token: token}); err != nil {
				t.Fatal(err)
			}
			want(t, "approved", ticket.Approved, d.decide("a", "accept").State)
			_, token = d.claim(ticket.Claim{Role: ticket.Deployer})
			if err := fail(d, token); err != nil {
				t.Fatal(err)
			}
			v := d.get("a")
			if v.State != ticket.Cancelled || v.RetryAfter != nil || v.Lease != nil || v.Error == "" || v.RetryCount != 0 {
				t.Errorf("%s, retry %v, %q", v.State, v.RetryAfter, v.Error)
			}
			if id, _ := d.claim(ticket.Claim{}); id != "" {
				t.Error("it can be claimed")
			}
			d.must(func(ctx context.Context, tx ticket.Tx) error {
				page, err := d.s.ListAttempts(ctx, tx, "a", 0, 0)
				want(t, "outcome", string(ticket.Cancelled), page.Attempts[len(page.Attempts)-1].Outcome)
				return err
			})
		})
	}
	// Before the approval the same failure is retried. A deployer whose claim expired has not
	// reported a failure (R12).
	d := open(t, gates("approval", "deploy"))
	d.create("a", ticket.Fields{})
	_, token := d.claim(ticket.Claim{})
	if out := d.fail("a", ticket.Failure{Error: "503 service unavailable", Token: token}); !out.Retried {
		t.Errorf("before the approval: %+v", out)
	}
	d.now = d.now.Add(time.Minute)
	_, token = d.claim(ticket.Claim{})
	if _, err := d.complete("a", ticket.Result{Token: token}); err != nil {
		t.Fatal(err)
	}
	d.decide("a", "accept")
	d.claim(ticket.Claim{Role: ticket.Deployer, Lease: time.Second})
	d.now = d.now.Add(time.Minute)
	d.claim(ticket.Claim{Role: ticket.Deployer})
	if v := d.get("a"); v.State != ticket.Approved {
		t.Errorf("after an expired claim: %s", v.State)
	}
}

// X5: "Reviewer retries 2 (S000) vs verify attempts 3 (S003): same total of 3 runs; separate
// gates and counters: verify exhaustion = blocked, review exhaustion = on_hold; both reach the
// human queue".
func TestSpecGatesX5SeparateCounters(t *testing.T) {
	d := open(t, gates("review"))
	d.create("a", ticket.Fields{})
	d.create("b", ticket.Fields{})
	runs := 0
	for d.get("a").State != ticket.OnHold {
		runs++
		_, token := d.claim(ticket.Claim{ID: "a"})
		if v := d.get("a"); v.VerifyAttempts != 0 {
			t.Errorf("run %d begins with %d failed verifications", runs, v.VerifyAttempts)
		}
		d.must(func(ctx context.Context, tx ticket.Tx) error { return d.verdict(ctx, tx, "a", ticket.Failing) })
		d.must(func(ctx context.Context, tx ticket.Tx) error { return d.verdict(ctx, tx, "a", ticket.Passing) })
		if _, err := d.complete("a", ticket.Result{Token: token}); err != nil {
			t.Fatal(err)
		}
		_, token = d.claim(ticket.Claim{ID: "a", Role: ticket.Reviewer})
		d.must(func(ctx context.Context, tx ticket.Tx) error {
			_, err := d.s.Reject(ctx, tx, "a", token, "a1", ticket.Feedback{Items: []string{"again"}})
			return err
		})
	}
	v := d.get("a")
	if runs != 3 || v.HoldCode != ticket.MaxReviews || v.HoldReason != "Sentinel rejected after max retries" || v.RejectionCount != 3 {
		t.Errorf("after %d runs: %s: %s, %d rejections", runs, v.HoldCode, v.HoldReason, v.RejectionCount)
	}
	_, _ = d.claim(ticket.Claim{ID: "b"})
	for i := range 3 {
		want(t, "state", ticket.InProgress, d.get("b").State)
		d.must(func(ctx context.Context, tx ticket.Tx) error { return d.verdict(ctx, tx, "b", ticket.Failing) })
		if i == 2 {
			break
		}
	}
	if v := d.get("b"); v.State != ticket.Blocked || v.HoldCode != ticket.MaxVerified || v.RejectionCount != 0 {
		t.Errorf("%s: %s", v.State, v.HoldCode)
	}
	var waiting []string
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		return d.s.Waiting(ctx, tx, false, time.Time{}, func(v ticket.View, _ time.Time, _ string) bool {
			waiting = append(waiting, v.ID)
			return true
		})
	})
	slices.Sort(waiting)
	want(t, "the human queue", []string{"a", "b"}, waiting)
}

// A review without a result goes to a person, with what the model replied.
func TestSpecGatesReviewWithoutResult(t *testing.T) {
	d := open(t, gates("review"))
	d.create("a", ticket.Fields{})
	_, token := d.claim(ticket.Claim{})
	if _, err := d.complete("a", ticket.Result{Token: token}); err != nil {
		t.Fatal(err)
	}
	_, token = d.claim(ticket.Claim{Role: ticket.Reviewer})
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		v, err := d.s.Escalate(ctx, tx, "a", "a1", ticket.Escalation{Token: token, Reason: "no decision", RawReply: "APPROVE|REJECT"})
		if v.State != ticket.Blocked || v.HoldCode != ticket.NoReview || v.HoldReason != "no decision" || v.VerificationStatus == ticket.Failing {
			t.Errorf("%s %s: %s, %s", v.State, v.HoldCode, v.HoldReason, v.VerificationStatus)
		}
		page, _ := d.s.ListAttempts(ctx, tx, "a", 0, 0)
		want(t, "raw reply", "APPROVE|REJECT", page.Attempts[1].RawReply)
		return err
	})
}

// A model that is down uses no attempt: the ticket stays in review, and waits.
func TestSpecGatesReleaseWithDelay(t *testing.T) {
	d := open(t, gates("review"))
	d.create("a", ticket.Fields{})
	_, token := d.claim(ticket.Claim{})
	if _, err := d.complete("a", ticket.Result{Token: token}); err != nil {
		t.Fatal(err)
	}
	_, token = d.claim(ticket.Claim{Role: ticket.Reviewer})
	release := func(delay time.Duration) error {
		return d.do(func(ctx context.Context, tx ticket.Tx) error {
			_, err := d.s.Release(ctx, tx, "a", token, "a1", "model down", delay)
			return err
		})
	}
	if err := release(25 * time.Hour); abi.CodeOf(err) != abi.BadFields {
		t.Errorf("a delay of 25 hours: %v", err)
	}
	if err := release(time.Minute); err != nil {
		t.Fatal(err)
	}
	v := d.get("a")
	if v.State != ticket.InReview || v.RetryCount != 0 || v.RetryInSeconds == nil || *v.RetryInSeconds != 60 {
		t.Errorf("%s, %d retries, %v", v.State, v.RetryCount, v.RetryInSeconds)
	}
	if id, _ := d.claim(ticket.Claim{Role: ticket.Reviewer}); id != "" {
		t.Error("claimed before the delay is over")
	}
	d.now = d.now.Add(time.Minute)
	if id, _ := d.claim(ticket.Claim{Role: ticket.Reviewer}); id != "a" {
		t.Error("not claimed after the delay")
	}
}

// TestOwnCategories: entries of the categories of the host, and of those that look like them, are not written by agents.
func TestOwnCategories(t *testing.T) {
	for category, own := range map[string]bool{
		"ticket_updated": true, "ticket_done": true, "Ticket_Updated": true, "ticket_updated ": true, "ticket_update\u200bd": true, "verification_completed": true,
		"verification_phase": false, "comment": false, "my_ticket_note": false, "error": false,
	} {
		if got := ticket.OwnCategory(category); got != own {
			t.Errorf("%q: %t, want %t", category, got, own)
		}
	}
}
