package ticket

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/retry"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Limits of leases.
const (
	minLease = time.Second
	maxLease = 24 * time.Hour
)

// dueAtOnce bounds how many tickets one transaction wakes.
const dueAtOnce = 100

// A Claim asks for a ticket.
type Claim struct {
	Agent   string        // who asks; required
	By      string        // whose the claim is: see [Service.CheckHolder]
	Bound   bool          // the caller claims what is for agents only
	Role    Role          // default worker
	ID      string        // this ticket only
	Project string        // tickets of this project only
	VM      string        // where the agent executes
	Lease   time.Duration // default that of the service
}

// Claim gives the ticket with the highest priority, the oldest of these, to an agent, or
// none. Leases and delays that have ended are noticed first.
func (s *Service) Claim(ctx context.Context, tx Tx, c Claim) (*View, error) {
	if c.Agent == "" {
		return nil, bad("agent_id", "is missing: a claim needs a holder")
	}
	if c.Role == "" {
		c.Role = Worker
	}
	queue, ok := queues[c.Role]
	if !ok {
		return nil, bad("role", "%.40q: want worker, reviewer or deployer", c.Role)
	}
	if c.Lease == 0 {
		c.Lease = s.opt.Lease
	}
	if c.Lease < minLease || c.Lease > maxLease {
		return nil, bad("lease", "%s: want %s to %s", c.Lease, minLease, maxLease)
	}
	if _, err := s.Wake(ctx, tx); err != nil {
		return nil, err
	}
	id := c.ID
	if id == "" {
		var err error
		if id, err = next(ctx, tx, queue, c.Project); err != nil || id == "" {
			return nil, err
		}
	}
	t, err := s.change(ctx, tx, id, func(t *Ticket) error {
		if t.State != queue || !t.claimable() || c.Bound && t.AssigneeType != "agent" {
			return &abi.Error{Code: abi.Conflict, Permanent: true, Message: fmt.Sprintf("ticket %s cannot be claimed by a %s: %s", t.ID, c.Role, t.reason(s.Now(), queue))}
		}
		if c.Bound && c.Role == Reviewer {
			if err := checkOthersWork(ctx, tx, t, c.By); err != nil {
				return err
			}
		}
		now, from := s.Now(), t.State
		if c.Role == Worker {
			if err := s.enter(t, InProgress); err != nil {
				return err
			}
		}
		t.Fence++
		t.Lease = &Lease{Holder: c.Agent, By: c.By, Role: c.Role, Token: t.Fence, ClaimedAt: now, HeartbeatAt: now, ExpiresAt: now.Add(c.Lease), SpanMs: c.Lease.Milliseconds()}
		if c.Role != Worker {
			t.Lease.Commit = t.VerifiedCommit
		}
		t.VerifyAttempts = 0
		t.AssigneeID, t.VMID, t.RetryAfter, t.Due, t.Phase = c.Agent, c.VM, nil, false, "claimed"
		if t.StartedAt == nil {
			t.StartedAt = &now
		}
		if _, err := s.note(ctx, tx, t, c.Agent, "ticket_claimed", fmt.Sprintf("claimed by %s, attempt %d", c.Agent, t.attempt(c.Role)), map[string]any{
			"role": c.Role, "claimed_by": c.By, "token": t.Fence, "from": from, "to": t.State, "attempt": t.attempt(c.Role),
		}); err != nil {
			return err
		}
		return s.announce(ctx, tx, t, map[string]any{"from": from, "agent_id": c.Agent})
	})
	if err != nil {
		return nil, err
	}
	v := t.View(s.Now())
	return &v, nil
}

// checkOthersWork is the error denied if the work of a ticket is of the agent by: no agent reviews
// its own.
func checkOthersWork(ctx context.Context, tx Tx, t *Ticket, by string) error {
	attempts, err := LastAttempts(ctx, tx, t.ID, maxPage)
	if err != nil {
		return err
	}
	for _, a := range attempts {
		if a.Role == Worker && a.By == by {
			return &abi.Error{
				Code: abi.Denied, Permanent: true, Field: "role", Message: fmt.Sprintf("ticket %s cannot be reviewed by %s, which worked on it in attempt %d", t.ID, by, a.Number),
				Hint: "another agent or a person reviews it; claim another ticket by its id",
			}
		}
	}
	return nil
}

// next returns the ticket that is given out next.
func next(ctx context.Context, tx Tx, queue State, project string) (id string, err error) {
	err = tx.ScanIndex(ctx, byClaim, runtime.DocumentRange{Equal: []any{string(queue), "agent", project}, Limit: 1}, func(_ string, d sentinels.Document) bool {
		id = d.ID
		return false
	})
	return id, err
}

// reason returns why a ticket cannot be claimed.
func (t *Ticket) reason(now time.Time, queue State) string {
	switch {
	case t.Lease != nil:
		return fmt.Sprintf("%s has it until %s", t.Lease.Holder, t.Lease.ExpiresAt.Format(time.RFC3339))
	case t.State != queue:
		return fmt.Sprintf("it is %s, not %s", t.State, queue)
	case t.Open > 0:
		return fmt.Sprintf("%d of its dependencies are not done", t.Open)
	case t.RetryAfter != nil:
		return fmt.Sprintf("it is retried in %s", t.RetryAfter.Sub(now).Round(time.Second))
	}
	return "it is for people"
}

// checkToken is the error conflict if the claim with this token has ended. The token 0
// is that of callers who decide about tickets.
func (t *Ticket) checkToken(token uint64) error {
	switch {
	case token == 0:
		return nil
	case t.Lease == nil:
		return &abi.Error{Code: abi.Conflict, Permanent: true, Field: "token", Message: fmt.Sprintf("ticket %s: claim %d has ended, and the ticket is %s", t.ID, token, t.State), Hint: "claim again; the result of this claim is not taken"}
	case t.Lease.Token != token:
		return &abi.Error{Code: abi.Conflict, Permanent: true, Field: "token", Message: fmt.Sprintf("ticket %s: claim %d has ended, %s has claim %d", t.ID, token, t.Lease.Holder, t.Lease.Token), Hint: "stop work on this ticket"}
	}
	return nil
}

// CheckHolder is the error denied for a caller whose the claim of a ticket is not, or who has not
// its token, and conflict if the claim with the token has ended. A ticket without a claim needs no
// token. The token is a number that everyone reads: it names a claim, and by proves whose it is.
func (s *Service) CheckHolder(ctx context.Context, tx Tx, id string, token uint64, by string) error {
	t, _, err := load(ctx, tx, id)
	if err != nil {
		return err
	}
	denied := func(message, hint string) error {
		return &abi.Error{Code: abi.Denied, Permanent: true, Field: "token", Message: message, Hint: hint}
	}
	if token == 0 && t.Lease != nil {
		return denied(fmt.Sprintf("token is missing: ticket %s is claimed by %s, claim %d", t.ID, t.Lease.Holder, t.Lease.Token),
			"the answer of ticket/claim has the token; without it only a person reports about the claim")
	}
	if err := t.checkToken(token); err != nil {
		return err
	}
	if t.Lease != nil && t.Lease.By != by {
		return denied(fmt.Sprintf("ticket %s: claim %d is of %s, and the caller is %s", t.ID, token, cmp.Or(t.Lease.By, "unknown"), by),
			"who made a claim, or a person, reports about it: claim another ticket, or wait until this claim ends")
	}
	return nil
}

// Heartbeat extends a claim from now, and sets the phase unless it is empty.
func (s *Service) Heartbeat(ctx context.Context, tx Tx, id string, token uint64, phase string) (View, error) {
	t, revision, err := load(ctx, tx, id)
	if err != nil {
		return View{}, err
	}
	if token == 0 {
		return View{}, bad("token", "is missing: only the holder of a claim extends it")
	}
	if err := t.checkToken(token); err != nil {
		return View{}, err
	}
	t.Lease.HeartbeatAt = s.Now()
	t.Lease.ExpiresAt = t.Lease.HeartbeatAt.Add(time.Duration(t.Lease.SpanMs) * time.Millisecond)
	if phase != "" && phase != t.Phase {
		if len(phase) > maxCategory {
			return View{}, bad("phase", "has %d bytes, at most %d", len(phase), maxCategory)
		}
		t.Phase, t.UpdatedAt = phase, s.Now()
		if err := s.emitAbout(ctx, tx, t, fmt.Sprintf("%s:%s:%d:%d", ProgressEvent, t.ID, token, s.Now().UnixMilli()), ProgressEvent, map[string]any{"phase": phase, "agent_id": t.Lease.Holder}); err != nil {
			return View{}, err
		}
	}
	return s.view(t, s.write(ctx, tx, t, revision))
}

// Release ends a claim without a result: the ticket goes back to its queue, without a retry
// being counted. It is claimed again after a delay, 0 is at once.
func (s *Service) Release(ctx context.Context, tx Tx, id string, token uint64, actor, reason string, delay time.Duration) (View, error) {
	if delay < 0 || delay > maxLease {
		return View{}, bad("retry_after_ms", "%s: want 0 to %s", delay, maxLease)
	}
	t, err := s.change(ctx, tx, id, func(t *Ticket) error {
		if err := t.checkToken(token); err != nil {
			return err
		}
		if t.Lease == nil {
			return &abi.Error{Code: abi.Conflict, Permanent: true, Message: fmt.Sprintf("ticket %s is %s and has no claim", t.ID, t.State), Hint: "a held ticket is released by a decision"}
		}
		if err := s.end(ctx, tx, t, Attempt{Outcome: "released", Error: textcut.Mark(reason, maxError)}); err != nil {
			return err
		}
		from := t.State
		if err := s.enter(t, t.queue()); err != nil {
			return err
		}
		t.free()
		details := map[string]any{"reason": "released", "message": textcut.Mark(reason, 500)}
		if delay > 0 {
			at := s.Now().Add(delay)
			t.RetryAfter, t.Due = &at, false
			details["retryAfter"] = at.Format(time.RFC3339Nano)
		}
		return s.changed(ctx, tx, t, actor, from, details)
	})
	return s.view(t, err)
}

// Wake ends leases that have expired and delays that are over, at most 100 of them, and
// returns when the next one is due, zero if there is none.
func (s *Service) Wake(ctx context.Context, tx Tx) (time.Time, error) {
	now := s.Now()
	var due []string
	var soon time.Time
	err := tx.ScanIndex(ctx, byTime, runtime.DocumentRange{Limit: dueAtOnce + 1}, func(_ string, d sentinels.Document) bool {
		var t Ticket
		if json.Unmarshal(d.Data, &t) != nil {
			return true
		}
		at := t.dueAt()
		if at.After(now) || len(due) == dueAtOnce {
			soon = at
			return false
		}
		due = append(due, d.ID)
		return true
	})
	for _, id := range due {
		if err == nil {
			err = s.wake(ctx, tx, id)
		}
	}
	return soon, err
}

// dueAt returns when a lease or a delay of the ticket ends, zero if it has none.
func (t *Ticket) dueAt() time.Time {
	switch {
	case t.Lease != nil:
		return t.Lease.ExpiresAt
	case inQueue(t.State) && t.RetryAfter != nil && !t.Due:
		return *t.RetryAfter
	}
	return time.Time{}
}

func (s *Service) wake(ctx context.Context, tx Tx, id string) error {
	ctx = ofWork(ctx)
	t, revision, err := load(ctx, tx, id)
	if err != nil {
		return err
	}
	if l := t.Lease; l != nil {
		_, err := s.RetryOrFail(ctx, tx, id, Failure{
			Error:   fmt.Sprintf("the lease of %s expired at %s: no heartbeat since %s", l.Holder, l.ExpiresAt.Format(time.RFC3339), l.HeartbeatAt.Format(time.RFC3339)),
			Outcome: outcomeExpired, Category: retry.Runtime,
		})
		return err
	}
	t.Due = true
	if err := s.write(ctx, tx, t, revision); err != nil {
		return err
	}
	return s.emit(ctx, tx, t, DueEvent, map[string]any{"ticket_id": t.ID, "state": t.State})
}
