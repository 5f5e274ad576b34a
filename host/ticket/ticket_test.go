package ticket_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/retry"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A desk is a service over the documents of an engine, with a clock that tests set.
type desk struct {
	t   testing.TB
	s   *ticket.Service
	rt  *runtime.Runtime
	now time.Time
}

func open(t testing.TB, change ...func(*ticket.Options)) *desk {
	t.Helper()
	d := &desk{t: t, now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
	opt := ticket.Options{Now: func() time.Time { return d.now }}
	for _, fn := range change {
		fn(&opt)
	}
	d.s = ticket.New(opt)
	rt, err := runtime.Open(t.Context(), runtime.Options{Indexes: ticket.Indexes(), CacheDir: t.TempDir()})
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

func (d *desk) create(id string, f ticket.Fields) ticket.View {
	d.t.Helper()
	if f.Title == nil {
		f.Title = p("title of " + id)
	}
	f.Person = true
	var v ticket.View
	d.must(func(ctx context.Context, tx ticket.Tx) (err error) {
		v, _, err = d.s.Create(ctx, tx, id, "", "user", f)
		return err
	})
	return v
}

func (d *desk) get(id string) (v ticket.View) {
	d.t.Helper()
	d.must(func(ctx context.Context, tx ticket.Tx) (err error) {
		v, err = d.s.Get(ctx, tx, id)
		return err
	})
	return v
}

// claim returns the id of the ticket that an agent gets, and its token.
func (d *desk) claim(c ticket.Claim) (string, uint64) {
	d.t.Helper()
	if c.Agent == "" {
		c.Agent = "a1"
	}
	var v *ticket.View
	d.must(func(ctx context.Context, tx ticket.Tx) (err error) {
		v, err = d.s.Claim(ctx, tx, c)
		return err
	})
	if v == nil {
		return "", 0
	}
	return v.ID, v.Lease.Token
}

func (d *desk) fail(id string, f ticket.Failure) (out ticket.Outcome) {
	d.t.Helper()
	d.must(func(ctx context.Context, tx ticket.Tx) (err error) {
		out, err = d.s.RetryOrFail(ctx, tx, id, f)
		return err
	})
	return out
}

// verdict executes a verification that ends with a status.
func (d *desk) verdict(ctx context.Context, tx ticket.Tx, id, status string) error {
	v, err := d.s.BeginVerification(ctx, tx, id, 0, "user")
	if err == nil {
		_, err = d.s.EndVerification(ctx, tx, id, "user", ticket.Verdict{Number: v.Number, Status: status, Commit: "c0ffee", Entry: json.RawMessage(`{"n":1}`)})
	}
	return err
}

func (d *desk) list(f ticket.Filter) (ids []string) {
	d.t.Helper()
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		l, err := d.s.List(ctx, tx, f)
		for _, v := range l.Tickets {
			ids = append(ids, v.ID)
		}
		return err
	})
	return ids
}

func want(t testing.TB, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// "ORDER BY t.priority DESC, t.created_at ASC"
func TestSpecClaimOrder(t *testing.T) {
	d := open(t)
	for i, priority := range []int{0, 5, 5, -1} {
		d.create(fmt.Sprint("p", i), ticket.Fields{Priority: p(priority)})
		d.now = d.now.Add(time.Second)
	}
	d.create("human", ticket.Fields{AssigneeType: p("human"), Priority: p(9)})
	d.create("draft", ticket.Fields{State: p("draft"), Priority: p(9)})
	var order []string
	for {
		id, _ := d.claim(ticket.Claim{})
		if id == "" {
			break
		}
		order = append(order, id)
	}
	want(t, "order of claims", []string{"p1", "p2", "p0", "p3"}, order)
}

// The code of an error counts before its text, unless it says that one call is useless.
func TestCodeOfAFailure(t *testing.T) {
	for _, c := range []struct {
		code  abi.Code
		error string
		want  retry.Category
	}{
		{"", "broken stream: unexpected token", retry.Syntax},
		{abi.Unavailable, "broken stream: unexpected token", retry.API},
		{abi.Timeout, "cannot read properties of undefined", retry.Timeout},
		{abi.Denied, "HTTP 401 unauthorized", retry.API},
		{abi.BadFields, "odd", retry.ManualReview},
		{"of another version", "connect ECONNREFUSED", retry.API},
	} {
		d := open(t)
		d.create("a", ticket.Fields{})
		if out := d.fail("a", ticket.Failure{Code: c.code, Error: c.error}); out.Strategy.ErrorCategory != c.want {
			t.Errorf("%s %q: %s, want %s", c.code, c.error, out.Strategy.ErrorCategory, c.want)
		}
	}
}

// "Tickets don't get picked up before retry_after expires", and R4: the list has them.
func TestSpecRetryAfterHoldsClaimOnly(t *testing.T) {
	d := open(t)
	d.create("a", ticket.Fields{})
	_, token := d.claim(ticket.Claim{})
	out := d.fail("a", ticket.Failure{Error: "connect ECONNREFUSED", Token: token})
	if !out.Retried || out.RetryAfter == nil || !out.RetryAfter.Equal(d.now.Add(time.Second)) {
		t.Fatalf("decision %+v", out)
	}
	v := d.get("a")
	want(t, "state", ticket.Ready, v.State)
	want(t, "assignee_type (R1)", "agent", v.AssigneeType)
	want(t, "assignee_id", "", v.AssigneeID)
	want(t, "retry_count", 1, v.RetryCount)
	want(t, "retryInSeconds", p(1), v.RetryInSeconds)
	want(t, "strategy", &ticket.Strategy{ErrorCategory: retry.API, ErrorSubcategory: "network", Confidence: 0.8, MaxRetries: 7, BackoffType: "exponential", NextDelayMs: 1000, AttemptsRemaining: 6}, v.RetryStrategy)
	want(t, "list", []string{"a"}, d.list(ticket.Filter{States: []ticket.State{ticket.Ready}}))
	d.now = d.now.Add(999 * time.Millisecond)
	if id, _ := d.claim(ticket.Claim{}); id != "" {
		t.Error("claimed before retry_after")
	}
	d.now = d.now.Add(time.Millisecond)
	if id, _ := d.claim(ticket.Claim{}); id != "a" {
		t.Errorf("claimed %q after retry_after, want a (R1)", id)
	}
}

// TestHeldWithoutRetry checks that a ticket which is held after its first failure names the
// failure, and no retries that were not made.
func TestHeldWithoutRetry(t *testing.T) {
	d := open(t, func(o *ticket.Options) { o.Profile, _ = retry.ProfileNamed("fine") })
	d.create("a", ticket.Fields{})
	_, token := d.claim(ticket.Claim{})
	failure := "SyntaxError: title: longer than 256 characters"
	out := d.fail("a", ticket.Failure{Error: failure, Token: token})
	if v := d.get("a"); !out.OnHold || v.HoldReason != "Not retried, because syntax errors are not: "+failure {
		t.Errorf("%q %+v", v.HoldReason, out)
	}
}

// "After max retries, ticket goes to on_hold (not cancelled)"; "Max retries exceeded for
// ${classification.category} error (${strategy.maxRetries} attempts)"
func TestSpecExhaustedIsOnHold(t *testing.T) {
	var retried, exhausted []string
	d := open(t, func(o *ticket.Options) {
		o.Observer = ticket.Observer{
			Retried:   func(c retry.Category, delay time.Duration) { retried = append(retried, fmt.Sprint(c, " ", delay)) },
			Exhausted: func(c retry.Category) { exhausted = append(exhausted, string(c)) },
		}
	})
	d.create("a", ticket.Fields{})
	for {
		_, token := d.claim(ticket.Claim{})
		out := d.fail("a", ticket.Failure{Error: "AssertionError: TypeError: x is undefined", Token: token})
		if out.OnHold {
			break
		}
		d.now = d.now.Add(time.Minute)
	}
	v := d.get("a")
	want(t, "state", ticket.OnHold, v.State)
	want(t, "hold_reason", "Max retries exceeded for logic error (2 attempts)", v.HoldReason)
	want(t, "hold_code", ticket.MaxRetries, v.HoldCode)
	if v.CompletedAt == nil || v.HeldAt == nil {
		t.Error("completed_at and held_at are not set (X3)")
	}
	want(t, "retry_count (R10: not raised when held)", 2, v.RetryCount)
	want(t, "observed", []string{"logic 3s", "logic 6s"}, retried)
	want(t, "observed", []string{"logic"}, exhausted)
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		attempts, err := d.s.ListAttempts(ctx, tx, "a", 0, 0)
		var outcomes []string
		for _, a := range attempts.Attempts {
			outcomes = append(outcomes, fmt.Sprint(a.Number, " ", a.Outcome, " ", a.Holder))
		}
		want(t, "attempts (R8)", []string{"1 retried a1", "2 retried a1", "3 on_hold a1"}, outcomes)
		page, err2 := d.s.ListActivities(ctx, tx, "a", []string{"ticket_retry_scheduled", "ticket_on_hold"}, 0, 0)
		var entries []string
		for _, a := range page.Activities {
			entries = append(entries, a.AgentID+" "+a.Category+" "+string(a.Metadata))
		}
		want(t, "activities", []string{
			`system ticket_on_hold {"error":"AssertionError: TypeError: x is undefined","errorCategory":"logic","reason":"max_retries_exceeded","totalAttempts":3}`,
			`system ticket_retry_scheduled {"currentAttempt":2,"delayMs":6000,"errorCategory":"logic","maxRetries":2,"retryAfter":"2026-05-01T12:01:06Z"}`,
			`system ticket_retry_scheduled {"currentAttempt":1,"delayMs":3000,"errorCategory":"logic","maxRetries":2,"retryAfter":"2026-05-01T12:00:03Z"}`,
		}, entries)
		if err == nil {
			err = err2
		}
		return err
	})
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		v, err := d.s.Decide(ctx, tx, "a", ticket.Decision{Action: "release", By: "ada", Comment: "use the new API"})
		if v.CompletedAt != nil || v.HoldReason != "" || v.Retries != nil || v.State != ticket.Ready {
			t.Errorf("released: %+v", v)
		}
		want(t, "feedback", []string{"use the new API"}, v.SentinelFeedback.Items)
		return err
	})
	if id, _ := d.claim(ticket.Claim{}); id != "a" {
		t.Error("a released ticket was not claimed")
	}
}

// R6: "two API hiccups used up all review retries"
func TestRetriesByCause(t *testing.T) {
	d := open(t)
	d.create("a", ticket.Fields{})
	for range 2 {
		_, token := d.claim(ticket.Claim{})
		d.fail("a", ticket.Failure{Error: "HTTP 503 from the API", Token: token})
		d.now = d.now.Add(time.Hour)
	}
	for i := range 3 {
		_, token := d.claim(ticket.Claim{})
		var out ticket.Outcome
		d.must(func(ctx context.Context, tx ticket.Tx) (err error) {
			out, err = d.s.Reject(ctx, tx, "a", token, "reviewer", ticket.Feedback{Items: []string{"no tests"}})
			return err
		})
		if want := i < 2; out.Retried != want {
			t.Errorf("rejection %d: retried %t, want %t", i+1, out.Retried, want)
		}
		if out.Retried {
			want(t, "delay of a rejection (X12)", 5*time.Duration(i+1)*time.Second, out.RetryAfter.Sub(d.now))
		}
		d.now = d.now.Add(time.Hour)
	}
	v := d.get("a")
	want(t, "state", ticket.OnHold, v.State)
	want(t, "reason", "Sentinel rejected after max retries", v.HoldReason)
	want(t, "code", ticket.MaxReviews, v.HoldCode)
	want(t, "verification_status", ticket.SentinelRejected, v.VerificationStatus)
	want(t, "retries", map[string]int{"api": 2, "review": 2}, v.Retries)
	want(t, "rejection_count", 3, v.RejectionCount)
}

// R7: "sentinel_feedback written in three shapes"
func TestFeedbackShapes(t *testing.T) {
	for text, items := range map[string][]string{
		`"add tests"`: {"add tests"},
		`["a","b"]`:   {"a", "b"},
		`{"feedback_for_agent":["a"],"score":55}`: {"a"},
		`{"feedback_for_agent":"a"}`:              {"a"},
		`"{\"feedback_for_agent\":[\"inner\"]}"`:  {"inner"},
		`"{ not JSON"`:                            {"{ not JSON"},
		`{"decision":"REJECT"}`:                   nil,
	} {
		var f ticket.Feedback
		if err := json.Unmarshal([]byte(text), &f); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		want(t, text, items, f.Items)
	}
	if err := json.Unmarshal([]byte(`{"feedback_for_agent":7}`), new(ticket.Feedback)); err == nil {
		t.Error("a number is no feedback")
	}
}

// R12: "lease expiry returns the ticket with a retry classed runtime"
func TestLeaseExpires(t *testing.T) {
	d := open(t)
	d.create("a", ticket.Fields{})
	_, first := d.claim(ticket.Claim{Lease: time.Minute})
	d.now = d.now.Add(50 * time.Second)
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		_, err := d.s.Heartbeat(ctx, tx, "a", first, "generating")
		return err
	})
	d.now = d.now.Add(59 * time.Second)
	if id, _ := d.claim(ticket.Claim{Agent: "a2"}); id != "" {
		t.Error("claimed within the lease")
	}
	d.now = d.now.Add(2 * time.Second)
	if id, _ := d.claim(ticket.Claim{Agent: "a2"}); id != "" {
		t.Error("claimed before the delay of the retry")
	}
	v := d.get("a")
	want(t, "category", retry.Runtime, v.RetryStrategy.ErrorCategory)
	want(t, "retry_after", 5*time.Second, v.RetryAfter.Sub(d.now))
	d.now = d.now.Add(5 * time.Second)
	id, second := d.claim(ticket.Claim{Agent: "a2"})
	if id != "a" || second <= first {
		t.Errorf("claimed %q with token %d after %d", id, second, first)
	}
	for name, call := range map[string]func(ctx context.Context, tx ticket.Tx) error{
		"complete": func(ctx context.Context, tx ticket.Tx) error {
			_, err := d.s.Complete(ctx, tx, "a", "a1", ticket.Result{Token: first})
			return err
		},
		"fail": func(ctx context.Context, tx ticket.Tx) error {
			_, err := d.s.RetryOrFail(ctx, tx, "a", ticket.Failure{Error: "x", Token: first})
			return err
		},
		"heartbeat": func(ctx context.Context, tx ticket.Tx) error {
			_, err := d.s.Heartbeat(ctx, tx, "a", first, "")
			return err
		},
		"release": func(ctx context.Context, tx ticket.Tx) error {
			_, err := d.s.Release(ctx, tx, "a", first, "a1", "", 0)
			return err
		},
		"reject": func(ctx context.Context, tx ticket.Tx) error {
			_, err := d.s.Reject(ctx, tx, "a", first, "a1", ticket.Feedback{})
			return err
		},
		"files": func(ctx context.Context, tx ticket.Tx) error {
			_, err := d.s.AddFiles(ctx, tx, "a", "a1", first, nil)
			return err
		},
		"escalate": func(ctx context.Context, tx ticket.Tx) error {
			_, err := d.s.Escalate(ctx, tx, "a", "a1", ticket.Escalation{Token: first})
			return err
		},
		"no retry": func(ctx context.Context, tx ticket.Tx) error {
			_, err := d.s.FailNoRetry(ctx, tx, "a", "a1", ticket.Failure{Token: first})
			return err
		},
	} {
		if err := d.do(call); abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), "claim 1 has ended, a2 has claim 2") {
			t.Errorf("%s by the holder of an expired claim: %v", name, err)
		}
	}
}

// R3 and X8: one machine of states, and "cancelled only by no-retry failures or a human".
func TestIllegalMoves(t *testing.T) {
	d := open(t)
	d.create("a", ticket.Fields{})
	for _, state := range []string{"done", "in_review", "approved", "needs_review"} {
		err := d.do(func(ctx context.Context, tx ticket.Tx) error {
			_, err := d.s.Update(ctx, tx, "a", "user", ticket.Fields{State: p(state)})
			return err
		})
		if abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), "ticket a is ready and cannot become "+state) {
			t.Errorf("%s: %v", state, err)
		}
	}
	for state, code := range map[string]abi.Code{"in_progress": abi.BadFields, "odd": abi.BadFields} {
		err := d.do(func(ctx context.Context, tx ticket.Tx) error {
			_, err := d.s.Update(ctx, tx, "a", "user", ticket.Fields{State: p(state)})
			return err
		})
		if abi.CodeOf(err) != code {
			t.Errorf("%s: %v", state, err)
		}
	}
	for from, to := range ticket.Moves {
		for _, s := range to {
			if _, ok := ticket.Moves[s]; !ok {
				t.Errorf("%s may become the unknown state %s", from, s)
			}
		}
	}
	_, token := d.claim(ticket.Claim{})
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		v, err := d.s.FailNoRetry(ctx, tx, "a", "a1", ticket.Failure{Error: "refused", Token: token})
		want(t, "state", ticket.Cancelled, v.State)
		return err
	})
}

func TestDependencies(t *testing.T) {
	d := open(t, func(o *ticket.Options) { o.AllowUnverified = true })
	d.create("a", ticket.Fields{})
	d.create("b", ticket.Fields{DependsOn: p([]string{"a"}), Priority: p(9)})
	for field, f := range map[string]ticket.Fields{
		"no ticket": {DependsOn: p([]string{"none"})}, "circle": {DependsOn: p([]string{"b"})}, "itself": {DependsOn: p([]string{"a"})},
		`no ticket "zz"`: {ParentID: p("zz")},
	} {
		err := d.do(func(ctx context.Context, tx ticket.Tx) error {
			_, err := d.s.Update(ctx, tx, "a", "user", f)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	id, token := d.claim(ticket.Claim{})
	want(t, "the first claim", "a", id)
	if id, _ := d.claim(ticket.Claim{}); id != "" {
		t.Errorf("claimed %s before its dependency is done", id)
	}
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		_, err := d.s.Complete(ctx, tx, "a", "a1", ticket.Result{Token: token, Files: []ticket.File{{Path: "x.go", Change: "created"}}})
		return err
	})
	id, token = d.claim(ticket.Claim{})
	want(t, "the second claim", "b", id)
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		_, err := d.s.Complete(ctx, tx, "b", "a1", ticket.Result{Token: token, Files: []ticket.File{{Path: "x.go", Change: "modified"}}})
		return err
	})
	v := d.get("a")
	want(t, "a ticket whose file was changed again", ticket.NeedsReview, v.State)
	if len(v.ImpactFlags) != 1 || v.ImpactFlags[0].TicketID != "b" || v.ImpactFlags[0].Files[0] != "x.go" {
		t.Errorf("impact flags %+v", v.ImpactFlags)
	}
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		stats, err := d.s.Stats(ctx, tx)
		want(t, "stats", ticket.Stats{Total: 2, States: map[ticket.State]int{ticket.Done: 1, ticket.NeedsReview: 1}}, stats)
		return err
	})
}

// A file of one repository says nothing about the file of that name of another one.
func TestImpactIsOfOneRepository(t *testing.T) {
	d := open(t, func(o *ticket.Options) { o.AllowUnverified = true })
	for _, repo := range []string{"/one", "/two", "/one"} {
		id := fmt.Sprint("t", len(d.list(ticket.Filter{})))
		d.create(id, ticket.Fields{RepoURL: &repo})
		_, token := d.claim(ticket.Claim{ID: id})
		d.must(func(ctx context.Context, tx ticket.Tx) error {
			_, err := d.s.Complete(ctx, tx, id, "a1", ticket.Result{Token: token, Files: []ticket.File{{Path: "README.md", Change: "modified"}}})
			return err
		})
	}
	want(t, "the same repository", ticket.NeedsReview, d.get("t0").State)
	want(t, "another repository", ticket.Done, d.get("t1").State)
}

// "without criteria a ticket is blocked, unverified unless policy allows"
func TestUnverifiedIsBlocked(t *testing.T) {
	d := open(t)
	d.create("a", ticket.Fields{})
	d.create("b", ticket.Fields{AcceptanceCriteria: &ticket.Criteria{Checks: []ticket.Check{{ID: "ac-1", Type: "file_exists"}}}})
	_, token := d.claim(ticket.Claim{ID: "a"})
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		v, err := d.s.Complete(ctx, tx, "a", "a1", ticket.Result{Token: token})
		want(t, "state", ticket.Blocked, v.State)
		want(t, "code", ticket.Unverified, v.HoldCode)
		return err
	})
	_, token = d.claim(ticket.Claim{ID: "b"})
	complete := func(ctx context.Context, tx ticket.Tx) error {
		_, err := d.s.Complete(ctx, tx, "b", "a1", ticket.Result{Token: token, Next: "complete", Tip: "c0ffee"})
		return err
	}
	if err := d.do(complete); abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), "its verification is pending, not passing") {
		t.Errorf("complete without verification: %v", err)
	}
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		return d.verdict(ctx, tx, "b", ticket.Passing)
	})
	d.must(complete)
	v := d.get("b")
	want(t, "state", ticket.Done, v.State)
	want(t, "status (X6)", ticket.Done, v.Status)
}

func TestCreateIsIdempotent(t *testing.T) {
	d := open(t, func(o *ticket.Options) { o.RepoURL = "/repo" })
	create := func(id, key, title string) (v ticket.View, created bool, err error) {
		err = d.do(func(ctx context.Context, tx ticket.Tx) (err error) {
			v, created, err = d.s.Create(ctx, tx, id, key, "user", ticket.Fields{Title: &title})
			return err
		})
		return v, created, err
	}
	v, created, err := create("", "k1", "one")
	if err != nil || !created || v.ID != "T-1" || v.State != ticket.Ready || v.AssigneeType != "agent" || v.RepoURL != "/repo" || v.VerificationStatus != "pending" {
		t.Errorf("created %+v %t %v", v, created, err)
	}
	if v, created, err := create("", "k1", "one"); err != nil || created || v.ID != "T-1" {
		t.Errorf("again: %s %t %v", v.ID, created, err)
	}
	if _, _, err := create("", "k1", "two"); abi.CodeOf(err) != abi.Conflict {
		t.Errorf("with other content: %v", err)
	}
	if v, _, err := create("SWARM-042", "", "three"); err != nil || v.ID != "SWARM-042" {
		t.Errorf("with an id: %v %v", v.ID, err)
	}
	for _, bad := range []string{"../x", "a b", strings.Repeat("x", 101)} {
		if _, _, err := create(bad, "", "t"); abi.CodeOf(err) != abi.BadFields {
			t.Errorf("id %q: %v", bad, err)
		}
	}
	if _, _, err := create("", "", "  "); abi.CodeOf(err) != abi.BadFields {
		t.Errorf("without a title: %v", err)
	}
}

func TestSearchAndPages(t *testing.T) {
	d := open(t)
	for i := range 130 {
		f := ticket.Fields{Title: p(fmt.Sprintf("Fix login number %d", i)), Labels: p([]string{"web"})}
		if i%2 == 1 {
			f.Project = p("odd")
		}
		if i == 77 {
			f.Description = p("The ÜBUNG fails with ECONNRESET")
		}
		d.create("", f)
		d.now = d.now.Add(time.Second)
	}
	want(t, "a word", []string{"T-78"}, d.list(ticket.Filter{Query: "econnreset"}))
	want(t, "the beginning of a word", []string{"T-78"}, d.list(ticket.Filter{Query: "übu"}))
	want(t, "two words", []string{"T-118"}, d.list(ticket.Filter{Query: "login 117", Limit: 1, Project: "odd"}))
	want(t, "no such word", []string(nil), d.list(ticket.Filter{Query: "nothing"}))
	var all []string
	f := ticket.Filter{Project: "odd", Limit: 20}
	for {
		var l ticket.List
		d.must(func(ctx context.Context, tx ticket.Tx) (err error) {
			l, err = d.s.List(ctx, tx, f)
			return err
		})
		for _, v := range l.Tickets {
			all = append(all, v.ID)
		}
		if f.After = l.Next; l.Next == "" {
			break
		}
	}
	if len(all) != 65 || all[0] != "T-130" || all[64] != "T-2" {
		t.Errorf("%d tickets by pages: %v", len(all), all)
	}
	_, _ = d.claim(ticket.Claim{ID: "T-5", Lease: time.Hour})
	d.now = d.now.Add(6 * time.Minute)
	_, _ = d.claim(ticket.Claim{ID: "T-6", Lease: time.Hour})
	want(t, "stuck", []string{"T-5"}, d.list(ticket.Filter{Stuck: true}))
}

// R11: "broadcast a tombstone"
func TestDelete(t *testing.T) {
	d := open(t)
	d.create("a", ticket.Fields{})
	d.create("b", ticket.Fields{DependsOn: p([]string{"a"})})
	_, token := d.claim(ticket.Claim{ID: "a"})
	remove := func(ctx context.Context, tx ticket.Tx) error { return d.s.Delete(ctx, tx, "a") }
	if err := d.do(remove); abi.CodeOf(err) != abi.Conflict {
		t.Errorf("of a claimed ticket: %v", err)
	}
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		_, err := d.s.Release(ctx, tx, "a", token, "a1", "bye", 0)
		return err
	})
	d.must(remove)
	err := d.do(func(ctx context.Context, tx ticket.Tx) error { _, err := d.s.Get(ctx, tx, "a"); return err })
	if abi.CodeOf(err) != abi.NotFound {
		t.Errorf("get: %v", err)
	}
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		n := 0
		for _, c := range []string{ticket.Attempts, ticket.Activities} {
			if err := tx.Scan(ctx, c, "a/", false, func(doc sentinels.Document) bool {
				if strings.HasPrefix(doc.ID, "a/") {
					n++
				}
				return true
			}); err != nil {
				return err
			}
		}
		want(t, "attempts and activities left", 0, n)
		return nil
	})
	if id, _ := d.claim(ticket.Claim{}); id != "" {
		t.Errorf("%s is claimed though its dependency is gone", id)
	}
}

// TestChainsOfTicketEvents: what a run does to a ticket continues its chain, but for changes that the attempts and reviews
// of the ticket bound.
func TestChainsOfTicketEvents(t *testing.T) {
	hops := 5
	d := open(t, func(o *ticket.Options) {
		o.AllowUnverified = true
		o.Chain = func(context.Context) (int, []string) { return hops, []string{"a"} }
	})
	const id = "T-1"
	d.create(id, ticket.Fields{})
	log := func() error {
		return d.do(func(ctx context.Context, tx ticket.Tx) error {
			_, err := d.s.AddActivity(ctx, tx, id, ticket.Activity{AgentID: "a1", Category: "comment", Message: "x"})
			return err
		})
	}
	if err := log(); err != nil {
		t.Fatal(err)
	}
	_, token := d.claim(ticket.Claim{ID: id})
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		_, err := d.s.Heartbeat(ctx, tx, id, token, "tests")
		return err
	})
	d.fail(id, ticket.Failure{Token: token, Error: "x", Category: retry.Runtime})
	d.now = d.now.Add(time.Hour)
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		_, err := d.s.Wake(ctx, tx)
		return err
	})
	_, token = d.claim(ticket.Claim{ID: id})
	hops = 1000 // beyond the limit: work that is finished is reported all the same
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		_, err := d.s.Complete(ctx, tx, id, "a1", ticket.Result{Token: token})
		return err
	})
	if err := log(); abi.CodeOf(err) != abi.Limit || !strings.Contains(err.Error(), "in a circle: a") {
		t.Errorf("beyond the limit: %v", err)
	}
	events, err := d.rt.Events("", 100)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range events {
		var data struct{ State string }
		if err := json.Unmarshal(e.Data, &data); err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %s %d", e.Name, data.State, e.Hops))
	}
	want := []string{
		"ticket:update ready 5", "ticket:activity  5", "ticket:update in_progress 5", "ticket:progress  5", "ticket:update ready 0",
		"ticket:due ready 0", "ticket:update in_progress 5", "ticket:update done 0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A ticket with the id of a deleted one has the same numbers of activities, and its events are new.
func TestEventsOfATicketThatIsFiledAgain(t *testing.T) {
	d := open(t)
	for _, title := range []string{"spam", "work", "more work"} {
		d.now = d.now.Add(time.Minute)
		d.create("a", ticket.Fields{Title: p(title)})
		d.now = d.now.Add(time.Minute)
		_, token := d.claim(ticket.Claim{})
		d.must(func(ctx context.Context, tx ticket.Tx) error {
			_, err := d.s.Release(ctx, tx, "a", token, "a1", "", 0)
			return err
		})
		d.now = d.now.Add(time.Minute)
		d.must(func(ctx context.Context, tx ticket.Tx) error { return d.s.Delete(ctx, tx, "a") })
	}
	events, err := d.rt.Events(ticket.UpdateEvent, 100)
	if err != nil {
		t.Fatal(err)
	}
	if len(events) != 3*4 { // filed, claimed, released, deleted
		t.Errorf("%d events, want 12: %+v", len(events), events)
	}
}

// countingTx counts the documents that are read by their id.
type countingTx struct {
	ticket.Tx
	reads int
}

func (c *countingTx) Get(ctx context.Context, collection, id string) (sentinels.Document, error) {
	c.reads++
	return c.Tx.Get(ctx, collection, id)
}

// Links that lead to the same tickets read each of them once, and a change that is not of the
// links reads none of them. The end of a request ends it.
func TestLinksAreReadOnce(t *testing.T) {
	const chain, links = 60, 30
	d := open(t, func(o *ticket.Options) { o.AllowUnverified = true })
	var last []string
	for i := range chain {
		id := fmt.Sprintf("c%02d", i)
		d.create(id, ticket.Fields{DependsOn: &last, State: p("draft")})
		last = []string{id}
	}
	var ids []string
	for i := range links {
		ids = append(ids, fmt.Sprintf("c%02d", chain-1-i))
	}
	reads := func(what string, most int, fn func(ctx context.Context, tx ticket.Tx) error) {
		t.Helper()
		d.must(func(ctx context.Context, tx ticket.Tx) error {
			counting := &countingTx{Tx: tx}
			err := fn(ctx, counting)
			if counting.reads > most {
				t.Errorf("%s reads %d documents, want at most %d", what, counting.reads, most)
			}
			return err
		})
	}
	reads("creating", chain+links+20, func(ctx context.Context, tx ticket.Tx) error {
		_, _, err := d.s.Create(ctx, tx, "a", "", "user", ticket.Fields{Title: p("a"), DependsOn: &ids})
		return err
	})
	want(t, "open dependencies", links, d.get("a").Open)
	reads("another priority", 20, func(ctx context.Context, tx ticket.Tx) error {
		_, err := d.s.Update(ctx, tx, "a", "user", ticket.Fields{Priority: p(7)})
		return err
	})
	d.create("leaf", ticket.Fields{})
	ids = append(ids, "leaf")
	for i := range 10 {
		d.create(fmt.Sprint("b", i), ticket.Fields{DependsOn: &ids})
	}
	_, token := d.claim(ticket.Claim{ID: "leaf"})
	reads("the end of a dependency", 10+2*links, func(ctx context.Context, tx ticket.Tx) error {
		_, err := d.s.Complete(ctx, tx, "leaf", "a1", ticket.Result{Token: token})
		return err
	})
	want(t, "open dependencies", links, d.get("b0").Open)
	for name, lists := range map[string][2][]string{"add": {make([]string, 201), nil}, "remove": {nil, make([]string, 201)}} {
		err := d.do(func(ctx context.Context, tx ticket.Tx) error {
			_, err := d.s.Depend(ctx, tx, "a", "user", true, lists[0], lists[1])
			return err
		})
		if abi.CodeOf(err) != abi.BadFields || !strings.Contains(err.Error(), name+": has 201 ids, at most 200") {
			t.Errorf("%s: %v", name, err)
		}
	}
	err := d.do(func(ctx context.Context, tx ticket.Tx) error {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		_, err := d.s.Update(ctx, tx, "a", "user", ticket.Fields{DependsOn: &last})
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the request: %v", err)
	}
}

// TestCutTextsAreMarked: an error, a message and feedback that are too long for a ticket are stored
// with a mark at the end, and feedback that loses whole parts says so in a field.
func TestCutTextsAreMarked(t *testing.T) {
	d := open(t)
	d.create("a", ticket.Fields{})
	_, token := d.claim(ticket.Claim{})
	long := strings.Repeat("word ", 20_000)
	if out := d.fail("a", ticket.Failure{Error: "503 service unavailable " + long, RawReply: long, Token: token}); !strings.HasSuffix(out.Ticket.Error, "...") {
		t.Errorf("the error ends with %q", out.Ticket.Error[len(out.Ticket.Error)-10:])
	}
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		page, err := d.s.ListAttempts(ctx, tx, "a", 0, 0)
		for _, text := range []string{page.Attempts[0].Error, page.Attempts[0].RawReply} {
			if !strings.HasSuffix(text, "...") {
				t.Errorf("an attempt has a text of %d bytes without a mark", len(text))
			}
		}
		if err != nil {
			return err
		}
		a, err := d.s.AddActivity(ctx, tx, "a", ticket.Activity{AgentID: "a1", Category: "comment", Message: long})
		if !strings.HasSuffix(a.Message, "...") {
			t.Errorf("an activity has a message of %d bytes without a mark", len(a.Message))
		}
		return err
	})
	items := make([]string, 60)
	for i := range items {
		items[i] = long
	}
	d = open(t)
	d.create("b", ticket.Fields{})
	_, token = d.claim(ticket.Claim{})
	d.must(func(ctx context.Context, tx ticket.Tx) error {
		out, err := d.s.Reject(ctx, tx, "b", token, "reviewer", ticket.Feedback{Items: items})
		if err != nil {
			return err
		}
		if f := out.Ticket.SentinelFeedback; !f.Cut || !strings.HasSuffix(f.Items[0], "...") {
			t.Errorf("feedback of 60 long items has %d, cut %t, and the first ends with %q", len(f.Items), f.Cut, f.Items[0][len(f.Items[0])-10:])
		}
		return nil
	})
}
