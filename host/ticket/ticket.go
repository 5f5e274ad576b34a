package ticket

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/runtime/retry"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// A Ticket is one piece of work. Its JSON names are those of the trackers that it
// replaces. Times are in UTC.
type Ticket struct {
	ID          string   `json:"id"`
	Title       string   `json:"title"`
	Description string   `json:"description,omitempty"`
	State       State    `json:"state"`
	Phase       string   `json:"phase,omitempty"` // what the agent that has it does
	Priority    int      `json:"priority"`        // higher first
	Labels      []string `json:"labels,omitempty"`
	Project     string   `json:"project,omitempty"`
	Session     string   `json:"session,omitempty"`
	CreatedBy   string   `json:"created_by,omitempty"`
	TextBy      string   `json:"text_by,omitempty"`   // agent or model that wrote title and description, "" if a person changed either last
	Key         string   `json:"key,omitempty"`       // idempotency key of its creation
	DesignID    *string  `json:"design_id,omitempty"` // of a design in another system

	AssigneeType string `json:"assignee_type"` // agent or human
	AssigneeID   string `json:"assignee_id,omitempty"`
	VMID         string `json:"vm_id,omitempty"` // where the agent executes
	Lease        *Lease `json:"lease,omitempty"`
	Fence        uint64 `json:"fence"` // token of the newest claim

	RepoURL     string       `json:"repo_url,omitempty"`
	BranchName  string       `json:"branch_name,omitempty"`
	BaseBranch  string       `json:"base_branch,omitempty"`
	PullRequest *PullRequest `json:"pull_request,omitempty"`

	AcceptanceCriteria *Criteria         `json:"acceptance_criteria,omitempty"`
	VerificationStatus string            `json:"verification_status"`
	VerificationLog    []json.RawMessage `json:"verification_log"`          // the newest 20 entries
	VerifiedCommit     string            `json:"verified_commit,omitempty"` // that passed, and its branch
	VerifiedBranch     string            `json:"verified_branch,omitempty"`
	VerifiedRepo       string            `json:"verified_repo,omitempty"` // if it is not repo_url
	// JudgedCommit is the commit that passed the review or waits for an approval, and from then on
	// the one that approval, deployment and the end are about.
	JudgedCommit     string `json:"judged_commit,omitempty"`
	VerifyAttempts   int    `json:"verify_attempts,omitempty"` // verifications of this claim that failed
	CriteriaBy       string `json:"criteria_by,omitempty"`     // agent, if no person wrote the criteria
	CriteriaApproved bool   `json:"criteria_approved,omitempty"`
	ImpactFlags      []Flag `json:"impact_flags"`
	Files            []File `json:"files,omitempty"` // what its work changed

	RetryCount       int            `json:"retry_count"` // of all causes
	Retries          map[string]int `json:"retries,omitempty"`
	RetryAfter       *time.Time     `json:"retry_after,omitempty"` // not claimed before
	RetryStrategy    *Strategy      `json:"retry_strategy,omitempty"`
	RejectionCount   int            `json:"rejection_count"`
	SentinelFeedback *Feedback      `json:"sentinel_feedback,omitempty"` // of the newest rejection
	HoldReason       string         `json:"hold_reason,omitempty"`
	HoldCode         string         `json:"hold_code,omitempty"` // max_retries, sentinel_max_retries, max_verification_attempts, unverified, work_approval, ...
	HeldAt           *time.Time     `json:"held_at,omitempty"`
	Error            string         `json:"error,omitempty"` // of the newest failure
	Offer            *Offer         `json:"offer,omitempty"` // of learned rules, until the result is known

	DependsOn []string `json:"depends_on,omitempty"`
	ParentID  string   `json:"parent_id,omitempty"`

	CreatedAt   time.Time  `json:"created_at"`
	UpdatedAt   time.Time  `json:"updated_at"`
	StartedAt   *time.Time `json:"started_at,omitempty"`
	CompletedAt *time.Time `json:"completed_at,omitempty"`

	// Open, Due and the counters are kept for indexes and for ids.
	Open       int  `json:"open_dependencies,omitempty"`
	Due        bool `json:"retry_due,omitempty"` // RetryAfter has passed
	Attempts   int  `json:"attempts,omitempty"`
	Worked     int  `json:"worked,omitempty"` // attempts of workers among these
	Activities int  `json:"activities,omitempty"`
	// Imported is a digest of the row that the ticket was imported from, and ImportedAt the
	// number of its activities then.
	Imported   string `json:"imported,omitempty"`
	ImportedAt int    `json:"imported_at,omitempty"`
	// Verifications is how many there were.
	Verifications int `json:"verifications,omitempty"`
}

// A Lease is a claim that has not ended.
type Lease struct {
	Holder      string    `json:"holder"`
	By          string    `json:"claimed_by"` // whose the claim is, whatever the holder is called: an agent, a run or a person
	Role        Role      `json:"role"`
	Token       uint64    `json:"token"`
	ClaimedAt   time.Time `json:"claimed_at"`
	HeartbeatAt time.Time `json:"last_heartbeat"`
	ExpiresAt   time.Time `json:"lease_expires"`
	SpanMs      int64     `json:"lease_ms"`         // what a heartbeat adds
	Commit      string    `json:"commit,omitempty"` // of reviewers and deployers: that was verified when they claimed it
}

// Criteria are what the work of a ticket must fulfil. They are read from an object with
// checks or from a list of checks.
type Criteria struct {
	Checks []Check `json:"checks"`
}

// A Check is one criterion. What Verify holds depends on the type.
type Check struct {
	ID          string          `json:"id,omitempty"`
	Type        string          `json:"type"`
	Description string          `json:"description,omitempty"`
	Verify      json.RawMessage `json:"verify,omitempty"`
}

// UnmarshalJSON reads {"checks": [...]} or [...].
func (c *Criteria) UnmarshalJSON(b []byte) error {
	type plain Criteria
	if strings.HasPrefix(strings.TrimSpace(string(b)), "[") {
		return strictjson.DecodeOpen(b, &c.Checks, strictjson.Unlimited())
	}
	return strictjson.DecodeOpen(b, (*plain)(c), strictjson.Unlimited())
}

// Digest names the content of criteria, for a decision about them.
func (c *Criteria) Digest() string {
	text, err := json.Marshal(c)
	if err != nil {
		return "" // no criteria that were read from JSON: it equals no digest that a decision names
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// A Strategy is the decision about the newest failure.
type Strategy struct {
	ErrorCategory     retry.Category `json:"errorCategory"`
	ErrorSubcategory  string         `json:"errorSubcategory"`
	Confidence        float64        `json:"confidence"` // of the category, 0 to 1
	MaxRetries        int            `json:"maxRetries"`
	BackoffType       string         `json:"backoffType"`
	NextDelayMs       int64          `json:"nextDelayMs"`
	AttemptsRemaining int            `json:"attemptsRemaining"`
}

// Feedback is what a reviewer or a verification says to the next attempt. It is read
// from an object or a text, which is then its only item.
type Feedback struct {
	Items    []string        `json:"feedback_for_agent"`
	Decision string          `json:"decision,omitempty"`
	Score    *float64        `json:"score,omitempty"`
	Summary  string          `json:"summary,omitempty"`
	Issues   json.RawMessage `json:"issues,omitempty"`
	Cut      bool            `json:"cut,omitempty"` // not all items, or not the issues, are kept
}

// UnmarshalJSON reads an object, a list of texts or a text; a text that is JSON itself
// is read as such.
func (f *Feedback) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		if inner := strings.TrimSpace(text); strings.HasPrefix(inner, "{") || strings.HasPrefix(inner, "[") {
			if own := (*Feedback)(nil); strictjson.DecodeOpen([]byte(inner), &own, strictjson.Unlimited()) == nil && own != nil {
				*f = *own
				return nil
			}
		}
		f.Items = []string{text}
		return nil
	}
	if json.Unmarshal(b, &f.Items) == nil {
		return nil
	}
	type plain Feedback
	var raw struct {
		plain
		Items json.RawMessage `json:"feedback_for_agent"`
	}
	if err := strictjson.DecodeOpen(b, &raw, strictjson.Unlimited()); err != nil {
		return err
	}
	*f = Feedback(raw.plain)
	if len(raw.Items) > 0 && json.Unmarshal(raw.Items, &f.Items) != nil {
		if err := json.Unmarshal(raw.Items, &text); err != nil {
			return fmt.Errorf("feedback_for_agent: want texts")
		}
		f.Items = []string{text}
	}
	return nil
}

// An Offer is what the prompt of a claim's holder had of what was learned. It stays until
// it is known what became of the work.
type Offer struct {
	Token uint64    `json:"token"` // of the claim
	At    time.Time `json:"offered_at"`
	Rules []string  `json:"rules,omitempty"` // ids of those in the prompt
	// Tried are those of Rules that were put into the prompt at random, and HeldOut those that
	// were left out at random. The results of both kinds of attempts show a rule's effect.
	Tried   []string `json:"tried,omitempty"`
	HeldOut []string `json:"held_out,omitempty"`
}

// bound cuts what a reviewer or model wrote: each change of the ticket writes it again.
func (f *Feedback) bound() {
	f.Cut = f.Cut || len(f.Items) > maxItems || len(f.Issues) > maxMetadata
	f.Items = f.Items[:min(len(f.Items), maxItems)]
	for i := range f.Items {
		f.Items[i] = textcut.Mark(f.Items[i], maxItem)
	}
	f.Decision, f.Summary = textcut.Mark(f.Decision, maxCategory), textcut.Mark(f.Summary, maxItem)
	if len(f.Issues) > maxMetadata {
		f.Issues = nil
	}
}

// text returns what the feedback says on one line.
func (f *Feedback) text() string {
	if f.Summary != "" {
		return f.Summary
	}
	return strings.Join(f.Items, "; ")
}

// A PullRequest is where the work was proposed.
type PullRequest struct {
	URL    string `json:"url,omitempty"`
	Number int    `json:"number,omitempty"`
	Branch string `json:"branch,omitempty"`
	Commit string `json:"commit,omitempty"`
}

// A File is one that the work of a ticket changed.
type File struct {
	Path      string    `json:"file_path"`
	Change    string    `json:"change_type"` // created, modified or deleted
	CreatedAt time.Time `json:"created_at,omitzero"`
}

// A Flag says that the work of another ticket touched this one's files.
type Flag struct {
	TicketID string    `json:"ticket_id"`
	Files    []string  `json:"files,omitempty"`
	Reason   string    `json:"reason"`
	At       time.Time `json:"at"`
}

// Verification states.
const (
	Pending          = "pending"
	Running          = "running"
	Passing          = "passing"
	Failing          = "failing"
	VerifyBlocked    = "blocked"
	SentinelRejected = "sentinel_rejected"
	ReviewNeeded     = "needs_review"
)

// A View is a ticket as lists and answers show it.
type View struct {
	Ticket
	Status         State  `json:"status"`                    // the same as state
	RetryInSeconds *int   `json:"retryInSeconds,omitempty"`  // until it may be claimed, rounded up
	CriteriaDigest string `json:"criteria_digest,omitempty"` // while the criteria wait for an approval, to be named by the decision
}

// View returns the ticket as it is at a time.
func (t Ticket) View(now time.Time) View {
	v := View{Ticket: t, Status: t.State}
	if t.criteriaHeld() {
		v.CriteriaDigest = t.AcceptanceCriteria.Digest()
	}
	if t.RetryAfter != nil && inQueue(t.State) {
		left := max(int((t.RetryAfter.Sub(now)+time.Second-1)/time.Second), 0)
		v.RetryInSeconds = &left
	}
	return v
}

// Limits of a ticket, in bytes or entries.
const (
	maxTitle       = 500
	maxDescription = 64 << 10
	maxError       = 8 << 10
	maxLabels      = 50
	maxLinks       = 200
	maxChecks      = 200
	maxFiles       = 2000
	maxItems       = 50 // of feedback
	maxItem        = 4 << 10
	maxLog         = 20
)

func bad(field, format string, args ...any) error {
	return &abi.Error{Code: abi.BadFields, Permanent: true, Field: field, Message: field + ": " + fmt.Sprintf(format, args...)}
}

// check returns the first problem of what a client may write.
func (t *Ticket) check() error {
	switch {
	case strings.TrimSpace(t.Title) == "":
		return bad("title", "is empty")
	case len(t.Title) > maxTitle:
		return bad("title", "has %d bytes, at most %d", len(t.Title), maxTitle)
	case len(t.Description) > maxDescription:
		return bad("description", "has %d bytes, at most %d", len(t.Description), maxDescription)
	case len(t.Labels) > maxLabels:
		return bad("labels", "are %d, at most %d", len(t.Labels), maxLabels)
	case len(t.DependsOn) > maxLinks:
		return bad("depends_on", "are %d, at most %d", len(t.DependsOn), maxLinks)
	case t.AssigneeType != "agent" && t.AssigneeType != "human":
		return bad("assignee_type", "%.40q: want agent or human", t.AssigneeType)
	case t.AcceptanceCriteria != nil && len(t.AcceptanceCriteria.Checks) > maxChecks:
		return bad("acceptance_criteria", "has %d checks, at most %d", len(t.AcceptanceCriteria.Checks), maxChecks)
	case slices.Contains(t.DependsOn, t.ID):
		return bad("depends_on", "a ticket cannot depend on itself")
	}
	return nil
}

// claimable reports whether an agent may claim the ticket now.
func (t *Ticket) claimable() bool {
	return inQueue(t.State) && t.Lease == nil && t.Open == 0 && (t.RetryAfter == nil || t.Due)
}
