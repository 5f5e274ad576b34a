package verify

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Tickets verifies the work of tickets and records the verdicts.
type Tickets struct {
	Verifier *Verifier
	Service  *ticket.Service
	Update   ticket.Update // executes a transaction on the documents

	mu      sync.Mutex
	running map[string]bool // by id of the ticket

	recovering sync.Mutex // of what follows
	swept      bool
	recovered  bool
}

// A Request asks for a verification. Of a ticket, the criteria and the repository are
// the ticket's: the agent that does the work does not choose how it is judged.
type Request struct {
	TicketID   string           `json:"ticket_id,omitempty" jsonschema:"ticket whose criteria are checked"`
	BranchName string           `json:"branch_name,omitempty" jsonschema:"branch with the work; the ticket's if not given"`
	RepoURL    string           `json:"repo_url,omitempty" jsonschema:"repository as a path, https or ssh URL; the ticket's if not given"`
	Criteria   *ticket.Criteria `json:"acceptance_criteria,omitempty" jsonschema:"what to check, without a ticket"`
	ServiceURL string           `json:"service_url,omitempty" jsonschema:"where http_request checks without a service of their own go"`
	Token      uint64           `json:"token,omitempty" jsonschema:"of the claim"`

	// Key is the idempotency key: a verification that gave a result is not repeated, since
	// each that fails is an attempt of the ticket.
	Key string `json:"-"`
	// Holder is whose the claim of a claimed ticket must be, see [ticket.Service.CheckHolder]: failing
	// verifications end it. It is empty for callers that verify any ticket.
	Holder string `json:"-"`
}

// Verify executes a verification and records it. person says that a person asks, and
// onCheck, which may be nil, is called after each check.
func (t *Tickets) Verify(ctx context.Context, in Request, actor string, person bool, onCheck func(CheckResult)) (Result, error) {
	if in.ServiceURL != "" && !person {
		return Result{}, &abi.Error{Code: abi.Denied, Permanent: true, Field: "service_url", Message: "service_url: only a person chooses where requests go", Hint: "give the checks a service, or use the setting verify.url"}
	}
	if in.TicketID == "" {
		return t.alone(ctx, in, person, onCheck)
	}
	if in.Criteria != nil {
		return Result{}, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "acceptance_criteria", Message: "acceptance_criteria: ticket " + in.TicketID + " has its own", Hint: "change them with ticket/update, or leave out ticket_id"}
	}
	if err := t.recover(ctx); err != nil {
		return Result{}, err
	}
	if err := t.enter(in.TicketID); err != nil {
		return Result{}, err
	}
	defer t.leave(in.TicketID)
	var begun ticket.Verification
	var past *Result
	err := t.Update(ctx, func(tx ticket.Tx) (err error) {
		if past, err = t.past(ctx, tx, in); past != nil || err != nil {
			return err
		}
		if in.Holder != "" {
			if err = t.Service.CheckHolder(ctx, tx, in.TicketID, in.Token, in.Holder); err != nil {
				return err
			}
		}
		if begun, err = t.Service.BeginVerification(ctx, tx, in.TicketID, in.Token, actor); err != nil {
			return err
		}
		return in.allowed(&begun.Ticket, person) // an error undoes the beginning
	})
	if err != nil {
		return Result{}, failure(in.TicketID, err)
	}
	if past != nil {
		return *past, nil
	}
	own := &begun.Ticket
	job := Job{
		Criteria: own.AcceptanceCriteria, RepoURL: cmp.Or(in.RepoURL, own.RepoURL), Branch: cmp.Or(in.BranchName, branch(own)), ServiceURL: in.ServiceURL,
		Approved: begun.Approved, ByPerson: !own.CriteriaByAgent(), ForPerson: person, Caller: in.Holder, OnCheck: onCheck,
	}
	r, err := t.Verifier.Run(ctx, job)
	// What follows is recorded even when the caller has gone away.
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	if err != nil {
		if abandoned := t.Update(after, func(tx ticket.Tx) error {
			return t.Service.AbandonVerification(after, tx, own.ID, actor, begun.Number)
		}); abandoned != nil {
			t.Verifier.opt.Logger.Warn("an interrupted verification cannot be recorded", "ticket", own.ID, "error", abandoned)
		}
		return Result{}, failure(in.TicketID, err)
	}
	r.TicketID, r.Number = own.ID, begun.Number
	err = t.record(after, &r, in.Key, actor)
	return r, failure(in.TicketID, err)
}

// branch returns the branch of a ticket that is verified: "" is the default one of its repository.
func branch(own *ticket.Ticket) string {
	if own.State == ticket.NeedsReview {
		return own.BaseBranch // the work is there, with what was changed since
	}
	return own.BranchName
}

// allowed is the error of a request for a verification that its caller may not ask for, or that
// nothing says the branch of. A person chooses branch and repository. For others they are those of
// the ticket; the work of a claim under way may be on another branch, and work without a branch too.
func (in Request) allowed(own *ticket.Ticket, person bool) error {
	again, given := own.State == ticket.NeedsReview, in.BranchName != "" && in.BranchName != branch(own)
	switch {
	case in.RepoURL != "" && in.RepoURL != own.RepoURL && (own.RepoURL != "" || again || in.Holder != "") && !person:
		return &abi.Error{Code: abi.Denied, Permanent: true, Field: "repo_url", Message: fmt.Sprintf("repo_url: the repository of ticket %s is %s", own.ID, own.RepoURL)}
	case given && again && !person:
		return &abi.Error{Code: abi.Denied, Permanent: true, Field: "branch_name",
			Message: fmt.Sprintf("branch_name: ticket %s was done and is verified on %s", own.ID, cmp.Or(own.BaseBranch, "the default branch of its repository")), Hint: "leave out branch_name"}
	case given && own.BranchName != "" && own.State != ticket.InProgress && !person:
		return &abi.Error{Code: abi.Denied, Permanent: true, Field: "branch_name",
			Message: fmt.Sprintf("branch_name: the branch of ticket %s, which is %s, is %.100s", own.ID, own.State, own.BranchName), Hint: "leave out branch_name, or claim the ticket; a person verifies any branch"}
	case in.BranchName == "" && own.BranchName == "" && !again && len(criteria(own)) > 0:
		return &abi.Error{Code: abi.BadFields, Permanent: true, Field: "branch_name", Message: "branch_name: ticket " + own.ID + " has no branch yet"}
	}
	return nil
}

// maxCompleted is how many attempts by others a repetition of Complete may be behind.
const maxCompleted = 10

// Complete ends a claim with a result, as [ticket.Service.Complete] does. It looks where the
// branch is that was verified, outside of the transaction, because a repository may be on another
// machine. A call that is repeated with its key returns the ticket.
func (t *Tickets) Complete(ctx context.Context, id, actor string, r ticket.Result) (v ticket.View, err error) {
	repeated := false
	if err := t.Update(ctx, func(tx ticket.Tx) error {
		if v, err = t.Service.Get(ctx, tx, id); err != nil || r.Key == "" {
			return err
		}
		past, err := ticket.LastAttempts(ctx, tx, id, maxCompleted)
		repeated = slices.ContainsFunc(past, func(a ticket.Attempt) bool { return a.Key == r.Key && (r.Token == 0 || a.Token == r.Token) })
		return err
	}); err != nil || repeated {
		return v, err
	}
	if v.VerificationStatus == ticket.Passing && v.VerifiedCommit != "" {
		if r.Tip, err = t.Verifier.Tip(ctx, cmp.Or(v.VerifiedRepo, v.RepoURL), v.VerifiedBranch); err != nil {
			return v, err
		}
	}
	err = t.Update(ctx, func(tx ticket.Tx) error {
		if r.Holder != "" {
			if err := t.Service.CheckHolder(ctx, tx, id, r.Token, r.Holder); err != nil {
				return err
			}
		}
		v, err = t.Service.Complete(ctx, tx, id, actor, r)
		return err
	})
	return v, err
}

// A kept result is one in the history of a ticket.
type kept struct {
	*Result
	Key string `json:"key,omitempty"` // of the call
}

// maxPast is how many verifications by others a repetition may be behind.
const maxPast = 10

// past returns the result of an earlier call with the same key, nil if there is none.
func (t *Tickets) past(ctx context.Context, tx ticket.Tx, in Request) (*Result, error) {
	if in.Key == "" {
		return nil, nil
	}
	list, _, err := t.Service.VerificationHistory(ctx, tx, in.TicketID, maxPast, 0)
	if err != nil {
		return nil, err
	}
	for _, raw := range list {
		var k kept
		if err := json.Unmarshal(raw, &k); err != nil {
			return nil, err
		}
		if k.Key == in.Key {
			return k.Result, nil
		}
	}
	return nil, nil
}

func criteria(own *ticket.Ticket) []ticket.Check {
	if own.AcceptanceCriteria == nil {
		return nil
	}
	return own.AcceptanceCriteria.Checks
}

// record stores the verdict, and completes the result by what follows from it.
func (t *Tickets) record(ctx context.Context, r *Result, key, actor string) error {
	entry := map[string]any{
		"timestamp": r.StartedAt.Format(time.RFC3339Nano), "action": "verified", "verification": r.Number, "verification_status": r.Status,
		"summary": r.Summary, "branch_name": r.BranchName, "commit_sha": r.Commit,
	}
	verdict := ticket.Verdict{Number: r.Number, Status: r.Status, RepoURL: r.RepoURL, BranchName: r.BranchName, Commit: r.Commit, Message: fmt.Sprintf("%d of %d checks passed", r.Summary.Passed, r.Summary.Total)}
	var failed []map[string]string
	for _, c := range r.Checks {
		if c.Status == Failed {
			failed = append(failed, map[string]string{"check_id": c.ID, "message": c.Message})
		}
	}
	if len(failed) > 0 {
		entry["failed"] = failed
		verdict.Message += fmt.Sprintf("; %s: %s", failed[0]["check_id"], failed[0]["message"])
	}
	if r.Blocked != nil {
		entry["blocked"] = r.Blocked.Reason
		verdict.Reason, verdict.Message = r.Blocked.Reason, r.Blocked.Message
	}
	var err error
	if verdict.Entry, err = json.Marshal(entry); err != nil {
		return err
	}
	verdict.Result = func(p ticket.Progress) (json.RawMessage, error) {
		r.follow(p)
		return json.Marshal(kept{r, key})
	}
	return t.Update(ctx, func(tx ticket.Tx) error {
		_, err := t.Service.EndVerification(ctx, tx, r.TicketID, actor, verdict)
		return err
	})
}

// follow completes the result by what was decided about the ticket.
func (r *Result) follow(p ticket.Progress) {
	r.Attempt, r.Escalated, r.JudgedCommit = p.Attempt, p.Escalated, p.Judged
	if p.Attempt > 0 {
		r.Max = p.Max
	}
	if r.Blocked != nil && p.Retry != nil {
		r.Blocked.AttemptsRemaining = p.Retry.AttemptsRemaining
		if p.After != nil {
			r.Blocked.RetryAfter, r.Blocked.DelayMs = p.After, p.Retry.NextDelayMs
		}
	}
}

// alone verifies without a ticket; nothing is recorded.
func (t *Tickets) alone(ctx context.Context, in Request, person bool, onCheck func(CheckResult)) (Result, error) {
	if in.Criteria == nil || len(in.Criteria.Checks) == 0 {
		return Result{}, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "ticket_id", Message: "ticket_id is missing", Hint: "or give acceptance_criteria with repo_url and branch_name"}
	}
	if in.Holder != "" && in.RepoURL != "" && in.RepoURL != t.Service.RepoURL() {
		return Result{}, &abi.Error{Code: abi.Denied, Permanent: true, Field: "repo_url", Message: fmt.Sprintf("repo_url: without a ticket, an agent verifies the repository %s only", t.Service.RepoURL())}
	}
	if err := completed(in.Criteria, t.Verifier.opt.Plugins); err != nil {
		return Result{}, err
	}
	return t.Verifier.Run(ctx, Job{
		Criteria: in.Criteria, RepoURL: in.RepoURL, Branch: in.BranchName, ServiceURL: in.ServiceURL,
		Approved: person, ByPerson: person, ForPerson: person, Caller: in.Holder, OnCheck: onCheck,
	})
}

// Recheck verifies the tickets again that were done and that a later change affects,
// until ctx ends: those that pass are done again, the others wait for a person.
func (t *Tickets) Recheck(ctx context.Context) {
	log := t.Verifier.opt.Logger
	if err := t.recover(ctx); err != nil && ctx.Err() == nil {
		log.Warn("verifications that an earlier process left behind cannot be ended", "error", err)
	}
	for ctx.Err() == nil {
		var id string
		err := t.Update(ctx, func(tx ticket.Tx) (err error) {
			id, err = t.Service.ToVerifyAgain(ctx, tx)
			return err
		})
		if err == nil && id != "" {
			if err = t.recheck(ctx, id); err == nil {
				continue
			}
		}
		if err != nil && ctx.Err() == nil {
			log.Warn("a ticket cannot be verified again", "ticket", id, "error", err)
		}
		select {
		case <-t.Service.Affected():
		case <-ctx.Done():
		}
	}
}

// recheck verifies one ticket until there is a verdict, or no further retry.
func (t *Tickets) recheck(ctx context.Context, id string) error {
	for {
		r, err := t.Verify(ctx, Request{TicketID: id}, "system", false, nil)
		if err != nil || r.Blocked == nil || r.Blocked.RetryAfter == nil {
			return err
		}
		select {
		case <-time.After(time.Duration(r.Blocked.DelayMs) * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// recover cleans up after an earlier process, before the first verification. It is the only
// one that has the store, so no other process is verifying. What cannot be deleted is logged:
// no ticket depends on what the commands of another have left behind.
func (t *Tickets) recover(ctx context.Context) error {
	t.recovering.Lock()
	defer t.recovering.Unlock()
	if !t.swept { // once: later the checkouts are those of this process
		t.swept = true
		if err := t.Verifier.Sweep(); err != nil {
			t.Verifier.opt.Logger.Warn("checkouts that an earlier process left behind are not removed", "error", err)
		}
	}
	if t.recovered {
		return nil
	}
	err := t.Update(ctx, func(tx ticket.Tx) error { return t.Service.RecoverVerifications(ctx, tx) })
	t.recovered = err == nil
	return err
}

// enter refuses a second verification of a ticket at the same time.
func (t *Tickets) enter(id string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running[id] {
		return &abi.Error{Code: abi.Conflict, Permanent: true, Message: "ticket " + id + " is being verified", Hint: "wait for it: verify/status shows the result"}
	}
	if t.running == nil {
		t.running = map[string]bool{}
	}
	t.running[id] = true
	return nil
}

func (t *Tickets) leave(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.running, id)
}
