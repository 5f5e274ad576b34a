package ticket

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Result is what an agent reports when it has finished.
type Result struct {
	Token       uint64          `json:"token,omitempty"`
	Next        string          `json:"state,omitempty"` // in_review, approved or done; default the next open gate
	Person      bool            `json:"-"`               // a person reports: Next may pass over gates
	BranchName  string          `json:"branch_name,omitempty"`
	PullRequest *PullRequest    `json:"pull_request,omitempty"`
	Files       []File          `json:"files,omitempty"`
	Result      json.RawMessage `json:"result,omitempty"`

	Key    string `json:"-"` // idempotency key
	Holder string `json:"-"` // whose the claim must be, see [Service.CheckHolder]; "" for callers that need none
	Tip    string `json:"-"` // newest commit of the branch that was verified, "" if there is none
	Pushed string `json:"-"` // commit that the claim's worktree pushed last, "" if it pushed nothing
}

// Complete ends a claim with a result: the ticket goes to its next open gate. A ticket
// whose criteria did not pass, or not for the commit that is reported, is the error conflict; one without criteria is blocked as
// unverified, unless unverified work is allowed.
func (s *Service) Complete(ctx context.Context, tx Tx, id, actor string, r Result) (View, error) {
	ctx = ofWork(ctx)
	var wanted State
	if r.Next != "" {
		var err error
		if wanted, err = ParseState(r.Next); err != nil {
			return View{}, err
		}
		if wanted != InReview && wanted != Approved && wanted != Done {
			return View{}, bad("state", "%s: work that is finished becomes in_review, approved or done", wanted)
		}
	}
	t, err := s.change(ctx, tx, id, func(t *Ticket) error {
		if err := t.checkToken(r.Token); err != nil {
			return err
		}
		if err := t.approvalHeld(); err != nil {
			return err
		}
		to := s.gate(t, wanted, r.Person)
		if t.VerificationStatus != Passing {
			if t.AcceptanceCriteria != nil && len(t.AcceptanceCriteria.Checks) > 0 {
				return &abi.Error{Code: abi.Conflict, Permanent: true, Field: "verification_status",
					Message: fmt.Sprintf("ticket %s: its verification is %s, not passing", t.ID, t.VerificationStatus), Hint: "verify the branch first: " + `verify/run {"ticket_id": "` + t.ID + `"}`}
			}
			if !s.opt.AllowUnverified {
				to = unverified
			}
		}
		if err := t.sameCommit(r); err != nil {
			return err
		}
		from := t.State
		if r.BranchName != "" && t.VerifiedBranch != "" && r.BranchName != t.VerifiedBranch {
			return &abi.Error{Code: abi.Conflict, Permanent: true, Field: "branch_name", Message: fmt.Sprintf("ticket %s: branch %.100q was verified, not %.100q", t.ID, t.VerifiedBranch, r.BranchName)}
		}
		if branch := cmp.Or(r.BranchName, t.VerifiedBranch); branch != "" && branch != t.BranchName {
			if err := s.checkBranch(branch, t.ID, r.Person); err != nil {
				return err
			}
			t.BranchName = branch
		}
		proposed := r.PullRequest != nil && !t.proposed(r.PullRequest)
		if r.PullRequest != nil {
			t.PullRequest = r.PullRequest
		}
		if err := s.addFiles(t, r.Files); err != nil {
			return err
		}
		if err := s.end(ctx, tx, t, Attempt{Outcome: "completed", Result: r.Result, Key: r.Key}); err != nil {
			return err
		}
		if err := s.enter(t, to.state); err != nil {
			return err
		}
		t.free()
		details := map[string]any{}
		if to == approval {
			t.JudgedCommit = t.VerifiedCommit
		}
		if t.JudgedCommit != "" {
			details["commit"] = t.JudgedCommit
		}
		switch to.state {
		case Blocked:
			t.HoldCode, t.HoldReason = to.code, to.reason
			details["reason"] = to.code
		case Done:
			t.Error = ""
			if t.RetryCount > 0 && s.opt.Observer.Recovered != nil {
				s.opt.Observer.Recovered()
			}
		}
		if err := s.changed(ctx, tx, t, actor, from, details); err != nil || !proposed {
			return err
		}
		return s.emit(ctx, tx, t, PullEvent, map[string]any{"pull_request": r.PullRequest, "branch_name": t.BranchName})
	})
	return s.view(t, err)
}

// proposed reports whether a pull request is the one that the ticket has, with the same or with
// more commits on its branch.
func (t *Ticket) proposed(p *PullRequest) bool {
	old := t.PullRequest
	return old != nil && old.URL == p.URL && old.Number == p.Number && old.Branch == p.Branch
}

// addFiles adds what the work changed; the newest change of a path holds.
func (s *Service) addFiles(t *Ticket, files []File) error {
	for _, f := range files {
		if f.Path == "" || strings.ContainsAny(f.Path, "\x00") || len(f.Path) > 1000 {
			return bad("files", "file_path %.100q: want 1 to 1000 bytes", f.Path)
		}
		if f.Change != "created" && f.Change != "modified" && f.Change != "deleted" {
			return bad("files", "change_type %.40q of %s: want created, modified or deleted", f.Change, f.Path)
		}
		f.CreatedAt = s.Now()
		if i := slices.IndexFunc(t.Files, func(have File) bool { return have.Path == f.Path }); i >= 0 {
			t.Files[i] = f
		} else {
			t.Files = append(t.Files, f)
		}
	}
	if len(t.Files) > maxFiles {
		return bad("files", "a ticket has at most %d", maxFiles)
	}
	return nil
}

// AddFiles records files that the work of a ticket changed.
func (s *Service) AddFiles(ctx context.Context, tx Tx, id, actor string, token uint64, files []File) (View, error) {
	t, err := s.change(ctx, tx, id, func(t *Ticket) error {
		if err := t.checkToken(token); err != nil {
			return err
		}
		if err := s.addFiles(t, files); err != nil {
			return err
		}
		_, err := s.note(ctx, tx, t, actor, "file_modified", fmt.Sprintf("%d files", len(files)), nil)
		return err
	})
	return s.view(t, err)
}

// impact flags the tickets that were done before and that a ticket affects: those that
// changed the same files of the same repository, and those that depend on it.
func (s *Service) impact(ctx context.Context, tx Tx, t *Ticket) error {
	affected := map[string]*Flag{}
	flag := func(ids []string, reason, file string) {
		for _, id := range ids {
			if id == t.ID {
				continue
			}
			if affected[id] == nil {
				affected[id] = &Flag{TicketID: t.ID, Reason: reason, At: s.Now()}
			}
			if file != "" {
				affected[id].Files = append(affected[id].Files, file)
			}
		}
	}
	dependents, err := linked(ctx, tx, byDependency, t.ID)
	if err != nil {
		return err
	}
	flag(dependents, "dependency", "")
	for _, f := range t.Files {
		ids, err := linked(ctx, tx, byFile, f.Path)
		if err != nil {
			return err
		}
		flag(ids, "files", f.Path)
	}
	for id, why := range affected {
		other, _, err := load(ctx, tx, id)
		if err != nil {
			return err
		}
		if other.State != Done || why.Reason == "files" && other.RepoURL != t.RepoURL {
			continue
		}
		if _, err := s.change(ctx, tx, id, func(other *Ticket) error {
			other.ImpactFlags = append(other.ImpactFlags, *why)
			other.ImpactFlags = other.ImpactFlags[max(len(other.ImpactFlags)-maxLog, 0):]
			other.VerificationStatus = ReviewNeeded
			if err := s.enter(other, NeedsReview); err != nil {
				return err
			}
			select {
			case s.affected <- struct{}{}:
			default:
			}
			return s.changed(ctx, tx, other, systemActor, Done, map[string]any{"reason": "impact", "by": t.ID})
		}); err != nil {
			return err
		}
	}
	return nil
}

func (t *Ticket) log(entry json.RawMessage) {
	t.VerificationLog = append(t.VerificationLog, entry)
	t.VerificationLog = t.VerificationLog[max(len(t.VerificationLog)-maxLog, 0):]
}

// An Escalation is a ticket that an agent cannot decide about.
type Escalation struct {
	Token    uint64
	Reason   string          // why; default max_verification_attempts, of a review needs_review
	Last     json.RawMessage // the last verification or review
	RawReply string          // of a model, when it could not be read
}

// Escalate blocks a ticket whose verification failed too often, or whose review has no
// result: a person decides.
func (s *Service) Escalate(ctx context.Context, tx Tx, id, actor string, e Escalation) (View, error) {
	ctx = ofWork(ctx)
	t, err := s.change(ctx, tx, id, func(t *Ticket) error {
		if t.State == Blocked && t.HoldCode == MaxVerified {
			return nil // the verdict did it
		}
		if err := t.checkToken(e.Token); err != nil {
			return err
		}
		if err := t.approvalHeld(); err != nil {
			return err
		}
		from, code := t.State, MaxVerified
		if from == InReview {
			code = NoReview
		}
		if err := s.wait(ctx, tx, t, code, cmp.Or(e.Reason, code), e.Last, e.RawReply); err != nil {
			return err
		}
		if code == MaxVerified {
			t.VerificationStatus = Failing
		}
		return s.changed(ctx, tx, t, actor, from, map[string]any{"reason": code, "escalated": true})
	})
	return s.view(t, err)
}

// A Decision answers a ticket that waits for a person.
type Decision struct {
	Action  string // release, reject, accept or hold
	Comment string // for the next attempt
	By      string
	Fields  Fields // changed before

	// What the person was shown. Where one is given, the decision counts for nothing else.
	CriteriaDigest string // of the criteria
	VerifiedCommit string // that the verification passed for
}

// shown is the error conflict if the ticket is not what the person who decides was shown.
func (s *Service) shown(ctx context.Context, tx Tx, t *Ticket, d Decision) error {
	if d.VerifiedCommit != "" && d.VerifiedCommit != t.VerifiedCommit {
		return &abi.Error{Code: abi.Conflict, Permanent: true, Field: "verified_commit",
			Message: fmt.Sprintf("ticket %s: the decision is about commit %.7s, and %s", t.ID, d.VerifiedCommit, cmp.Or(short(t.VerifiedCommit), "no commit")+" is verified now"),
			Hint:    "look at the ticket again: sentinel inbox"}
	}
	if d.CriteriaDigest == "" || t.AcceptanceCriteria != nil && d.CriteriaDigest == t.AcceptanceCriteria.Digest() {
		return nil
	}
	before, err := s.replaced(ctx, tx, t, d.CriteriaDigest)
	if err != nil {
		return err
	}
	text, now := "", t.oldCriteria(s.opt.Lines)
	for _, line := range before {
		if !slices.Contains(now.Lines, line) {
			text += "\n- " + line
		}
	}
	for _, line := range now.Lines {
		if !slices.Contains(before, line) {
			text += "\n+ " + line
		}
	}
	return &abi.Error{Code: abi.Conflict, Permanent: true, Field: "criteria_digest",
		Message: fmt.Sprintf("ticket %s: the decision is about the criteria %.64s, and they are %s now; what they execute differs:%s", t.ID, d.CriteriaDigest, cmp.Or(now.Digest, "gone"), cmp.Or(text, " in nothing")),
		Hint:    "look at the ticket again: sentinel inbox"}
}

// An oldCriteria is what the log of a ticket keeps of criteria that were replaced.
type oldCriteria struct {
	Digest string   `json:"criteria_digest"`
	Lines  []string `json:"criteria_lines,omitempty"` // that they executed
}

// oldCriteria returns what is kept of the criteria of the ticket when they are replaced.
func (t *Ticket) oldCriteria(lines func(*Criteria) []string) (out oldCriteria) {
	if t.AcceptanceCriteria != nil {
		out = oldCriteria{t.AcceptanceCriteria.Digest(), lines(t.AcceptanceCriteria)}
	}
	return out
}

// replaced returns the lines of earlier criteria of a ticket, as far as its log has them.
func (s *Service) replaced(ctx context.Context, tx Tx, t *Ticket, digest string) ([]string, error) {
	page, err := s.ListActivities(ctx, tx, t.ID, []string{categoryUpdated}, maxPage, 0)
	for _, a := range page.Activities {
		var old oldCriteria
		if len(a.Metadata) > 0 && json.Unmarshal(a.Metadata, &old) == nil && old.Digest == digest {
			return old.Lines, nil
		}
	}
	return nil, err
}

// short returns the beginning of a commit's name, as git shows it.
func short(commit string) string { return commit[:min(len(commit), 7)] }

// Decide answers a ticket that is held, blocked or to be reviewed. release puts it into
// the queue with new retries, reject cancels it, accept makes it done, and hold takes a
// ticket out of its queue.
func (s *Service) Decide(ctx context.Context, tx Tx, id string, d Decision) (View, error) {
	to, ok := actions[d.Action]
	if !ok {
		return View{}, bad("action", "%.40q: want release, reject, accept or hold", d.Action)
	}
	if err := s.check(d.Fields); err != nil {
		return View{}, err
	}
	t, err := s.change(ctx, tx, id, func(t *Ticket) error {
		if err := s.shown(ctx, tx, t, d); err != nil {
			return err
		}
		before := *t
		d.Fields.apply(t)
		if d.Fields.AcceptanceCriteria != nil {
			t.unverify(Pending)
		}
		if err := s.checkLinks(ctx, tx, t, &before); err != nil {
			return err
		}
		return s.decided(ctx, tx, t, d.By, to, d.Comment)
	})
	return s.view(t, err)
}

// decided moves a ticket because a person wants it. Its claim, if any, ends.
func (s *Service) decided(ctx context.Context, tx Tx, t *Ticket, actor string, to State, comment string) error {
	from := t.State
	if t.Lease != nil {
		if err := s.end(ctx, tx, t, Attempt{Outcome: "released", Error: textcut.Mark("decided by "+actor+": "+comment, maxError)}); err != nil {
			return err
		}
	}
	if from == to {
		return &abi.Error{Code: abi.Conflict, Permanent: true, Field: "state", Message: fmt.Sprintf("ticket %s is %s already", t.ID, t.State)}
	}
	code, approves := t.HoldCode, t.criteriaHeld() && to == Ready
	if code == WorkApproval && to == Done {
		to = s.afterApproval()
	}
	if err := s.enter(t, to); err != nil {
		return err
	}
	t.free()
	details := map[string]any{"decided_by": actor}
	if t.JudgedCommit != "" {
		details["commit"] = t.JudgedCommit
	}
	if approves {
		t.CriteriaApproved, details["approved"] = true, true
		details["criteria_digest"] = t.AcceptanceCriteria.Digest()
	}
	switch to {
	case Ready:
		t.Retries, t.RetryAfter, t.Due = nil, nil, false
		if comment != "" {
			next := Feedback{Decision: "released", Items: []string{comment}}
			if t.SentinelFeedback != nil {
				next.Items = append(slices.Clone(t.SentinelFeedback.Items), comment)
			}
			t.SentinelFeedback = &next
		}
	case OnHold:
		t.HoldCode, t.HoldReason = Held, comment
	case Cancelled:
		details["error"] = textcut.Mark(t.Error, 200)
	}
	if comment != "" {
		details["comment"] = textcut.Mark(comment, 500)
	}
	return s.changed(ctx, tx, t, actor, from, details)
}

// Delete removes a ticket with its attempts and activities. Others cannot link to it
// any more, and those that depended on it wait for a person.
func (s *Service) Delete(ctx context.Context, tx Tx, id string) error {
	t, revision, err := load(ctx, tx, id)
	if err != nil {
		return err
	}
	if t.Lease != nil {
		return &abi.Error{Code: abi.Conflict, Permanent: true, Message: fmt.Sprintf("ticket %s: %s has it", id, t.Lease.Holder), Hint: "cancel it, or wait until the claim ends"}
	}
	for collection, n := range map[string]int{Attempts: t.Attempts, Activities: t.Activities, Verifications: t.Verifications} {
		for i := range n {
			if err := tx.Delete(ctx, collection, numbered(id, i+1), anyRevision); err != nil && abi.CodeOf(err) != abi.NotFound {
				return err
			}
		}
	}
	if err := tx.Delete(ctx, Collection, id, revision); err != nil {
		return err
	}
	if err := count(ctx, tx, t.State, ""); err != nil {
		return err
	}
	if err := s.recount(ctx, tx, id); err != nil {
		return err
	}
	t.Activities++ // the tombstone is the last event
	return s.emit(ctx, tx, t, UpdateEvent, map[string]any{"ticket_id": id, "state": t.State, "deleted": true, "project": t.Project})
}
