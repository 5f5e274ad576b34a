package ticket

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/retry"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/role"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Verifications is the collection of the results of verifications, ID/NUMBER:
// append-only.
const Verifications = "ticket-verifications"

// Codes of tickets that wait for a decision about their verification.
const (
	NeedsApproval     = "approval"                 // their checks execute commands that no person has approved
	NeedsPerson       = "manual"                   // a check is for a person
	VerifyUnavailable = "verification_unavailable" // faults of the infrastructure did not end
)

// causeVerify begins the names of the causes that count verifications which the
// infrastructure prevented. They use no attempt of the ticket.
const causeVerify = "verify:"

// A Verdict is how a verification ended.
type Verdict struct {
	Number     int    // of the verification
	Status     string // Passing, Failing or VerifyBlocked
	Reason     string // why it is blocked: infrastructure, manual, approval or another
	Message    string // the same for people
	RepoURL    string // that was cloned
	BranchName string
	Commit     string
	Entry      json.RawMessage                         // what the ticket's log keeps
	Result     func(Progress) (json.RawMessage, error) // what the history keeps
}

// A Progress is what follows from a verdict.
type Progress struct {
	Attempt   int        // verdicts of this claim
	Max       int        // those after which a person decides
	Escalated bool       // the ticket is blocked
	Judged    string     // the commit that was reviewed or approved, if the verdict is about another one and does not count
	Retry     *Strategy  // after a fault of the infrastructure
	After     *time.Time // when to verify again
}

// A Verification is what a verifier needs to know of a ticket.
type Verification struct {
	Ticket   Ticket
	Number   int
	Approved bool // its commands may be executed
}

// BeginVerification says that a verification begins. From then on the ticket is not
// passing until the verification has passed. A token other than 0 is that of the claim.
func (s *Service) BeginVerification(ctx context.Context, tx Tx, id string, token uint64, actor string) (Verification, error) {
	ctx = ofWork(ctx)
	var out Verification
	_, err := s.change(ctx, tx, id, func(t *Ticket) error {
		if err := t.checkToken(token); err != nil {
			return err
		}
		if t.State == Cancelled || t.State == Draft {
			return &abi.Error{Code: abi.Conflict, Permanent: true, Field: "state", Message: fmt.Sprintf("ticket %s is %s: there is nothing to verify", t.ID, t.State)}
		}
		t.Verifications++
		t.VerificationStatus = Running // with the commit that passed before: claims and decisions name it
		out = Verification{*t, t.Verifications, t.approved()}
		if _, err := s.note(ctx, tx, t, actor, "verification_started", fmt.Sprintf("verification %d", t.Verifications), nil); err != nil {
			return err
		}
		return s.announce(ctx, tx, t, nil)
	})
	return out, err
}

// unverify forgets what the verification passed for.
func (t *Ticket) unverify(status string) {
	t.VerificationStatus, t.VerifiedCommit, t.VerifiedBranch, t.VerifiedRepo = status, "", "", ""
}

// judgedOther reports whether a verdict about a commit would be about another one than was reviewed
// or approved. A ticket that was done is verified again with what came since.
func (t *Ticket) judgedOther(commit string) bool {
	return t.JudgedCommit != "" && t.JudgedCommit != commit && t.State != NeedsReview
}

// sameCommit is the error conflict if work is reported as finished that is not the commit
// which the verification passed for: the verdict is about this commit and no other.
func (t *Ticket) sameCommit(r Result) error {
	verified := t.VerifiedCommit
	if t.VerificationStatus != Passing || verified == "" {
		return nil // not verified, or by an older tracker
	}
	refuse := func(what, next string) error {
		return &abi.Error{Code: abi.Conflict, Permanent: true, Field: "verified_commit",
			Message: fmt.Sprintf("ticket %s: verified %s; %s", t.ID, short(verified), what), Hint: next + "; or a person accepts the ticket"}
	}
	again := `verify/run {"ticket_id": "` + t.ID + `"}`
	proposed := ""
	if r.PullRequest != nil {
		proposed = r.PullRequest.Commit
	}
	switch {
	case t.Lease != nil && t.Lease.Commit != "" && t.Lease.Commit != verified:
		return refuse("the "+string(t.Lease.Role)+" claimed "+short(t.Lease.Commit)+": claim again", "ticket/release, since another commit was verified after the claim")
	case r.Tip == "" && t.State != Approved: // a deployer may have merged and deleted it
		return refuse("the branch is gone: verify again", again)
	case r.Tip != "" && r.Tip != verified:
		return refuse("the branch is at "+short(r.Tip)+": verify again", again)
	case r.Pushed != "" && r.Pushed != verified:
		return refuse("the remote has "+short(r.Pushed)+": push again", `worktree/push {"ticket": "`+t.ID+`"}`)
	case proposed != "" && (len(proposed) < 7 || !strings.HasPrefix(verified, proposed)):
		return refuse("the pull request is at "+short(proposed)+": verify again", "push what was verified, or "+again)
	}
	return nil
}

// approved reports whether a person has written or approved the criteria.
func (t *Ticket) approved() bool { return !t.CriteriaByAgent() || t.CriteriaApproved }

// CriteriaByAgent reports whether an agent wrote the criteria.
func (t *Ticket) CriteriaByAgent() bool { return t.CriteriaBy == agentActor }

// agentActor is the kind of author whose commands need the approval of a person.
const agentActor = "agent"

// EndVerification records a verdict. It is the error conflict if another verification
// has begun meanwhile, or the criteria were changed.
func (s *Service) EndVerification(ctx context.Context, tx Tx, id, actor string, v Verdict) (Progress, error) {
	ctx = ofWork(ctx)
	p := Progress{Max: s.opt.Verifications}
	_, err := s.change(ctx, tx, id, func(t *Ticket) error {
		if t.VerificationStatus != Running || t.Verifications != v.Number {
			return &abi.Error{Code: abi.Conflict, Permanent: true, Field: "verification_status", Message: fmt.Sprintf("ticket %s: verification %d no longer counts: the ticket has changed, or was verified again", t.ID, v.Number), Hint: "verify again"}
		}
		if t.judgedOther(v.Commit) {
			p.Judged = t.JudgedCommit
			return s.recordOther(ctx, tx, t, actor, v, p)
		}
		from := t.State
		t.unverify(v.Status)
		hold, reason := "", v.Message
		switch v.Status {
		case Passing:
			t.VerifiedCommit, t.VerifiedBranch = v.Commit, v.BranchName
			if v.RepoURL != t.RepoURL {
				t.VerifiedRepo = v.RepoURL
			}
			s.verified(t)
			if t.Lease != nil {
				s.logAttempt(t, t.VerifyAttempts+1, "passed", v.Message)
			}
			if t.State == NeedsReview {
				t.ImpactFlags = []Flag{}
				if err := s.enter(t, Done); err != nil {
					return err
				}
			}
		case Failing:
			s.verified(t)
			if from == Approved {
				if err := s.noteVerdict(ctx, tx, t, actor, v); err != nil {
					return err
				}
				if err := s.keepResult(ctx, tx, t, v, p); err != nil {
					return err
				}
				t.Error = textcut.Mark("verification failed after the approval: "+v.Message, maxError)
				return s.cancel(ctx, tx, t, systemActor, Attempt{Result: v.Entry})
			}
			if t.Lease != nil {
				t.VerifyAttempts++
				p.Attempt = t.VerifyAttempts
				s.logAttempt(t, p.Attempt, "failed", v.Message)
				if p.Attempt >= p.Max {
					hold, reason = MaxVerified, fmt.Sprintf("verification failed %d times: %s", p.Attempt, v.Message)
				}
			}
		default:
			var err error
			if hold, err = s.prevented(ctx, t, v, &p); err != nil {
				return err
			}
		}
		if err := s.noteVerdict(ctx, tx, t, actor, v); err != nil {
			return err
		}
		if hold != "" && t.State != NeedsReview && !t.workHeld() {
			p.Escalated = true
			if err := s.wait(ctx, tx, t, hold, reason, v.Entry, ""); err != nil {
				return err
			}
		}
		if err := s.keepResult(ctx, tx, t, v, p); err != nil {
			return err
		}
		if from != t.State {
			return s.changed(ctx, tx, t, actor, from, map[string]any{"reason": hold, "verification": v.Status})
		}
		return s.announce(ctx, tx, t, map[string]any{"verification": v.Status})
	})
	return p, err
}

// logAttempt logs the verdict about an attempt of a claim.
func (s *Service) logAttempt(t *Ticket, n int, verdict, message string) {
	s.opt.Logger.Info(fmt.Sprintf("[%s] Attempt %d/%d", t.ID, n, s.opt.Verifications), "verification", verdict, "message", textcut.Mark(message, 500))
}

// recordOther records a verdict about another commit than the one that was reviewed or approved:
// it neither takes the place of that one nor ends its approval.
func (s *Service) recordOther(ctx context.Context, tx Tx, t *Ticket, actor string, v Verdict, p Progress) error {
	t.settle()
	v.Message = fmt.Sprintf("commit %s, and not %s of the review or approval: %s", cmp.Or(short(v.Commit), "unknown"), short(t.JudgedCommit), v.Message)
	if err := s.noteVerdict(ctx, tx, t, actor, v); err != nil {
		return err
	}
	if err := s.keepResult(ctx, tx, t, v, p); err != nil {
		return err
	}
	return s.announce(ctx, tx, t, map[string]any{"verification": v.Status})
}

// settle ends a verification that gave no verdict about the ticket.
func (t *Ticket) settle() {
	if t.JudgedCommit != "" && t.VerifiedCommit != "" && t.State != NeedsReview {
		t.VerificationStatus = Passing
	} else {
		t.unverify(Pending)
	}
}

// noteVerdict puts a verdict into the logs of a ticket.
func (s *Service) noteVerdict(ctx context.Context, tx Tx, t *Ticket, actor string, v Verdict) error {
	category := "verification_error"
	switch v.Status {
	case Passing:
		category = "verification_passed"
	case Failing:
		category = "verification_failed"
	}
	t.log(v.Entry)
	_, err := s.note(ctx, tx, t, actor, category, v.Message, map[string]any{"verification": v.Number, "status": v.Status, "commit": v.Commit})
	return err
}

// verified forgets the faults of the infrastructure: there was a verdict.
func (s *Service) verified(t *Ticket) {
	maps.DeleteFunc(t.Retries, func(cause string, _ int) bool { return strings.HasPrefix(cause, causeVerify) })
}

// prevented decides about a verification without a verdict, and returns the code with
// which the ticket waits for a person, if it does.
func (s *Service) prevented(ctx context.Context, t *Ticket, v Verdict, p *Progress) (string, error) {
	switch v.Reason {
	case NeedsApproval, NeedsPerson:
		return v.Reason, nil
	case "infrastructure":
	default:
		return "", nil
	}
	c := s.opt.Classify.Classify(ctx, role.SourceOperator, errors.New(v.Message))
	if s.opt.Profile.Strategy(c).MaxRetries == 0 { // the text of a fault may look like one of the work
		c = retry.Classification{Category: retry.Timeout, Subcategory: "general", Confidence: c.Confidence}
	}
	cause := causeVerify + string(c.Category)
	d := s.opt.Profile.Decide(c, t.Retries[cause], sentinels.RetryPolicy{}, 0)
	p.Retry = s.strategy(c, d)
	if !d.Retry {
		return VerifyUnavailable, nil
	}
	if t.Retries == nil {
		t.Retries = map[string]int{}
	}
	t.Retries[cause]++
	at := s.Now().Add(d.Delay)
	p.After = &at
	return "", nil
}

// wait blocks a ticket until a person decides. Its claim ends.
func (s *Service) wait(ctx context.Context, tx Tx, t *Ticket, code, reason string, last json.RawMessage, reply string) error {
	if code == MaxVerified {
		entry, err := json.Marshal(map[string]any{"timestamp": s.Now().Format(time.RFC3339Nano), "action": "escalated", "reason": "max_verification_attempts", "last_result": last})
		if err != nil {
			return err
		}
		t.log(entry)
	}
	if t.Lease != nil {
		if err := s.end(ctx, tx, t, Attempt{Outcome: string(Blocked), Error: textcut.Mark(reason, maxError), Result: last, RawReply: textcut.Mark(reply, maxError)}); err != nil {
			return err
		}
	}
	if err := s.enter(t, Blocked); err != nil {
		return err
	}
	t.free()
	t.HoldCode, t.HoldReason = code, textcut.Mark(reason, maxError)
	return nil
}

func (s *Service) keepResult(ctx context.Context, tx Tx, t *Ticket, v Verdict, p Progress) error {
	if v.Result == nil {
		return nil
	}
	data, err := v.Result(p)
	if err == nil {
		_, err = tx.Put(ctx, Verifications, numbered(t.ID, v.Number), data, 0)
	}
	return err
}

// AbandonVerification says that a verification ended without a result, since it was
// cancelled.
func (s *Service) AbandonVerification(ctx context.Context, tx Tx, id, actor string, number int) error {
	_, err := s.change(ctx, tx, id, func(t *Ticket) error {
		if t.VerificationStatus != Running || t.Verifications != number {
			return nil
		}
		return s.abandon(ctx, tx, t, actor)
	})
	return err
}

func (s *Service) abandon(ctx context.Context, tx Tx, t *Ticket, actor string) error {
	t.settle()
	_, err := s.note(ctx, tx, t, actor, "verification_error", "interrupted: it gave no result", nil)
	return err
}

// RecoverVerifications abandons the verifications that a process left behind.
func (s *Service) RecoverVerifications(ctx context.Context, tx Tx) error {
	ids, err := linked(ctx, tx, byVerification, Running)
	for _, id := range ids {
		if err == nil {
			_, err = s.change(ctx, tx, id, func(t *Ticket) error { return s.abandon(ctx, tx, t, systemActor) })
		}
	}
	return err
}

// Affected returns a channel that gets a value when [Service.ToVerifyAgain] may have
// another answer.
func (s *Service) Affected() <-chan struct{} { return s.affected }

// ToVerifyAgain returns a ticket that was done and is affected by a later change, or
// nothing. The results of other tickets are in what is verified then.
func (s *Service) ToVerifyAgain(ctx context.Context, tx Tx) (id string, err error) {
	err = tx.ScanIndex(ctx, byVerification, runtime.DocumentRange{Equal: []any{ReviewNeeded}, Limit: 1}, func(_ string, d sentinels.Document) bool {
		id = d.ID
		return false
	})
	return id, err
}

// VerificationHistory returns the results of verifications, newest first.
func (s *Service) VerificationHistory(ctx context.Context, tx Tx, id string, limit, offset int) (list []json.RawMessage, total int, err error) {
	t, _, err := load(ctx, tx, id)
	if err != nil {
		return nil, 0, err
	}
	if limit <= 0 || limit > maxPage {
		limit = defaultPage
	}
	list = []json.RawMessage{}
	for n := t.Verifications - offset; n > 0 && len(list) < limit; n-- {
		doc, err := tx.Get(ctx, Verifications, numbered(id, n))
		if abi.CodeOf(err) == abi.NotFound {
			continue // it runs, or was interrupted
		}
		if err != nil {
			return nil, 0, err
		}
		list = append(list, doc.Data)
	}
	return list, t.Verifications, nil
}
