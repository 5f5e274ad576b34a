package ticket_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

func checks(kind string) *ticket.Criteria {
	return &ticket.Criteria{Checks: []ticket.Check{{ID: "ac-1", Type: kind, Verify: json.RawMessage(`{}`)}}}
}

// verify executes a verification with a verdict.
func (d *desk) verify(id string, v ticket.Verdict) (p ticket.Progress) {
	d.t.Helper()
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		begun, err := d.s.BeginVerification(ctx, tx, id, 0, "user")
		if err != nil {
			return err
		}
		v.Number = begun.Number
		if v.Entry == nil {
			v.Entry = json.RawMessage(`{"action":"verified"}`)
		}
		v.Result = func(ticket.Progress) (json.RawMessage, error) {
			return json.RawMessage(`{"verification_status":"` + v.Status + `"}`), nil
		}
		p, err = d.s.EndVerification(ctx, tx, id, "user", v)
		return err
	})
	return p
}

// S003: "After 3 failures: Stop and report blockers": status blocked, verification
// failing, an escalation in the log.
func TestThirdFailureEscalates(t *testing.T) {
	d := open(t)
	d.create("a", ticket.Fields{AcceptanceCriteria: checks("file_exists")})
	for n := 1; n <= 2; n++ { // without a claim, failures are not counted
		if p := d.verify("a", ticket.Verdict{Status: ticket.Failing, Message: "no"}); p.Attempt != 0 || p.Escalated {
			t.Errorf("without a claim: %+v", p)
		}
	}
	d.claim(ticket.Claim{ID: "a"})
	for n := 1; n <= 3; n++ {
		p := d.verify("a", ticket.Verdict{Status: ticket.Failing, Message: "ac-1: File not found"})
		if p.Attempt != n || p.Max != 3 || p.Escalated != (n == 3) {
			t.Errorf("verification %d: %+v", n, p)
		}
	}
	v := d.get("a")
	want(t, "state", ticket.Blocked, v.State)
	want(t, "verification_status", ticket.Failing, v.VerificationStatus)
	want(t, "hold_code", ticket.MaxVerified, v.HoldCode)
	want(t, "lease", true, v.Lease == nil)
	var entry struct{ Action, Reason string }
	if err := json.Unmarshal(v.VerificationLog[len(v.VerificationLog)-1], &entry); err != nil || entry.Action != "escalated" || entry.Reason != "max_verification_attempts" {
		t.Errorf("log: %+v %v", entry, err)
	}
	d.must(func(ctx context.Context, tx ticket.Tx) error { // the agent says the same, as S003 does
		_, err := d.s.Escalate(ctx, tx, "a", "a1", ticket.Escalation{})
		return err
	})
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		_, err := d.s.Decide(ctx, tx, "a", ticket.Decision{Action: "release", By: "user"})
		return err
	})
	d.claim(ticket.Claim{ID: "a"})
	if p := d.verify("a", ticket.Verdict{Status: ticket.Failing}); p.Attempt != 1 {
		t.Errorf("a new claim begins at %d", p.Attempt)
	}
}

// V3: a fault of the infrastructure is blocked, uses no attempt, is retried by the
// strategy of its error, and reaches a person when that is used up.
func TestInfrastructureFaultUsesNoAttempt(t *testing.T) {
	d := open(t)
	d.create("a", ticket.Fields{AcceptanceCriteria: checks("http_request")})
	d.claim(ticket.Claim{ID: "a", Lease: 10 * time.Hour})
	fault := ticket.Verdict{Status: ticket.VerifyBlocked, Reason: "infrastructure", Message: "fetch: connection refused"}
	var delays []int64
	for range 20 {
		p := d.verify("a", fault)
		if p.Escalated {
			break
		}
		if p.Attempt != 0 || p.After == nil {
			t.Fatalf("%+v", p)
		}
		delays = append(delays, p.Retry.NextDelayMs)
		want(t, "state", ticket.InProgress, d.get("a").State)
	}
	want(t, "delays of api errors (S000)", []int64{1000, 2000, 4000, 8000, 16000, 32000, 64000}, delays)
	v := d.get("a")
	want(t, "state", ticket.Blocked, v.State)
	want(t, "hold_code", ticket.VerifyUnavailable, v.HoldCode)
	want(t, "retry_count", 0, v.RetryCount)
	want(t, "verify_attempts", 0, v.VerifyAttempts)

	d.create("b", ticket.Fields{AcceptanceCriteria: checks("http_request")})
	d.claim(ticket.Claim{ID: "b"})
	d.verify("b", fault)
	d.verify("b", ticket.Verdict{Status: ticket.Failing})
	if p := d.verify("b", fault); p.Retry.NextDelayMs != 1000 {
		t.Errorf("a verdict does not end the series of faults: %+v", p.Retry)
	}
}

func TestVerdictAboutOtherCriteriaDoesNotCount(t *testing.T) {
	d := open(t)
	d.create("a", ticket.Fields{AcceptanceCriteria: checks("file_exists")})
	var begun ticket.Verification
	d.must(func(ctx context.Context, tx ticket.Tx) (err error) {
		begun, err = d.s.BeginVerification(ctx, tx, "a", 0, "user")
		return err
	})
	end := func() error {
		return d.do(func(ctx context.Context, tx ticket.Tx) error {
			_, err := d.s.EndVerification(ctx, tx, "a", "user", ticket.Verdict{Number: begun.Number, Status: ticket.Passing, Entry: json.RawMessage(`{}`)})
			return err
		})
	}
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		_, err := d.s.Update(ctx, tx, "a", "user", ticket.Fields{Person: true, AcceptanceCriteria: checks("manual")})
		return err
	})
	if err := end(); abi.CodeOf(err) != abi.Conflict {
		t.Errorf("a verdict about older criteria: %v", err)
	}
	want(t, "verification_status", ticket.Pending, d.get("a").VerificationStatus)
	d.must(func(ctx context.Context, tx ticket.Tx) (err error) {
		_, err = d.s.BeginVerification(ctx, tx, "a", 0, "user")
		return err
	})
	if err := end(); abi.CodeOf(err) != abi.Conflict {
		t.Errorf("a verdict of an older verification: %v", err)
	}
	d.must(func(ctx context.Context, tx ticket.Tx) error { return d.s.RecoverVerifications(ctx, tx) })
	want(t, "after a restart", ticket.Pending, d.get("a").VerificationStatus)
}

// Commands in the criteria of an agent wait for the approval of a person.
func TestCommandsOfAgentsNeedApproval(t *testing.T) {
	d := open(t, func(o *ticket.Options) {
		o.Lines = linesOf
	})
	create := func(id, kind string) ticket.View {
		title := id
		var v ticket.View
		d.must(func(ctx context.Context, tx ticket.Tx) (err error) {
			v, _, err = d.s.Create(ctx, tx, id, "", "agent", ticket.Fields{Title: &title, AcceptanceCriteria: checks(kind)})
			return err
		})
		return v
	}
	want(t, "files alone", ticket.Ready, create("files", "file_exists").State)
	v := create("a", "test_pass")
	want(t, "state", ticket.Blocked, v.State)
	want(t, "hold_code", ticket.NeedsApproval, v.HoldCode)
	approved := func() (ok bool) {
		d.must(func(ctx context.Context, tx ticket.Tx) error {
			begun, err := d.s.BeginVerification(ctx, tx, "a", 0, "user")
			ok = begun.Approved
			return err
		})
		return ok
	}
	want(t, "approved", false, approved())
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		_, err := d.s.Decide(ctx, tx, "a", ticket.Decision{Action: "release", By: "ada"})
		return err
	})
	want(t, "approved", true, approved())
	want(t, "state", ticket.Ready, d.get("a").State)
	d.must(func(ctx context.Context, tx ticket.Tx) error { // other commands are not what was approved
		_, err := d.s.Update(ctx, tx, "a", "agent", ticket.Fields{AcceptanceCriteria: checks("test_pass")})
		return err
	})
	want(t, "approved after a change", false, approved())
	if p := d.verify("a", ticket.Verdict{Status: ticket.VerifyBlocked, Reason: ticket.NeedsApproval, Message: "a person has to approve"}); !p.Escalated {
		t.Errorf("%+v", p)
	}
	want(t, "hold_code", ticket.NeedsApproval, d.get("a").HoldCode)
}

// An agent cannot choose how its work is judged.
func TestAgentsCannotChangeTheJudgement(t *testing.T) {
	d := open(t, func(o *ticket.Options) { o.RepoURL = "/repo" })
	d.create("a", ticket.Fields{AcceptanceCriteria: checks("file_exists")})
	other := "/other"
	for field, f := range map[string]ticket.Fields{"acceptance_criteria": {AcceptanceCriteria: &ticket.Criteria{}}, "repo_url": {RepoURL: &other}} {
		err := d.do(func(ctx context.Context, tx ticket.Tx) error {
			_, err := d.s.Update(ctx, tx, "a", "agent", f)
			return err
		})
		if abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	d.verify("a", ticket.Verdict{Status: ticket.Passing, BranchName: "work", Commit: "c0ffee"})
	want(t, "verified_commit", "c0ffee", d.get("a").VerifiedCommit)
	_, token := d.claim(ticket.Claim{ID: "a"})
	complete := func(branch string) error {
		return d.do(func(ctx context.Context, tx ticket.Tx) error {
			_, err := d.s.Complete(ctx, tx, "a", "a1", ticket.Result{Token: token, BranchName: branch, Tip: "c0ffee"})
			return err
		})
	}
	if err := complete("another"); abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), `branch "work" was verified, not "another"`) {
		t.Errorf("another branch: %v", err)
	}
	if err := complete(""); err != nil {
		t.Error(err)
	}
	want(t, "branch_name", "work", d.get("a").BranchName)
}

// What was done and is affected by a later change is verified again.
func TestAffectedTicketIsVerifiedAgain(t *testing.T) {
	d := open(t)
	file := []ticket.File{{Path: "src/a.go", Change: "modified"}}
	for _, id := range []string{"a", "b"} {
		d.create(id, ticket.Fields{AcceptanceCriteria: checks("file_exists")})
		_, token := d.claim(ticket.Claim{ID: id})
		d.verify(id, ticket.Verdict{Status: ticket.Passing})
		d.must(func(ctx context.Context, tx ticket.Tx) error {
			_, err := d.s.Complete(ctx, tx, id, "a1", ticket.Result{Token: token, Files: file})
			return err
		})
	}
	again := func() (id string) {
		d.must(func(ctx context.Context, tx ticket.Tx) (err error) {
			id, err = d.s.ToVerifyAgain(ctx, tx)
			return err
		})
		return id
	}
	want(t, "to verify", "a", again())
	want(t, "state", ticket.NeedsReview, d.get("a").State)
	d.verify("a", ticket.Verdict{Status: ticket.Failing})
	want(t, "to verify", "", again())
	want(t, "state after a failure: a person decides", ticket.NeedsReview, d.get("a").State)
	d.verify("a", ticket.Verdict{Status: ticket.Passing})
	v := d.get("a")
	want(t, "state", ticket.Done, v.State)
	want(t, "flags", 0, len(v.ImpactFlags))
}

func TestVerificationHistory(t *testing.T) {
	d := open(t)
	d.create("a", ticket.Fields{AcceptanceCriteria: checks("file_exists")})
	for _, status := range []string{ticket.Failing, ticket.Failing, ticket.Passing} {
		d.verify("a", ticket.Verdict{Status: status})
	}
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		list, total, err := d.s.VerificationHistory(ctx, tx, "a", 2, 0)
		want(t, "total", 3, total)
		want(t, "newest first", `{"verification_status":"passing"} {"verification_status":"failing"}`, string(list[0])+" "+string(list[1]))
		return err
	})
	d.must(func(ctx context.Context, tx ticket.Tx) error { return d.s.Delete(ctx, tx, "a") })
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		_, err := tx.Get(ctx, ticket.Verifications, "a/00000003")
		if abi.CodeOf(err) != abi.NotFound {
			t.Errorf("the history is left: %v", err)
		}
		return nil
	})
}

// Feedback of a model is cut: each change of the ticket writes it again.
func TestFeedbackIsBounded(t *testing.T) {
	d := open(t)
	d.create("a", ticket.Fields{})
	_, token := d.claim(ticket.Claim{ID: "a"})
	items := make([]string, 1000)
	for i := range items {
		items[i] = strings.Repeat("x", 100_000)
	}
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		_, err := d.s.Reject(ctx, tx, "a", token, "r", ticket.Feedback{Items: items, Issues: json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)})
		return err
	})
	text, err := json.Marshal(d.get("a"))
	if err != nil || len(text) > 256<<10 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}
