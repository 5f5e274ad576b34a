package ticket

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/runtime/retry"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/role"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A Failure is why an attempt ended without a result.
type Failure struct {
	Error      string         `json:"error"`
	Code       abi.Code       `json:"code,omitempty"`       // of the error, if it has one
	Token      uint64         `json:"token,omitempty"`      // of the claim; 0 if the caller decides about tickets
	RawReply   string         `json:"raw_reply,omitempty"`  // of a model, when it could not be read
	Person     bool           `json:"-"`                    // a person reports
	RetryAfter time.Duration  `json:"retryAfter,omitempty"` // that a server asked for
	Outcome    string         `json:"-"`                    // of the attempt; default retried or on_hold
	Category   retry.Category `json:"-"`                    // known without the text
}

// An Outcome is what was decided about a failure.
type Outcome struct {
	Retried    bool       `json:"retried"`
	OnHold     bool       `json:"onHold,omitempty"`
	RetryAfter *time.Time `json:"retryAfter,omitempty"`
	Reason     string     `json:"reason,omitempty"` // max_retries, sentinel_max_retries, after_approval, not_found
	Strategy   *Strategy  `json:"strategy,omitempty"`
	Ticket     *View      `json:"ticket,omitempty"`
}

// Codes of tickets that wait for a decision.
const (
	MaxRetries  = "max_retries"
	MaxReviews  = "sentinel_max_retries"
	MaxVerified = "max_verification_attempts"
	Unverified  = "unverified"
	Held        = "held" // by a person
)

// AfterApproval is the reason of a ticket that was cancelled since its work failed when it
// had been approved.
const AfterApproval = "after_approval"

// outcomeExpired is the outcome of an attempt whose claim expired.
const outcomeExpired = "expired"

// maxReason limits the bytes of an error in the reason why a ticket is held. The whole error
// is in the ticket.
const maxReason = 300

// causeReview counts rejections of reviewers among the retries of a ticket. The other
// causes are the categories of errors.
const causeReview = "review"

// classify returns the class of a failure: by what is known, then by ask, its code and its
// text. A code that forbids a repetition is about one call: whether the whole ticket is
// tried again, with what a person has repaired meanwhile, is for the text.
func (f Failure) classify(ctx context.Context, ask retry.Classifier) retry.Classification {
	if f.Category != "" {
		return retry.Classification{Category: f.Category, Subcategory: "general", Confidence: 1}
	}
	err := errors.New(f.Error)
	if f.Code != "" {
		if coded := abi.New(f.Code, f.Error); !retry.ClassifyError(coded).Permanent {
			err = coded
		}
	}
	return ask.Classify(ctx, role.SourceTicket, err)
}

// RetryOrFail decides about a failure: the ticket goes back to its queue and waits, or
// is held for a person. The retries of each category are counted apart. Work that fails
// after its approval is cancelled; a claim that expired there is retried. An unknown ticket
// is logged, and is not retried.
func (s *Service) RetryOrFail(ctx context.Context, tx Tx, id string, f Failure) (Outcome, error) {
	ctx = ofWork(ctx)
	var out Outcome
	t, err := s.change(ctx, tx, id, func(t *Ticket) error {
		if err := t.checkToken(f.Token); err != nil {
			return err
		}
		if err := t.approvalHeld(); err != nil {
			return err
		}
		if t.State == Approved && f.Outcome != outcomeExpired {
			out.Reason = AfterApproval
			t.Error = textcut.Mark(f.Error, maxError)
			return s.cancel(ctx, tx, t, systemActor, Attempt{RawReply: textcut.Mark(f.RawReply, maxError)})
		}
		c := f.classify(ctx, s.opt.Classify)
		d := s.opt.Profile.Decide(c, t.Retries[string(c.Category)], sentinels.RetryPolicy{}, f.RetryAfter)
		out = Outcome{Retried: d.Retry, OnHold: !d.Retry, Strategy: s.strategy(c, d)}
		s.opt.Logger.Info("Retry decision for "+id, "errorCategory", c.Category, "currentAttempt", t.RetryCount+1,
			"maxRetries", out.Strategy.MaxRetries, "shouldRetry", d.Retry, "nextDelayMs", out.Strategy.NextDelayMs)
		t.Error, t.RetryStrategy = textcut.Mark(f.Error, maxError), out.Strategy
		if d.Retry {
			return s.again(ctx, tx, t, f, &out, d.Delay)
		}
		return s.hold(ctx, tx, t, f, c, &out)
	})
	if abi.CodeOf(err) == abi.NotFound {
		s.opt.Logger.Error("Ticket "+id+" not found for retry decision", "error", textcut.Mark(f.Error, 200))
		return Outcome{Reason: "not_found"}, nil
	}
	return s.outcome(out, t, err)
}

func (s *Service) outcome(out Outcome, t *Ticket, err error) (Outcome, error) {
	if err == nil {
		v := t.View(s.Now())
		out.Ticket = &v
	}
	return out, err
}

func (s *Service) strategy(c retry.Classification, d retry.Decision) *Strategy {
	own := s.opt.Profile.Strategy(c)
	return &Strategy{
		ErrorCategory: c.Category, ErrorSubcategory: c.Subcategory, Confidence: c.Confidence, MaxRetries: own.MaxRetries, BackoffType: own.BackoffType,
		NextDelayMs: d.Delay.Milliseconds(), AttemptsRemaining: d.AttemptsRemaining,
	}
}

// again puts a ticket back into the queue of the role that had it.
func (s *Service) again(ctx context.Context, tx Tx, t *Ticket, f Failure, out *Outcome, delay time.Duration) error {
	if f.Outcome == "" {
		f.Outcome = "retried"
	}
	if err := s.end(ctx, tx, t, Attempt{Outcome: f.Outcome, Error: t.Error, RawReply: textcut.Mark(f.RawReply, maxError), Strategy: out.Strategy}); err != nil {
		return err
	}
	from, to := t.State, t.queue()
	if err := s.enter(t, to); err != nil {
		return err
	}
	t.free()
	s.delay(t, string(out.Strategy.ErrorCategory), delay)
	out.RetryAfter = t.RetryAfter
	at := t.RetryAfter.Format(time.RFC3339Nano)
	if _, err := s.note(ctx, tx, t, systemActor, categoryRetry, fmt.Sprintf("%s to %s, again after %s", from, to, delay), map[string]any{
		"errorCategory": out.Strategy.ErrorCategory, "currentAttempt": t.RetryCount, "maxRetries": out.Strategy.MaxRetries,
		"retryAfter": at, "delayMs": delay.Milliseconds(),
	}); err != nil {
		return err
	}
	if s.opt.Observer.Retried != nil {
		s.opt.Observer.Retried(out.Strategy.ErrorCategory, delay)
	}
	return s.announce(ctx, tx, t, map[string]any{
		"from": from, "retry": true, "retryAfter": at, "attemptsRemaining": out.Strategy.AttemptsRemaining, "errorCategory": out.Strategy.ErrorCategory,
	})
}

// queue returns the queue that a ticket goes back to.
func (t *Ticket) queue() State {
	if inQueue(t.State) {
		return t.State
	}
	return Ready
}

// delay counts a retry and makes it wait.
func (s *Service) delay(t *Ticket, cause string, delay time.Duration) {
	if t.Retries == nil {
		t.Retries = map[string]int{}
	}
	t.Retries[cause]++
	t.RetryCount++
	at := s.Now().Add(delay)
	t.RetryAfter, t.Due = &at, delay <= 0
}

// hold ends the retries of a ticket.
func (s *Service) hold(ctx context.Context, tx Tx, t *Ticket, f Failure, c retry.Classification, out *Outcome) error {
	out.Reason = MaxRetries
	if err := s.end(ctx, tx, t, Attempt{Outcome: string(OnHold), Error: t.Error, RawReply: textcut.Mark(f.RawReply, maxError), Strategy: out.Strategy}); err != nil {
		return err
	}
	from := t.State
	if err := s.enter(t, OnHold); err != nil {
		return err
	}
	t.free()
	t.HoldCode = MaxRetries
	switch {
	case c.Permanent:
		t.HoldReason = "Not retried, because this error is permanent: " + textcut.Mark(t.Error, maxReason)
	case strings.TrimSpace(t.Error) == "":
		t.HoldReason = "Not retried, because the failure was reported without an error text"
	case out.Strategy.MaxRetries == 0:
		t.HoldReason = fmt.Sprintf("Not retried, because %s errors are not: %s", out.Strategy.ErrorCategory, textcut.Mark(t.Error, maxReason))
	default:
		t.HoldReason = fmt.Sprintf("Max retries exceeded for %s error (%d attempts)", out.Strategy.ErrorCategory, out.Strategy.MaxRetries)
	}
	total := t.RetryCount + 1
	if _, err := s.note(ctx, tx, t, systemActor, categoryOnHold, t.HoldReason, map[string]any{
		"reason": "max_retries_exceeded", "errorCategory": out.Strategy.ErrorCategory, "totalAttempts": total, "error": textcut.Mark(t.Error, 500),
	}); err != nil {
		return err
	}
	if s.opt.Observer.Exhausted != nil {
		s.opt.Observer.Exhausted(out.Strategy.ErrorCategory)
	}
	return s.announce(ctx, tx, t, map[string]any{"from": from, "reason": MaxRetries, "errorCategory": out.Strategy.ErrorCategory, "totalAttempts": total})
}

// FailNoRetry cancels a ticket whose failure must not be retried, such as one after its
// approval by a person.
func (s *Service) FailNoRetry(ctx context.Context, tx Tx, id, actor string, f Failure) (View, error) {
	ctx = ofWork(ctx)
	t, err := s.change(ctx, tx, id, func(t *Ticket) error {
		if err := t.checkToken(f.Token); err != nil {
			return err
		}
		if err := t.approvalHeld(); err != nil && !f.Person {
			return err
		}
		t.Error = textcut.Mark(f.Error, maxError)
		return s.cancel(ctx, tx, t, actor, Attempt{RawReply: textcut.Mark(f.RawReply, maxError)})
	})
	return s.view(t, err)
}

func (s *Service) view(t *Ticket, err error) (View, error) {
	if err != nil {
		return View{}, err
	}
	return t.View(s.Now()), nil
}

// Reject stores the feedback of a reviewer: the work is done again with it, and after
// too many rejections a person decides. A rejection after the approval is not retried.
func (s *Service) Reject(ctx context.Context, tx Tx, id string, token uint64, actor string, feedback Feedback) (Outcome, error) {
	ctx = ofWork(ctx)
	var out Outcome
	feedback.bound()
	t, err := s.change(ctx, tx, id, func(t *Ticket) error {
		if err := t.checkToken(token); err != nil {
			return err
		}
		from := t.State
		if from == Approved {
			out.Reason = AfterApproval
			t.SentinelFeedback, t.VerificationStatus, t.Error = &feedback, SentinelRejected, textcut.Mark(feedback.text(), maxError)
			t.RejectionCount++
			return s.cancel(ctx, tx, t, actor, Attempt{Feedback: &feedback})
		}
		if err := s.enter(t, SentinelFailed); err != nil {
			return err
		}
		t.SentinelFeedback, t.VerificationStatus = &feedback, SentinelRejected
		t.RejectionCount++
		if err := s.changed(ctx, tx, t, actor, from, map[string]any{"feedback": len(feedback.Items)}); err != nil {
			return err
		}
		made := t.Retries[causeReview]
		out.Retried, out.OnHold = made < s.opt.Reviews, made >= s.opt.Reviews
		outcome := "rejected"
		if err := s.end(ctx, tx, t, Attempt{Outcome: outcome, Feedback: &feedback}); err != nil {
			return err
		}
		t.free()
		if out.OnHold {
			out.Reason = MaxReviews
			if err := s.enter(t, OnHold); err != nil {
				return err
			}
			t.HoldCode, t.HoldReason = MaxReviews, "Sentinel rejected after max retries"
			s.opt.Logger.Warn(fmt.Sprintf("[SENTINEL] Ticket %s on hold after %d rejections", t.ID, t.RejectionCount))
			if s.opt.Observer.Exhausted != nil {
				s.opt.Observer.Exhausted(causeReview)
			}
			return s.changed(ctx, tx, t, systemActor, SentinelFailed, map[string]any{"reason": MaxReviews})
		}
		if err := s.enter(t, Ready); err != nil {
			return err
		}
		delay := time.Duration(max(int64(s.opt.ReviewDelay), 0)) * time.Duration(made+1)
		s.delay(t, causeReview, delay)
		out.RetryAfter = t.RetryAfter
		s.opt.Logger.Info(fmt.Sprintf("[SENTINEL] Ticket %s requeued for retry (attempt %d)", t.ID, made+1))
		if s.opt.Observer.Retried != nil {
			s.opt.Observer.Retried(causeReview, delay)
		}
		return s.changed(ctx, tx, t, systemActor, SentinelFailed, map[string]any{
			"retry": true, "reason": "sentinel_rejection", "feedbackProvided": true, "retryAfter": t.RetryAfter.Format(time.RFC3339Nano),
		})
	})
	return s.outcome(out, t, err)
}
