package ticket

import (
	"context"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Codes of work that waits for a person at a gate.
const (
	WorkApproval = "work_approval" // the gate after the review, if approval is on
	NoReview     = "needs_review"  // a reviewer could not decide
)

// A gate is where finished work goes. The gates are, in their order, the review, the
// approval of a person, the deployment and the end.
type gate struct {
	order        int
	state        State
	code, reason string // of the state blocked
}

var (
	review     = gate{1, InReview, "", ""}
	approval   = gate{2, Blocked, WorkApproval, "the work waits for the approval of a person"}
	deployment = gate{3, Approved, "", ""}
	end        = gate{4, Done, "", ""}

	// unverified is not a gate: it stops work that nothing has checked.
	unverified = gate{0, Blocked, Unverified, "unverified: the ticket has no acceptance criteria"}
)

// gate returns where the finished work of a ticket goes: to the next gate that is on,
// unless an earlier one is wanted. Only a person passes over one that is on.
func (s *Service) gate(t *Ticket, wanted State, person bool) gate {
	next := end
	switch t.State {
	case InProgress:
		switch {
		case s.opt.Review != nil && s.opt.Review():
			next = review
		case s.opt.Approval:
			next = approval
		case s.opt.Deploy:
			next = deployment
		}
	case InReview:
		switch {
		case s.opt.Approval:
			next = approval
		case s.opt.Deploy:
			next = deployment
		}
	}
	for _, g := range []gate{review, deployment, end} {
		if g.state == wanted && (person || g.order < next.order) {
			return g
		}
	}
	return next
}

// afterApproval returns where work goes that a person has approved.
func (s *Service) afterApproval() State {
	if s.opt.Deploy {
		return Approved
	}
	return Done
}

// cancel ends a ticket whose failure is not retried.
func (s *Service) cancel(ctx context.Context, tx Tx, t *Ticket, actor string, a Attempt) error {
	from := t.State
	a.Outcome, a.Error = string(Cancelled), t.Error
	if err := s.end(ctx, tx, t, a); err != nil {
		return err
	}
	if err := s.enter(t, Cancelled); err != nil {
		return err
	}
	t.free()
	details := map[string]any{"error": textcut.Mark(t.Error, 200)}
	if from == Approved {
		details["reason"] = AfterApproval
	}
	return s.changed(ctx, tx, t, actor, from, details)
}

// criteriaHeld reports whether a person is asked to approve the criteria of the ticket.
func (t *Ticket) criteriaHeld() bool {
	return t.State == Blocked && t.HoldCode == NeedsApproval && t.AcceptanceCriteria != nil
}

// workHeld reports whether a person is asked to approve the work of the ticket.
func (t *Ticket) workHeld() bool { return t.State == Blocked && t.HoldCode == WorkApproval }

// approvalHeld is the error conflict if the ticket waits for the approval of a person,
// which only a decision gives. While the person looks, what is approved stays as it is.
func (t *Ticket) approvalHeld() error {
	if !t.criteriaHeld() && !t.workHeld() {
		return nil
	}
	return &abi.Error{Code: abi.Conflict, Permanent: true, Field: "state", Message: "ticket " + t.ID + " waits for the approval of a person", Hint: "ticket/decide answers"}
}
