package ticket_test

import (
	"context"
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
