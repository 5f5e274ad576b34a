package learning_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/host/ticket/learning"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/retry"
)

// A desk is the services of tickets and rules over the documents of an engine, with a
// clock that tests set.
type desk struct {
	t   testing.TB
	s   *ticket.Service
	l   *learning.Learner
	rt  *runtime.Runtime
	now time.Time
}

func open(t testing.TB, trials bool) *desk {
	t.Helper()
	d := &desk{t: t, now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
	clock := func() time.Time { return d.now }
	d.l = learning.New(learning.Options{Now: clock, Trials: trials})
	d.s = ticket.New(ticket.Options{Now: clock, AllowUnverified: true, Learn: d.l.Learn})
	rt, err := runtime.Open(t.Context(), runtime.Options{Indexes: append(ticket.Indexes(), learning.Indexes()...), CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	d.rt = rt
	t.Cleanup(func() { _ = rt.Close() })
	return d
}

// do executes fn in a transaction.
func (d *desk) do(fn func(ctx context.Context, tx ticket.Tx) error) error {
	ctx := context.WithoutCancel(d.t.Context())
	return d.rt.Documents().Update(ctx, func(tx *runtime.DocumentTx) error { return fn(ctx, tx) })
}

func (d *desk) must(fn func(ctx context.Context, tx ticket.Tx) error) {
	d.t.Helper()
	if err := d.do(fn); err != nil {
		d.t.Fatal(err)
	}
}

func p[T any](v T) *T { return &v }

func (d *desk) create(id string, f ticket.Fields) {
	d.t.Helper()
	f.Person = true // whose criteria need no approval
	if f.Title == nil {
		f.Title = p("title of " + id)
	}
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		_, _, err := d.s.Create(ctx, tx, id, "", "user", f)
		return err
	})
}

// claim claims a ticket, when its delay is over, and returns the token.
func (d *desk) claim(id string, role ticket.Role) uint64 {
	d.t.Helper()
	d.now = d.now.Add(time.Hour)
	var token uint64
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		v, err := d.s.Claim(ctx, tx, ticket.Claim{Agent: "a1", ID: id, Role: role})
		if err == nil {
			token = v.Lease.Token
		}
		return err
	})
	return token
}

func (d *desk) fail(id, message string) {
	d.t.Helper()
	d.failAs(id, message, "")
}

func (d *desk) failAs(id, message string, category retry.Category) {
	d.t.Helper()
	token := d.claim(id, ticket.Worker)
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		_, err := d.s.RetryOrFail(ctx, tx, id, ticket.Failure{Error: message, Token: token, Category: category})
		return err
	})
}

func (d *desk) complete(id string, token uint64, r ticket.Result) {
	d.t.Helper()
	r.Token = token
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		_, err := d.s.Complete(ctx, tx, id, "a1", r)
		return err
	})
}

func (d *desk) reject(id string, token uint64, items ...string) {
	d.t.Helper()
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		_, err := d.s.Reject(ctx, tx, id, token, "reviewer", ticket.Feedback{Items: items})
		return err
	})
}

// write adds the rule of a person.
func (d *desk) write(r learning.Rule) learning.View {
	r.Source = learning.Source{Kind: learning.Person, By: "ada"}
	return d.add(r)
}

func (d *desk) add(r learning.Rule) (v learning.View) {
	d.t.Helper()
	d.must(func(ctx context.Context, tx ticket.Tx) (err error) {
		v, err = d.l.Add(ctx, tx, r)
		return err
	})
	return v
}

func (d *desk) decide(id, action string) {
	d.t.Helper()
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		_, err := d.l.Decide(ctx, tx, id, action, "ada")
		return err
	})
}

func (d *desk) rules(states ...learning.State) (list []learning.View) {
	d.t.Helper()
	d.must(func(ctx context.Context, tx ticket.Tx) (err error) {
		list, err = d.l.List(ctx, tx, states)
		return err
	})
	return list
}

func (d *desk) rule(id string) learning.View {
	d.t.Helper()
	for _, r := range d.rules(learning.Seen, learning.Proposed, learning.Active, learning.Retired) {
		if r.ID == id {
			return r
		}
	}
	d.t.Fatalf("no rule %s", id)
	return learning.View{}
}

// context returns what an attempt is given; token 0 is a look from outside.
func (d *desk) context(id string, token uint64) (c learning.Context) {
	d.t.Helper()
	d.must(func(ctx context.Context, tx ticket.Tx) (err error) {
		c, err = d.l.Context(ctx, tx, d.s, learning.Request{Ticket: id, Token: token})
		return err
	})
	checkPrompt(d.t, c.Prompt)
	return c
}

// verified records a verification as the verifier does: checks are id, type, status,
// message and output of each.
func (d *desk) verified(id, status, reason string, checks ...[5]string) {
	d.t.Helper()
	var failed, all []map[string]string
	for _, c := range checks {
		all = append(all, map[string]string{"check_id": c[0], "type": c[1], "status": c[2], "message": c[3], "output": c[4]})
		if c[2] == "failed" {
			failed = append(failed, map[string]string{"check_id": c[0], "message": c[3]})
		}
	}
	entry, err := json.Marshal(map[string]any{"action": "verified", "verification_status": status, "failed": failed})
	if err != nil {
		d.t.Fatal(err)
	}
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		begun, err := d.s.BeginVerification(ctx, tx, id, 0, "user")
		if err != nil {
			return err
		}
		_, err = d.s.EndVerification(ctx, tx, id, "user", ticket.Verdict{
			Number: begun.Number, Status: status, Reason: reason, Message: reason, Entry: entry,
			Result: func(ticket.Progress) (json.RawMessage, error) {
				return json.Marshal(map[string]any{"verification_status": status, "checks": all})
			},
		})
		return err
	})
}

func want(t testing.TB, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func contains(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in:\n%.4000s", part, text)
		}
	}
}

func lacks(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%q is in:\n%.4000s", part, text)
		}
	}
}

// texts returns rules in a short form.
func texts(list []learning.View) (out []string) {
	for _, r := range list {
		out = append(out, fmt.Sprintf("%s %s: %s", r.State, r.Kind, r.Text))
	}
	return out
}

// offered returns the texts of offers.
func offered(list []learning.Offered) (out []string) {
	for _, r := range list {
		out = append(out, r.Text)
	}
	return out
}
