package ticket_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Names of commits.
const (
	commitA = "8af93f1000000000000000000000000000000000"
	commitB = "1678ace000000000000000000000000000000000"
)

// The verdict of a verification is about one commit: work that is at another one is not finished,
// and the error names both.
func TestCompleteIsOfTheVerifiedCommit(t *testing.T) {
	for name, c := range map[string]struct {
		report ticket.Result
		want   string // "" if it is taken
	}{
		"the verified commit":         {ticket.Result{Tip: commitA}, ""},
		"pushed":                      {ticket.Result{Tip: commitA, Pushed: commitA, PullRequest: &ticket.PullRequest{Commit: commitA}}, ""},
		"a short name":                {ticket.Result{Tip: commitA, PullRequest: &ticket.PullRequest{Commit: commitA[:7]}}, ""},
		"a later commit":              {ticket.Result{Tip: commitB}, "verified 8af93f1; the branch is at 1678ace: verify again"},
		"no branch":                   {ticket.Result{}, "verified 8af93f1; the branch is gone"},
		"the remote":                  {ticket.Result{Tip: commitA, Pushed: commitB}, "verified 8af93f1; the remote has 1678ace: push again"},
		"the pull request":            {ticket.Result{Tip: commitA, PullRequest: &ticket.PullRequest{Commit: commitB}}, "verified 8af93f1; the pull request is at 1678ace"},
		"no name of a commit":         {ticket.Result{Tip: commitA, PullRequest: &ticket.PullRequest{Commit: "8"}}, "the pull request is at 8"},
		"a person passes over a gate": {ticket.Result{Tip: commitB, Next: "done", Person: true}, "the branch is at 1678ace"},
	} {
		d := open(t)
		d.create("a", ticket.Fields{AcceptanceCriteria: checks("file_exists")})
		_, token := d.claim(ticket.Claim{})
		d.verify("a", ticket.Verdict{Status: ticket.Passing, BranchName: "work", Commit: commitA})
		c.report.Token = token
		err := d.do(func(ctx context.Context, tx ticket.Tx) error {
			_, err := d.s.Complete(ctx, tx, "a", "a1", c.report)
			return err
		})
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if v := d.get("a"); (v.State == ticket.Done) != (c.want == "") {
			t.Errorf("%s: the ticket is %s", name, v.State)
		}
	}
}

// A reviewer and a deployer finish the commit that was verified when they claimed, since no other
// was reviewed. A deployer may have deleted the branch.
func TestReviewIsOfTheCommitThatWasClaimed(t *testing.T) {
	d := open(t, gates("review", "deploy"))
	d.create("a", ticket.Fields{AcceptanceCriteria: checks("file_exists")})
	_, token := d.claim(ticket.Claim{})
	d.verify("a", ticket.Verdict{Status: ticket.Passing, BranchName: "work", Commit: commitA})
	if _, err := d.complete("a", ticket.Result{Token: token}); err != nil {
		t.Fatal(err)
	}
	_, token = d.claim(ticket.Claim{Role: ticket.Reviewer})
	want(t, "commit of the claim", commitA, d.get("a").Lease.Commit)
	d.verify("a", ticket.Verdict{Status: ticket.Passing, BranchName: "work", Commit: commitB})
	if _, err := d.complete("a", ticket.Result{Token: token}); abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), "verified 1678ace; the reviewer claimed 8af93f1: claim again") {
		t.Errorf("another commit was verified since: %v", err)
	}
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		_, err := d.s.Release(ctx, tx, "a", token, "r", "", 0)
		return err
	})
	_, token = d.claim(ticket.Claim{Role: ticket.Reviewer})
	if _, err := d.complete("a", ticket.Result{Token: token}); err != nil {
		t.Error(err)
	}
	_, token = d.claim(ticket.Claim{Role: ticket.Deployer})
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		_, err := d.s.Complete(ctx, tx, "a", "deployer", ticket.Result{Token: token})
		return err
	})
	want(t, "state", ticket.Done, d.get("a").State)
}

// A verdict about another commit than the one that was reviewed or approved is recorded. It
// neither takes the place of that commit nor ends its approval.
func TestVerdictIsOfTheCommitThatWasJudged(t *testing.T) {
	d := open(t, gates("review", "approval", "deploy"))
	d.create("a", ticket.Fields{AcceptanceCriteria: checks("file_exists")})
	passes := func(commit, branch string) ticket.Verdict {
		return ticket.Verdict{Status: ticket.Passing, BranchName: branch, Commit: commit}
	}
	_, token := d.claim(ticket.Claim{})
	d.verify("a", passes(commitA, "work"))
	if _, err := d.complete("a", ticket.Result{Token: token}); err != nil {
		t.Fatal(err)
	}
	d.verify("a", passes(commitB, "work")) // nothing is reviewed yet
	d.verify("a", passes(commitA, "work"))
	want(t, "judged_commit before the review", "", d.get("a").JudgedCommit)
	others := func(state ticket.State) {
		t.Helper()
		for _, v := range []ticket.Verdict{
			passes(commitB, "work"), passes(commitB, "evil"), {Status: ticket.Failing, BranchName: "work", Commit: commitB}, {Status: ticket.VerifyBlocked, Reason: "not_found", BranchName: "work"},
			{Status: ticket.VerifyBlocked, Reason: "manual", BranchName: "work", Commit: commitB},
		} {
			want(t, "the answer names what was judged", commitA, d.verify("a", v).Judged)
			got := d.get("a")
			if got.State != state || got.VerificationStatus != ticket.Passing || got.VerifiedCommit != commitA || got.VerifiedBranch != "work" || got.JudgedCommit != commitA {
				t.Errorf("after %+v: the ticket is %s, %s, verified %s of %s, judged %s", v, got.State, got.VerificationStatus, got.VerifiedCommit, got.VerifiedBranch, got.JudgedCommit)
			}
		}
		if state == ticket.Blocked { // what a person is asked stays, whatever prevents another verdict
			d.verify("a", ticket.Verdict{Status: ticket.VerifyBlocked, Reason: "manual", BranchName: "work", Commit: commitA})
			want(t, "hold_code", ticket.WorkApproval, d.get("a").HoldCode)
		}
		if p := d.verify("a", passes(commitA, "work")); p.Judged != "" {
			t.Errorf("a verdict about the commit itself: %+v", p)
		}
	}
	_, token = d.claim(ticket.Claim{Role: ticket.Reviewer})
	if _, err := d.complete("a", ticket.Result{Token: token}); err != nil {
		t.Fatal(err)
	}
	others(ticket.Blocked)
	// A decision while another commit is verified is of the one that waits for it.
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		begun, err := d.s.BeginVerification(ctx, tx, "a", 0, "agent")
		if err != nil {
			return err
		}
		want(t, "verified while it runs", commitA, begun.Ticket.VerifiedCommit)
		if _, err := d.s.Decide(ctx, tx, "a", ticket.Decision{Action: "accept", By: "ann"}); err != nil {
			return err
		}
		v := passes(commitB, "evil")
		v.Number, v.Entry = begun.Number, []byte(`{}`)
		_, err = d.s.EndVerification(ctx, tx, "a", "agent", v)
		return err
	})
	others(ticket.Approved)
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		page, err := d.s.ListActivities(ctx, tx, "a", []string{"ticket_state_changed"}, 1, 0)
		if err == nil && !strings.Contains(string(page.Activities[0].Metadata), `"commit":"`+commitA) {
			t.Errorf("the log of the decision: %s", page.Activities[0].Metadata)
		}
		return err
	})
	_, token = d.claim(ticket.Claim{Role: ticket.Deployer})
	others(ticket.Approved)
	if _, err := d.complete("a", ticket.Result{Token: token}); err != nil {
		t.Fatal(err)
	}
	others(ticket.Done)
	d.decide("a", "release")
	want(t, "judged_commit of new work", "", d.get("a").JudgedCommit)
}

// A failing verdict about the commit that was approved ends the approval, and one that was
// interrupted does not.
func TestVerdictAboutTheJudgedCommitCounts(t *testing.T) {
	d := open(t, gates("approval", "deploy"))
	d.create("a", ticket.Fields{AcceptanceCriteria: checks("file_exists")})
	_, token := d.claim(ticket.Claim{})
	d.verify("a", ticket.Verdict{Status: ticket.Passing, BranchName: "work", Commit: commitA})
	if _, err := d.complete("a", ticket.Result{Token: token}); err != nil {
		t.Fatal(err)
	}
	d.decide("a", "accept")
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		begun, err := d.s.BeginVerification(ctx, tx, "a", 0, "agent")
		if err != nil {
			return err
		}
		return d.s.AbandonVerification(ctx, tx, "a", "agent", begun.Number)
	})
	want(t, "status after an interruption", ticket.Passing, d.get("a").VerificationStatus)
	d.verify("a", ticket.Verdict{Status: ticket.Failing, BranchName: "work", Commit: commitA})
	want(t, "state", ticket.Cancelled, d.get("a").State)
}

// An agent cannot name the branch of another ticket for its own: not when it files, changes, imports or completes it. The
// names of all of these are checked as those of new tickets are. A person may, and so may an agent its own branch.
func TestBranchOfAnotherTicket(t *testing.T) {
	invalid := abi.New(abi.BadFields, "invalid")
	for branch, want := range map[string]struct{ agent, person abi.Code }{
		"sentinel/b": {abi.Denied, ""}, "Sentinel/B": {abi.Denied, ""}, "sentinel/a/x": {abi.Denied, ""}, "sentinel": {abi.Denied, ""},
		"sentinel/a": {}, "work": {}, "bad name": {abi.BadFields, abi.BadFields},
	} {
		for person, code := range map[bool]abi.Code{false: want.agent, true: want.person} {
			d := open(t, func(opt *ticket.Options) {
				opt.AllowUnverified = true
				opt.CheckBranch = func(name string) error {
					if strings.Contains(name, " ") {
						return invalid
					}
					return nil
				}
			})
			for op, do := range map[string]func(ctx context.Context, tx ticket.Tx) error{
				"create": func(ctx context.Context, tx ticket.Tx) error {
					_, _, err := d.s.Create(ctx, tx, "a", "", "x", ticket.Fields{Title: p("t"), BranchName: p(branch), Person: person})
					return err
				},
				"import": func(ctx context.Context, tx ticket.Tx) error {
					_, err := d.s.Import(ctx, tx, "x", person, json.RawMessage(`{"id":"a","title":"t","branch_name":"`+branch+`"}`))
					return err
				},
				"update": func(ctx context.Context, tx ticket.Tx) error {
					if _, _, err := d.s.Create(ctx, tx, "a", "", "x", ticket.Fields{Title: p("t"), Person: true}); err != nil {
						return err
					}
					_, err := d.s.Update(ctx, tx, "a", "x", ticket.Fields{BranchName: p(branch), Person: person})
					return err
				},
			} {
				err := d.do(func(ctx context.Context, tx ticket.Tx) error {
					if err := do(ctx, tx); err != nil {
						return err
					}
					return abi.New(abi.Cancelled, "nothing is kept")
				})
				if code == "" && abi.CodeOf(err) != abi.Cancelled || code != "" && abi.CodeOf(err) != code {
					t.Errorf("%s of %q, by a person: %t: %v, want %q", op, branch, person, err, code)
				}
			}
			d.create("a", ticket.Fields{})
			_, token := d.claim(ticket.Claim{})
			if _, err := d.complete("a", ticket.Result{Token: token, BranchName: branch, Person: person}); abi.CodeOf(err) != code {
				t.Errorf("complete with %q, by a person: %t: %v, want %q", branch, person, err, code)
			}
		}
	}
}
