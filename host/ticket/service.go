package ticket

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/retry"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A Tx is the documents as one transaction sees them, such as a [runtime.DocumentTx].
type Tx interface {
	Get(ctx context.Context, collection, id string) (sentinels.Document, error)
	Scan(ctx context.Context, collection, after string, reverse bool, fn func(sentinels.Document) bool) error
	ScanIndex(ctx context.Context, x *runtime.DocumentIndex, r runtime.DocumentRange, fn func(position string, d sentinels.Document) bool) error
	// ReadEnough reports whether scans have read as many bytes as the caller may with one call.
	ReadEnough() bool
	Put(ctx context.Context, collection, id string, data json.RawMessage, expect uint64) (sentinels.Document, error)
	Delete(ctx context.Context, collection, id string, expect uint64) error
	Emit(ctx context.Context, e sentinels.Event) error
}

// Options are what a Service needs. The zero value is usable.
type Options struct {
	Now     func() time.Time // default [time.Now]
	Profile retry.Profile    // default [retry.Fine]
	// Reviews is how many rejections of a reviewer are retried; default 2, negative for
	// none.
	Reviews int
	// ReviewDelay times the number of the rejection is the delay before the next
	// attempt; default 5 s, negative for none.
	ReviewDelay time.Duration
	// Verifications is how many of one claim may fail before a person decides; default 3.
	Verifications int
	// Lease is how long a claim holds without a heartbeat; default 5 minutes.
	Lease time.Duration
	// RepoURL is the repository of tickets that name none.
	RepoURL string
	// AllowUnverified lets work without criteria be done. Else it is blocked.
	AllowUnverified bool
	// Review reports whether finished work is reviewed; default no.
	Review func() bool
	// Approval has a person approve work that was reviewed, or that is not to be reviewed.
	Approval bool
	// Deploy has deployers claim work that has passed the other gates, before it is done.
	Deploy bool
	// CheckCriteria refuses criteria that could not be checked; default none.
	CheckCriteria func(*Criteria) error
	// CheckRepo refuses repositories that could not be cloned or pushed to; default none.
	CheckRepo func(repoURL string) error
	// CheckBranch refuses branches that could not be made for a ticket; default none.
	CheckBranch func(name string) error
	// OwnBranch returns the branch of a ticket that names none; default sentinel/ID.
	OwnBranch func(id string) string
	// AgentBranch reports whether an agent may name a branch for a ticket; default any that is not another ticket's.
	AgentBranch func(branch, id string) bool
	// Learn is called in the transaction that ends an attempt of a ticket or changes its
	// state, before the ticket is written, with the attempt or nil; default none.
	Learn func(ctx context.Context, tx Tx, t *Ticket, ended *Attempt) error
	// Lines returns the shell lines and requests of criteria that need the approval of a
	// person if an agent wrote them; default the content of each check.
	Lines func(*Criteria) []string
	// Classify knows errors before the table of package retry; default none. It is called in
	// the transaction that decides about a failure.
	Classify retry.Classifier
	// Chain returns how many runs led to the change that ctx is of, and the ids of their sentinels in order. An event of
	// a change continues that, unless attempts and reviews bound how often the ticket is changed so. Default: none did.
	Chain    func(ctx context.Context) (hops int, path []string)
	Logger   *slog.Logger // of decisions; default discards
	Observer Observer
}

// An Observer counts decisions. Its functions may be nil.
type Observer struct {
	Retried   func(category retry.Category, delay time.Duration)
	Exhausted func(category retry.Category)
	Recovered func() // a ticket is done after at least one retry
}

// A Service changes tickets.
type Service struct {
	opt      Options
	poked    chan struct{}
	affected chan struct{}
}

// New returns a Service.
func New(opt Options) *Service {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Profile.Name() == "" {
		opt.Profile = retry.Fine()
	}
	if opt.Reviews == 0 {
		opt.Reviews = 2
	}
	if opt.ReviewDelay == 0 {
		opt.ReviewDelay = 5 * time.Second
	}
	if opt.OwnBranch == nil {
		opt.OwnBranch = func(id string) string { return "sentinel/" + id }
	}
	if opt.Verifications == 0 {
		opt.Verifications = 3
	}
	if opt.Lines == nil {
		opt.Lines = func(c *Criteria) (lines []string) {
			for _, own := range c.Checks {
				lines = append(lines, own.Type+" "+string(own.Verify))
			}
			return lines
		}
	}
	if opt.Lease == 0 {
		opt.Lease = 5 * time.Minute
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	return &Service{opt: opt, poked: make(chan struct{}, 1), affected: make(chan struct{}, 1)}
}

// Now returns the time by which the service decides, in UTC and whole milliseconds.
func (s *Service) Now() time.Time { return s.opt.Now().UTC().Truncate(time.Millisecond) }

// Lines returns the shell lines and requests of criteria that need an approval.
func (s *Service) Lines(c *Criteria) []string { return s.opt.Lines(c) }

// RepoURL returns the repository of tickets that name none.
func (s *Service) RepoURL() string { return s.opt.RepoURL }

// load returns a ticket and the revision of its document, and the error of ctx if it has ended:
// links may lead to many tickets.
func load(ctx context.Context, tx Tx, id string) (*Ticket, uint64, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	doc, err := tx.Get(ctx, Collection, id)
	if err != nil {
		if abi.CodeOf(err) == abi.NotFound {
			return nil, 0, &abi.Error{Code: abi.NotFound, Permanent: true, Message: fmt.Sprintf("no ticket %.100q", id), Hint: "ticket/list shows those that exist"}
		}
		return nil, 0, err
	}
	t, err := read(doc)
	return t, doc.Revision, err
}

func read(doc sentinels.Document) (*Ticket, error) {
	t := new(Ticket)
	if err := json.Unmarshal(doc.Data, t); err != nil {
		return nil, fmt.Errorf("read ticket %s: %w", doc.ID, err)
	}
	return t, nil
}

// Get returns a ticket.
func (s *Service) Get(ctx context.Context, tx Tx, id string) (View, error) {
	t, _, err := load(ctx, tx, id)
	if err != nil {
		return View{}, err
	}
	return t.View(s.Now()), nil
}

// GetHeld is Get for the holder of a claim: the error conflict if the claim has ended.
func (s *Service) GetHeld(ctx context.Context, tx Tx, id string, token uint64) (View, error) {
	t, _, err := load(ctx, tx, id)
	if err == nil {
		err = t.checkToken(token)
	}
	return s.view(t, err)
}

// change loads a ticket, lets fn change it, and writes it. When its state becomes or
// stops being done, those that it affects are written too.
func (s *Service) change(ctx context.Context, tx Tx, id string, fn func(*Ticket) error) (*Ticket, error) {
	t, revision, err := load(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	was, attempts := t.State, t.Attempts
	if err := fn(t); err != nil {
		return nil, err
	}
	t.UpdatedAt = s.Now()
	if s.opt.Learn != nil && (t.State != was || t.Attempts != attempts) {
		var ended *Attempt
		if t.Attempts != attempts {
			last, err := LastAttempts(ctx, tx, id, 1)
			if err != nil {
				return nil, err
			}
			ended = &last[0]
		}
		if err := s.opt.Learn(ctx, tx, t, ended); err != nil {
			return nil, err
		}
	}
	if err := s.write(ctx, tx, t, revision); err != nil {
		return nil, err
	}
	if was == t.State {
		return t, nil
	}
	if err := count(ctx, tx, was, t.State); err != nil {
		return nil, err
	}
	if t.State == Done {
		err = s.impact(ctx, tx, t)
	}
	if err == nil && (was == Done || t.State == Done) {
		err = s.recount(ctx, tx, t.ID)
	}
	return t, err
}

// RecordOffer records what the prompt of a claim's holder has of what was learned.
func (s *Service) RecordOffer(ctx context.Context, tx Tx, id string, o Offer) error {
	if o.Token == 0 {
		return bad("token", "is missing: only the holder of a claim is offered rules")
	}
	t, revision, err := load(ctx, tx, id)
	if err == nil {
		err = t.checkToken(o.Token)
	}
	if err != nil {
		return err
	}
	t.Offer = &o
	return s.write(ctx, tx, t, revision)
}

// write writes a ticket on a revision of its document.
func (s *Service) write(ctx context.Context, tx Tx, t *Ticket, revision uint64) error {
	data, err := json.Marshal(t)
	if err == nil {
		_, err = tx.Put(ctx, Collection, t.ID, data, revision)
	}
	if !t.dueAt().IsZero() {
		s.poke()
	}
	return err
}

// enter changes the state and what belongs to it: a ticket in a queue has no time of
// completion and no reason to be held.
func (s *Service) enter(t *Ticket, to State) error {
	if err := t.move(to); err != nil {
		return err
	}
	now := s.Now()
	t.Phase = ""
	if to == Done {
		t.HeldAt, t.HoldReason, t.HoldCode = nil, "", ""
	}
	switch to {
	case Approved, Done:
		t.JudgedCommit = cmp.Or(t.JudgedCommit, t.VerifiedCommit)
	case Blocked, NeedsReview:
	default: // there will be other work, or another review
		t.JudgedCommit = ""
	}
	switch to {
	case Done, Cancelled:
		t.CompletedAt, t.RetryAfter, t.Due = &now, nil, false
	case OnHold, Blocked:
		t.CompletedAt, t.HeldAt, t.RetryAfter, t.Due = &now, &now, nil, false
	default:
		t.CompletedAt, t.HeldAt, t.HoldReason, t.HoldCode = nil, nil, "", ""
	}
	return nil
}

// free ends the claim of a ticket. The kind of assignee stays: without it no agent would
// claim the ticket again.
func (t *Ticket) free() { t.Lease, t.AssigneeID, t.VMID, t.Phase = nil, "", "", "" }
