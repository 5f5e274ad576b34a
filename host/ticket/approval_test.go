package ticket_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// linesOf returns the shell lines of checks of the type test_pass.
func linesOf(c *ticket.Criteria) (lines []string) {
	for _, own := range c.Checks {
		var v struct{ Command string }
		if own.Type == "test_pass" && json.Unmarshal(own.Verify, &v) == nil {
			lines = append(lines, v.Command)
		}
	}
	return lines
}

// executing returns criteria that execute a shell line.
func executing(line string) *ticket.Criteria {
	text, _ := json.Marshal(map[string]string{"command": line})
	return &ticket.Criteria{Checks: []ticket.Check{{ID: "ac-1", Type: "test_pass", Verify: text}}}
}

// heldDesk has ticket a, whose criteria an agent wrote, and which waits for their approval.
func heldDesk(t *testing.T, line string) *desk {
	d := open(t, func(o *ticket.Options) { o.Lines = linesOf })
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		v, _, err := d.s.Create(ctx, tx, "a", "", "agent", ticket.Fields{Title: p("a"), AcceptanceCriteria: executing(line)})
		want(t, "state", ticket.Blocked, v.State)
		return err
	})
	return d
}

// update changes the criteria of ticket a.
func (d *desk) update(c *ticket.Criteria, person bool) error {
	return d.do(func(ctx context.Context, tx ticket.Tx) error {
		_, err := d.s.Update(ctx, tx, "a", "agent", ticket.Fields{AcceptanceCriteria: c, Person: person})
		return err
	})
}

// answer decides about ticket a.
func (d *desk) answer(of ticket.Decision) error {
	of.By = "ada"
	return d.do(func(ctx context.Context, tx ticket.Tx) error {
		_, err := d.s.Decide(ctx, tx, "a", of)
		return err
	})
}

// While a person is asked to approve the commands of an agent, no agent changes them, and no
// agent takes the ticket out of this state to do so.
func TestCriteriaStayWhileAPersonIsAsked(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, d *desk, tx ticket.Tx) error{
		"update": func(ctx context.Context, d *desk, tx ticket.Tx) error {
			_, err := d.s.Update(ctx, tx, "a", "agent", ticket.Fields{AcceptanceCriteria: executing("evil")})
			return err
		},
		"cancel": func(ctx context.Context, d *desk, tx ticket.Tx) error {
			_, err := d.s.FailNoRetry(ctx, tx, "a", "a1", ticket.Failure{Error: "x"})
			return err
		},
		"fail": func(ctx context.Context, d *desk, tx ticket.Tx) error {
			_, err := d.s.RetryOrFail(ctx, tx, "a", ticket.Failure{Error: "operation timed out"})
			return err
		},
		"escalate": func(ctx context.Context, d *desk, tx ticket.Tx) error {
			_, err := d.s.Escalate(ctx, tx, "a", "agent", ticket.Escalation{})
			return err
		},
		"complete": func(ctx context.Context, d *desk, tx ticket.Tx) error {
			_, err := d.s.Complete(ctx, tx, "a", "agent", ticket.Result{})
			return err
		},
	} {
		d := heldDesk(t, "true")
		before := d.get("a")
		err := d.do(func(ctx context.Context, tx ticket.Tx) error { return call(ctx, d, tx) })
		if abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), "the approval of a person") {
			t.Errorf("%s: %v", name, err)
		}
		if v := d.get("a"); v.State != ticket.Blocked || v.CriteriaDigest != before.CriteriaDigest || v.CriteriaDigest == "" {
			t.Errorf("%s: %s, criteria %s, want %s", name, v.State, v.CriteriaDigest, before.CriteriaDigest)
		}
	}
	d := heldDesk(t, "true")
	if err := d.update(executing("true"), false); err != nil {
		t.Errorf("the same criteria again: %v", err)
	}
	if err := d.update(executing("make test"), true); err != nil {
		t.Errorf("a person: %v", err)
	}
}

// A release counts for the criteria that it names. Others are refused with what differs.
func TestReleaseIsOfTheCriteriaThatWereShown(t *testing.T) {
	d := heldDesk(t, "true")
	shown := d.get("a").CriteriaDigest
	if err := d.update(executing("make test"), true); err != nil {
		t.Fatal(err)
	}
	err := d.answer(ticket.Decision{Action: "release", CriteriaDigest: shown})
	if abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), shown) || !strings.Contains(err.Error(), "\n- true\n+ make test") {
		t.Errorf("other criteria: %v", err)
	}
	want(t, "state", ticket.Blocked, d.get("a").State)
	if err := d.answer(ticket.Decision{Action: "release", CriteriaDigest: d.get("a").CriteriaDigest}); err != nil {
		t.Error(err)
	}
	want(t, "state", ticket.Ready, d.get("a").State)
	want(t, "criteria_digest of a ticket that is not held", "", d.get("a").CriteriaDigest)
}

// A release from another state approves nothing: the ticket is asked about again.
func TestOnlyAReleaseOfTheQuestionApproves(t *testing.T) {
	d := heldDesk(t, "true")
	for _, action := range []string{"reject", "release"} {
		if err := d.answer(ticket.Decision{Action: action}); err != nil {
			t.Fatal(err)
		}
	}
	want(t, "state", ticket.Ready, d.get("a").State)
	want(t, "criteria_approved", false, d.get("a").CriteriaApproved)
}

// A decision about work counts for the commit that it names.
func TestDecisionIsOfTheCommitThatWasShown(t *testing.T) {
	d := open(t)
	d.create("a", ticket.Fields{AcceptanceCriteria: checks("file_exists")})
	d.verify("a", ticket.Verdict{Status: ticket.Passing, BranchName: "work", Commit: "1678ace000"})
	if err := d.answer(ticket.Decision{Action: "hold", VerifiedCommit: "8af93f1000"}); abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), "about commit 8af93f1, and 1678ace is verified now") {
		t.Errorf("another commit: %v", err)
	}
	if err := d.answer(ticket.Decision{Action: "hold", VerifiedCommit: "1678ace000"}); err != nil {
		t.Error(err)
	}
}
