package learning_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/host/ticket/learning"
	"github.com/sentinel-runtime/sentinel/runtime/retry"
)

// TestExceeds compares the test with values that are known: those of Fisher's lady tasting
// tea, and of groups that do not differ.
func TestExceeds(t *testing.T) {
	for _, tt := range []struct {
		a, b learning.Group
		want float64
	}{
		{learning.Group{Attempts: 4, Succeeded: 3}, learning.Group{Attempts: 4, Succeeded: 1}, 17. / 70},
		{learning.Group{Attempts: 4, Succeeded: 4}, learning.Group{Attempts: 4, Succeeded: 0}, 1. / 70},
		{learning.Group{Attempts: 20, Succeeded: 20}, learning.Group{Attempts: 20, Succeeded: 20}, 1},
		{learning.Group{Attempts: 20, Succeeded: 0}, learning.Group{Attempts: 20, Succeeded: 0}, 1},
		{learning.Group{Attempts: 1, Succeeded: 1}, learning.Group{Attempts: 1, Succeeded: 0}, 0.5},
	} {
		if got := learning.Exceeds(tt.a, tt.b); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%v against %v: %g, want %g", tt.a, tt.b, got, tt.want)
		}
	}
}

// Of rules without an effect at most 5 % are taken for better, and as many for worse, and
// nearly all that help by a lot are found.
func TestErrorRate(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	simulate := func(with, without float64) map[int]int {
		verdicts := map[int]int{}
		for range 1000 {
			var trial learning.Trial
			verdict := 0
			for i := 0; i < 700 && verdict == 0; i++ {
				group, share := &trial.With, with
				if random.IntN(2) == 0 {
					group, share = &trial.Without, without
				}
				group.Attempts++
				if random.Float64() < share {
					group.Succeeded++
				}
				verdict = trial.Judge()
			}
			verdicts[verdict]++
		}
		return verdicts
	}
	for _, share := range []float64{0.1, 0.5, 0.9} {
		if v := simulate(share, share); v[1] > 50 || v[-1] > 50 {
			t.Errorf("without an effect at %g: %d better, %d worse of 1000", share, v[1], v[-1])
		}
	}
	if v := simulate(0.8, 0.4); v[1] < 950 {
		t.Errorf("from 0.4 to 0.8: %d of 1000 are found", v[1])
	}
	if v := simulate(0.4, 0.8); v[-1] < 950 {
		t.Errorf("from 0.8 to 0.4: %d of 1000 are found", v[-1])
	}
}

// attempt does one attempt at a new ticket. It succeeds as often as share says of the rules
// that it was offered.
func (d *desk) attempt(n int, random *rand.Rand, share func(texts string) float64) {
	d.t.Helper()
	id := fmt.Sprint("n", n)
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		if _, _, err := d.s.Create(ctx, tx, id, "", "user", ticket.Fields{Title: p(id)}); err != nil {
			return err
		}
		v, err := d.s.Claim(ctx, tx, ticket.Claim{Agent: "a", ID: id})
		if err != nil {
			return err
		}
		c, err := d.l.Context(ctx, tx, d.s, learning.Request{Ticket: id, Token: v.Lease.Token})
		if err != nil {
			return err
		}
		again, err := d.l.Context(ctx, tx, d.s, learning.Request{Ticket: id, Token: v.Lease.Token})
		if err != nil || again.Prompt != c.Prompt {
			d.t.Errorf("a repeated request has another prompt, %v", err)
		}
		if random.Float64() < share(strings.Join(offered(c.Rules), "|")) {
			_, err = d.s.Complete(ctx, tx, id, "a", ticket.Result{Token: v.Lease.Token})
		} else {
			_, err = d.s.FailNoRetry(ctx, tx, id, "a1", ticket.Failure{Token: v.Lease.Token, Error: "x"})
		}
		return err
	})
	d.now = d.now.Add(1e9)
}

// "until a person or a measured effect accepts it": while trials are allowed, proposals are
// in half of the prompts. One that helps becomes active, one that harms is retired, one
// without an effect stays proposed. A rule of a person is only reported.
func TestTrials(t *testing.T) {
	d := open(t, true)
	model := learning.Source{Kind: learning.Model, By: "m"}
	good := d.add(learning.Rule{Text: "good", Source: model})
	harmful := d.add(learning.Rule{Text: "harmful", Source: model})
	none := d.add(learning.Rule{Text: "none", Source: model})
	mine := d.write(learning.Rule{Text: "mine and useless"})
	random := rand.New(rand.NewPCG(3, 4))
	share := func(texts string) float64 {
		s := 0.5
		if strings.Contains(texts, "good") {
			s += 0.35
		}
		if strings.Contains(texts, "harmful") {
			s -= 0.45
		}
		return s
	}
	n := 0
	for ; n < 800 && (d.rule(good.ID).State == learning.Proposed || d.rule(harmful.ID).State == learning.Proposed); n++ {
		d.attempt(n, random, share)
	}
	for _, tt := range []struct {
		id    string
		state learning.State
		by    string
	}{
		{good.ID, learning.Active, learning.Measurement}, {harmful.ID, learning.Retired, learning.Measurement}, {none.ID, learning.Proposed, ""}, {mine.ID, learning.Active, "ada"},
	} {
		r := d.rule(tt.id)
		want(t, r.Text, []any{tt.state, tt.by}, []any{r.State, r.DecidedBy})
		if by := r.DecidedBy == learning.Measurement; by != strings.Contains(r.Reason, "attempts with it succeeded") {
			t.Errorf("%s: decided by %q for the reason %q", r.Text, r.DecidedBy, r.Reason)
		}
	}
	r := d.rule(mine.ID)
	if r.Offered != n || r.Succeeded+r.Failed != n || r.Effectiveness == nil || r.Trial.With.Attempts != 0 {
		t.Errorf("a person's rule after %d attempts: %+v", n, r)
	}
	if r := d.rule(none.ID); r.Trial.With.Attempts+r.Trial.Without.Attempts != n || min(r.Trial.With.Attempts, r.Trial.Without.Attempts) < n/3 {
		t.Errorf("a trial of %d attempts: %+v", n, r.Trial)
	}

	// An active one that was measured stays measured: when it harms, it is retired.
	for ; n < 3000 && d.rule(good.ID).State == learning.Active; n++ {
		d.attempt(n, random, func(texts string) float64 {
			if strings.Contains(texts, "good") {
				return 0.2
			}
			return 0.9
		})
	}
	want(t, "a rule that no longer helps", learning.Retired, d.rule(good.ID).State)
	// What a person accepted is not retired, however bad it is.
	d.decide(harmful.ID, "accept")
	for range 300 {
		n++
		d.attempt(n, random, func(string) float64 { return 0 })
	}
	r = d.rule(harmful.ID)
	want(t, "a harmful rule that a person accepted", []any{learning.Active, "ada", 0}, []any{r.State, r.DecidedBy, r.Trial.With.Attempts})
}

// Without the setting nothing is tried, held out or decided.
func TestNoTrials(t *testing.T) {
	d := open(t, false)
	r := d.add(learning.Rule{Text: "model", Source: learning.Source{Kind: learning.Model}})
	random := rand.New(rand.NewPCG(5, 6))
	for i := range 100 {
		d.attempt(i, random, func(texts string) float64 {
			if texts != "" {
				t.Errorf("offered %q", texts)
			}
			return 0.5
		})
	}
	got := d.rule(r.ID)
	want(t, "rule", []any{learning.Proposed, 0, learning.Trial{}}, []any{got.State, got.Offered, got.Trial})
}

// What becomes of an attempt counts for the rules that it was offered: a review or a
// decision of a person is waited for, and what the work cannot influence does not count.
func TestVerdicts(t *testing.T) {
	type numbers struct{ Offered, Succeeded, Failed int }
	for name, tt := range map[string]struct {
		do   func(d *desk, token uint64)
		want numbers
	}{
		"done":          {func(d *desk, token uint64) { d.complete("a", token, ticket.Result{}) }, numbers{1, 1, 0}},
		"still at work": {func(d *desk, token uint64) { d.context("a", token) }, numbers{}},
		"failed": {func(d *desk, token uint64) {
			d.must(func(ctx context.Context, tx ticket.Tx) error {
				_, err := d.s.RetryOrFail(ctx, tx, "a", ticket.Failure{Token: token, Error: "TypeError: x is undefined"})
				return err
			})
		}, numbers{1, 0, 1}},
		"held": {func(d *desk, token uint64) {
			d.must(func(ctx context.Context, tx ticket.Tx) error {
				_, err := d.s.RetryOrFail(ctx, tx, "a", ticket.Failure{Token: token, Error: "SyntaxError: unexpected token"})
				return err
			})
		}, numbers{1, 0, 1}},
		"escalated": {func(d *desk, token uint64) {
			d.must(func(ctx context.Context, tx ticket.Tx) error {
				_, err := d.s.Escalate(ctx, tx, "a", "a1", ticket.Escalation{Token: token})
				return err
			})
		}, numbers{1, 0, 1}},
		"verified too often": {func(d *desk, _ uint64) {
			for range 3 {
				d.verified("a", ticket.Failing, "", [5]string{"a", "t", "failed", "m", ""})
			}
		}, numbers{1, 0, 1}},
		"waits for an approval": {func(d *desk, _ uint64) { d.verified("a", ticket.VerifyBlocked, ticket.NeedsApproval) }, numbers{}},
		"network": {func(d *desk, token uint64) {
			d.must(func(ctx context.Context, tx ticket.Tx) error {
				_, err := d.s.RetryOrFail(ctx, tx, "a", ticket.Failure{Token: token, Error: "x", Category: retry.API})
				return err
			})
		}, numbers{1, 0, 0}},
		"given back": {func(d *desk, token uint64) {
			d.must(func(ctx context.Context, tx ticket.Tx) error {
				_, err := d.s.Release(ctx, tx, "a", token, "a1", "", 0)
				return err
			})
		}, numbers{1, 0, 0}},
		"expired": {func(d *desk, _ uint64) { d.create("b", ticket.Fields{}); d.claim("b", ticket.Worker) }, numbers{1, 0, 0}},
		"in review": {func(d *desk, token uint64) {
			d.complete("a", token, ticket.Result{Next: "in_review"})
		}, numbers{}},
		"a reviewer who failed": {func(d *desk, token uint64) {
			d.complete("a", token, ticket.Result{Next: "in_review"})
			reviewer := d.claim("a", ticket.Reviewer)
			d.context("a", reviewer)
			d.must(func(ctx context.Context, tx ticket.Tx) error {
				_, err := d.s.RetryOrFail(ctx, tx, "a", ticket.Failure{Token: reviewer, Error: "TypeError: x is undefined"})
				return err
			})
		}, numbers{}},
		"reviewed, deployed": {func(d *desk, token uint64) {
			d.complete("a", token, ticket.Result{Next: "in_review"})
			d.complete("a", d.claim("a", ticket.Reviewer), ticket.Result{Next: "approved"})
			d.complete("a", d.claim("a", ticket.Deployer), ticket.Result{})
		}, numbers{1, 1, 0}},
		"rejected": {func(d *desk, token uint64) {
			d.complete("a", token, ticket.Result{Next: "in_review"})
			d.reject("a", d.claim("a", ticket.Reviewer), "no")
		}, numbers{1, 0, 1}},
		"cancelled by a person": {func(d *desk, token uint64) {
			d.complete("a", token, ticket.Result{Next: "in_review"})
			d.must(func(ctx context.Context, tx ticket.Tx) error {
				_, err := d.s.Decide(ctx, tx, "a", ticket.Decision{Action: "reject", By: "ada"})
				return err
			})
		}, numbers{1, 0, 0}},
	} {
		d := open(t, false)
		r := d.write(learning.Rule{Text: "mine"})
		d.create("a", ticket.Fields{})
		d.context("a", 0) // a look from outside does not count
		token := d.claim("a", ticket.Worker)
		d.context("a", token)
		d.context("a", token)
		tt.do(d, token)
		got := d.rule(r.ID)
		want(t, name, tt.want, numbers{got.Offered, got.Succeeded, got.Failed})
		var attempts []ticket.Attempt
		d.must(func(ctx context.Context, tx ticket.Tx) (err error) {
			page, err := d.s.ListAttempts(ctx, tx, "a", 0, 0)
			attempts = page.Attempts
			return err
		})
		for _, a := range attempts {
			if a.Role == ticket.Worker {
				want(t, name+": rules of the attempt", []string{r.ID}, a.Rules)
			} else {
				want(t, name+": rules of a reviewer", 0, len(a.Rules))
			}
		}
	}
}
