package verify

import (
	"fmt"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
)

// What a check ended with.
const (
	Passed  = "passed"
	Failed  = "failed"
	Skipped = "skipped" // not executed, with a reason
)

// Why a verification is blocked, or a check was skipped.
const (
	Infrastructure = "infrastructure" // may succeed when it is tried again
	NotFound       = "not_found"      // no such repository or branch
	Refused        = "refused"        // by git, by permissions, or by this configuration
	NeedsPerson    = "manual"         // a check for a person
	NeedsApproval  = "approval"       // a person has to allow the commands
	NoCriteria     = "unverified"     // there is nothing to check
)

// A CheckResult is what became of one check.
type CheckResult struct {
	ID         string `json:"check_id"`
	Type       string `json:"type"`
	Status     string `json:"status" enum:"passed,failed,skipped"`
	Reason     string `json:"reason,omitempty" jsonschema:"why it was skipped: infrastructure, refused, manual or approval"`
	Message    string `json:"message"`
	DurationMs int64  `json:"duration_ms"`
	Output     string `json:"output,omitempty" jsonschema:"what it wrote; the middle of much output is missing"`
}

// A Summary counts checks.
type Summary struct {
	Total   int `json:"total"`
	Passed  int `json:"passed"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
}

// A Blocked says why there is no verdict.
type Blocked struct {
	Reason  string `json:"reason" enum:"infrastructure,not_found,refused,manual,approval,unverified"`
	Message string `json:"message"`
	// Retry says when an infrastructure fault may be over.
	RetryAfter        *time.Time `json:"retryAfter,omitempty"`
	DelayMs           int64      `json:"delayMs,omitempty"`
	AttemptsRemaining int        `json:"attemptsRemaining,omitempty" jsonschema:"further verifications after faults of the infrastructure, before a person sees the ticket"`
}

// A Result is a verification.
type Result struct {
	TicketID string `json:"ticket_id,omitempty"`
	Number   int    `json:"verification,omitempty" jsonschema:"number of this verification of the ticket"`
	Status   string `json:"verification_status" enum:"passing,failing,blocked"`
	Attempt  int    `json:"attempt,omitempty" jsonschema:"verifications of this claim that came to a verdict"`
	Max      int    `json:"maxAttempts,omitempty" jsonschema:"those after which a person decides"`
	// JudgedCommit says that the verdict does not count for the ticket.
	JudgedCommit string        `json:"judged_commit,omitempty" jsonschema:"commit that was reviewed or approved, if this verdict is about another one: it is recorded, and the ticket stays as it is"`
	Escalated    bool          `json:"escalated,omitempty" jsonschema:"the ticket is blocked now, since it failed too often"`
	Checks       []CheckResult `json:"checks"`
	Summary      Summary       `json:"summary"`
	Blocked      *Blocked      `json:"blocked,omitempty"`
	Feedback     []string      `json:"feedback_for_agent,omitempty" jsonschema:"one text for each failed check"`
	ReadyForPR   bool          `json:"ready_for_pr"`
	RepoURL      string        `json:"repo_url,omitempty"`
	BranchName   string        `json:"branch_name,omitempty"`
	Commit       string        `json:"commit_sha,omitempty"`
	Missing      []string      `json:"missing_confinement,omitempty" jsonschema:"what this machine cannot keep commands from"`
	StartedAt    time.Time     `json:"started_at"`
	DurationMs   int64         `json:"duration_ms"`
}

// The verdicts.
const (
	Passing       = "passing"
	Failing       = "failing"
	BlockedStatus = "blocked"
)

// conclude computes what follows from the checks.
func (r *Result) conclude() {
	r.Summary = Summary{Total: len(r.Checks)}
	var skipped *CheckResult
	for i := range r.Checks {
		c := &r.Checks[i]
		switch c.Status {
		case Passed:
			r.Summary.Passed++
		case Failed:
			r.Summary.Failed++
			r.Feedback = append(r.Feedback, c.feedback())
		default:
			r.Summary.Skipped++
			// A fault of the infrastructure comes first: it is retried without a person.
			if skipped == nil || skipped.Reason != Infrastructure && c.Reason == Infrastructure {
				skipped = c
			}
		}
	}
	switch {
	case r.Summary.Failed > 0:
		r.Status, r.Blocked = Failing, nil
	case r.Blocked != nil:
		r.Status = BlockedStatus
	case r.Summary.Total == 0:
		r.Status = BlockedStatus
		r.Blocked = &Blocked{Reason: NoCriteria, Message: "unverified: there are no acceptance criteria"}
	case skipped != nil:
		r.Status = BlockedStatus
		r.Blocked = &Blocked{Reason: skipped.Reason, Message: fmt.Sprintf("check %s: %s", skipped.ID, skipped.Message)}
	default:
		r.Status = Passing
	}
	r.ReadyForPR = r.Status == Passing
}

// feedbackOutput bounds what a text for the next attempt has of a check's output.
const feedbackOutput = 2 << 10

func (c *CheckResult) feedback() string {
	text := fmt.Sprintf("%s (%s): %s", c.ID, c.Type, c.Message)
	if out := strings.TrimSpace(c.Output); out != "" {
		text += "\n" + textcut.MarkStart(out, feedbackOutput)
	}
	return text
}
