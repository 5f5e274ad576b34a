package ticket

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Fields are what clients write. In an update, fields that are nil stay as they are.
type Fields struct {
	Title              *string   `json:"title,omitempty" jsonschema:"one line"`
	Description        *string   `json:"description,omitempty" jsonschema:"what to do, at most 64 KiB"`
	State              *string   `json:"state,omitempty" jsonschema:"draft or ready for a new ticket; ready if not given"`
	Priority           *int      `json:"priority,omitempty" jsonschema:"higher is claimed first; 0 if not given"`
	Labels             *[]string `json:"labels,omitempty" jsonschema:"words to find it by"`
	Project            *string   `json:"project,omitempty" jsonschema:"group of tickets that claims can name"`
	Session            *string   `json:"session,omitempty" jsonschema:"group of tickets for notifications"`
	DesignID           *string   `json:"design_id,omitempty" jsonschema:"id of a design in another system"`
	AssigneeType       *string   `json:"assignee_type,omitempty" jsonschema:"who works on it: agent (if not given) or human"`
	RepoURL            *string   `json:"repo_url,omitempty" jsonschema:"repository as a path, https or ssh URL; the served workspace's if not given"`
	BranchName         *string   `json:"branch_name,omitempty" jsonschema:"branch with the work"`
	BaseBranch         *string   `json:"base_branch,omitempty" jsonschema:"branch that the work begins from; the repository's default if not given"`
	Person             bool      `json:"-"` // a person writes them, no agent
	Bound              bool      `json:"-"` // by an agent or model, which chooses no repository
	By                 string    `json:"-"` // agent or model that writes them, "" for a person and the steps of their definitions
	AcceptanceCriteria *Criteria `json:"acceptance_criteria,omitempty" jsonschema:"what verification checks"`
	DependsOn          *[]string `json:"depends_on,omitempty" jsonschema:"ids of tickets that must be done before"`
	ParentID           *string   `json:"parent_id,omitempty" jsonschema:"id of the ticket that this one is part of"`
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

// apply writes fields into a ticket.
func (f Fields) apply(t *Ticket) {
	title, description := t.Title, t.Description
	set(&t.Title, f.Title)
	set(&t.Description, f.Description)
	set(&t.Priority, f.Priority)
	set(&t.Labels, f.Labels)
	set(&t.Project, f.Project)
	set(&t.Session, f.Session)
	set(&t.AssigneeType, f.AssigneeType)
	set(&t.RepoURL, f.RepoURL)
	set(&t.BranchName, f.BranchName)
	set(&t.BaseBranch, f.BaseBranch)
	set(&t.DependsOn, f.DependsOn)
	set(&t.ParentID, f.ParentID)
	if f.DesignID != nil {
		t.DesignID = f.DesignID
	}
	if f.AcceptanceCriteria != nil {
		t.AcceptanceCriteria = f.AcceptanceCriteria
		t.CriteriaBy, t.CriteriaApproved = "", false
		if !f.Person {
			t.CriteriaBy = agentActor
		}
	}
	t.DependsOn = slices.Compact(slices.Sorted(slices.Values(t.DependsOn)))
	t.Title = strings.TrimSpace(t.Title)
	if t.Title != title || t.Description != description {
		t.TextBy = f.By
	}
}

// validID is what a client may name a ticket.
var validID = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// Create makes a ticket. id and key are optional: with either, a repeated creation with
// the same content finds the ticket, and one with other content is the error conflict.
func (s *Service) Create(ctx context.Context, tx Tx, id, key, actor string, f Fields) (v View, created bool, err error) {
	t := &Ticket{ID: id, Key: key, CreatedBy: actor, State: Ready, AssigneeType: "agent", RepoURL: s.opt.RepoURL, VerificationStatus: Pending, VerificationLog: []json.RawMessage{}, ImpactFlags: []Flag{}}
	if err := s.check(f); err != nil {
		return v, false, err
	}
	f.apply(t)
	if f.State != nil {
		if t.State, err = ParseState(*f.State); err != nil {
			return v, false, err
		}
		if t.State != Ready && t.State != Draft {
			return v, false, bad("state", "%s: a new ticket is ready or draft", t.State)
		}
	}
	switch {
	case id != "" && !validID.MatchString(id):
		return v, false, bad("id", "%.100q: want at most 100 letters, digits, dots, dashes and underscores", id)
	case len(key) > 200:
		return v, false, bad("key", "has %d bytes, at most 200", len(key))
	}
	if f.Bound && t.RepoURL != s.opt.RepoURL {
		if err := sameRepository(ctx, tx, t); err != nil {
			return v, false, err
		}
	}
	if old, err := existing(ctx, tx, t); err != nil || old != nil {
		if err != nil {
			return v, false, err
		}
		v, err := s.same(old, f)
		return v, false, err
	}
	if err := s.checkLinks(ctx, tx, t, nil); err != nil {
		return v, false, err
	}
	if err := number(ctx, tx, t); err != nil {
		return v, false, err
	}
	if err := s.checkNamed(f, t.BranchName, t.ID); err != nil {
		return v, false, err
	}
	t.CreatedAt = s.Now()
	t.UpdatedAt = t.CreatedAt
	if t.State == Ready && s.unapproved(t) {
		if err := s.wait(ctx, tx, t, NeedsApproval, approvalReason, nil, ""); err != nil {
			return v, false, err
		}
	}
	if _, err := s.note(ctx, tx, t, cmp.Or(actor, systemActor), categoryState, "created", map[string]any{"to": t.State}); err != nil {
		return v, false, err
	}
	if err := s.announce(ctx, tx, t, map[string]any{"created": true}); err != nil {
		return v, false, err
	}
	if t.Session != "" {
		if err := s.emit(ctx, tx, t, FiledEvent, map[string]any{"tickets": []string{t.ID}, "title": t.Title}); err != nil {
			return v, false, err
		}
	}
	if err := count(ctx, tx, "", t.State); err != nil {
		return v, false, err
	}
	return t.View(s.Now()), true, s.write(ctx, tx, t, 0)
}

// sameRepository is the error denied unless the repository of a ticket is that of its parent: the
// host works in it and pushes to it with the rights of its user.
func sameRepository(ctx context.Context, tx Tx, t *Ticket) error {
	if t.ParentID != "" {
		if parent, _, err := load(ctx, tx, t.ParentID); err != nil || parent.RepoURL == t.RepoURL {
			return err
		}
	}
	return &abi.Error{Code: abi.Denied, Permanent: true, Field: "repo_url", Message: fmt.Sprintf("repo_url: an agent does not choose the repository %.200s", t.RepoURL),
		Hint: "leave it out, file a part of a ticket that has this repository (parent_id), or have a person file it"}
}

// existing returns the ticket with the id of t, or with its key and creator, nil if there is
// none.
func existing(ctx context.Context, tx Tx, t *Ticket) (*Ticket, error) {
	if t.ID != "" {
		old, _, err := load(ctx, tx, t.ID)
		if abi.CodeOf(err) == abi.NotFound {
			return nil, nil
		}
		return old, err
	}
	if t.Key == "" {
		return nil, nil
	}
	var old *Ticket
	var bad error
	err := tx.ScanIndex(ctx, byKey, runtime.DocumentRange{Equal: []any{t.Key}}, func(_ string, d sentinels.Document) bool {
		if old, bad = read(d); bad == nil && old.CreatedBy != t.CreatedBy {
			old = nil
		}
		return old == nil && bad == nil
	})
	if err == nil {
		err = bad
	}
	return old, err
}

// same answers a repeated creation.
func (s *Service) same(old *Ticket, f Fields) (View, error) {
	next := *old
	f.apply(&next)
	before, err := json.Marshal(old)
	if err != nil {
		return View{}, err
	}
	after, err := json.Marshal(next)
	if err != nil {
		return View{}, err
	}
	if !bytes.Equal(before, after) {
		return View{}, &abi.Error{Code: abi.Conflict, Permanent: true, Message: fmt.Sprintf("ticket %s exists with other content", old.ID), Hint: "update it, or create one with another id or key"}
	}
	return old.View(s.Now()), nil
}

// number gives a ticket without an id the next one: T-1, T-2 and so on.
func number(ctx context.Context, tx Tx, t *Ticket) error {
	if t.ID != "" {
		return nil
	}
	n := 0
	doc, err := tx.Get(ctx, Sequence, "tickets")
	switch {
	case err == nil:
		err = json.Unmarshal(doc.Data, &n)
	case abi.CodeOf(err) == abi.NotFound:
		err = nil
	}
	for err == nil {
		n++
		t.ID = fmt.Sprintf("T-%d", n)
		if _, taken := tx.Get(ctx, Collection, t.ID); abi.CodeOf(taken) == abi.NotFound {
			break
		} else if taken != nil {
			err = taken
		}
	}
	if err == nil {
		_, err = tx.Put(ctx, Sequence, "tickets", json.RawMessage(fmt.Sprint(n)), sentinels.AnyRevision)
	}
	return err
}

// Update changes fields of a ticket, and its state if the machine allows it. Other
// criteria have to be verified again.
func (s *Service) Update(ctx context.Context, tx Tx, id, actor string, f Fields) (View, error) {
	if err := s.check(f); err != nil {
		return View{}, err
	}
	t, err := s.change(ctx, tx, id, func(t *Ticket) error {
		from := t.State
		if err := t.guard(f); err != nil {
			return err
		}
		if f.BranchName != nil && *f.BranchName != t.BranchName {
			if err := s.checkNamed(f, *f.BranchName, t.ID); err != nil {
				return err
			}
		}
		before, old := *t, t.oldCriteria(s.opt.Lines)
		f.apply(t)
		if f.AcceptanceCriteria != nil || before.RepoURL != t.RepoURL || before.BranchName != t.BranchName {
			t.unverify(Pending)
		}
		if err := s.checkLinks(ctx, tx, t, &before); err != nil {
			return err
		}
		if f.State != nil {
			to, err := ParseState(*f.State)
			if err != nil {
				return err
			}
			switch to {
			case from:
			case InProgress, SentinelFailed:
				return bad("state", "%s follows from a claim or a rejection and cannot be set", to)
			default:
				return s.decided(ctx, tx, t, actor, to, "")
			}
		}
		var replaced any
		if old.Digest != "" && old.Digest != t.AcceptanceCriteria.Digest() {
			replaced = old
		}
		_, err := s.note(ctx, tx, t, actor, categoryUpdated, strings.Join(changedFields(&before, t), ", "), replaced)
		return err
	})
	return s.view(t, err)
}

const approvalReason = "approval: an agent wrote acceptance criteria that execute commands or send requests that may change something"

// check refuses a repository that cannot be worked in, a branch that cannot be made there, and criteria
// that cannot be verified.
func (s *Service) check(f Fields) error {
	if f.RepoURL != nil && *f.RepoURL != "" && s.opt.CheckRepo != nil {
		if err := s.opt.CheckRepo(*f.RepoURL); err != nil {
			return err
		}
	}
	if f.BranchName != nil {
		if err := s.checkBranch(*f.BranchName, "", true); err != nil {
			return err
		}
	}
	if f.AcceptanceCriteria == nil || s.opt.CheckCriteria == nil {
		return nil
	}
	return s.opt.CheckCriteria(f.AcceptanceCriteria)
}

// checkBranch refuses a branch that cannot be made for a ticket, or that an agent may not name for it.
func (s *Service) checkBranch(branch, id string, person bool) error {
	if !person && s.ofOther(branch, id) {
		return otherBranch(branch)
	}
	if branch == "" || s.opt.CheckBranch == nil {
		return nil
	}
	return s.opt.CheckBranch(branch)
}

// checkNamed is checkBranch for a branch that a client names: one of an agent stays out of the way of others.
func (s *Service) checkNamed(f Fields, branch, id string) error {
	if err := s.checkBranch(branch, id, f.Person); err != nil || branch == "" || f.By == "" || s.opt.AgentBranch == nil || s.opt.AgentBranch(branch, id) {
		return err
	}
	name := branch[strings.LastIndex(branch, "/")+1:]
	return &abi.Error{Code: abi.Denied, Permanent: true, Field: "branch_name",
		Message: fmt.Sprintf("branch_name: an agent names branches below work/ only: %.100q would be in the way of %.100q", branch, branch+"/1.0"),
		Hint:    "leave branch_name out, or name work/" + name}
}

// unapproved reports whether the commands of a ticket's criteria need an approval.
func (s *Service) unapproved(t *Ticket) bool {
	return t.AcceptanceCriteria != nil && !t.approved() && len(s.opt.Lines(t.AcceptanceCriteria)) > 0
}

// guard refuses what would let an agent choose how its own work is judged.
func (t *Ticket) guard(f Fields) error {
	if f.Person {
		return nil
	}
	refuse := func(field, what string) error {
		return &abi.Error{Code: abi.Denied, Permanent: true, Field: field, Message: fmt.Sprintf("%s: an agent cannot change %s of ticket %s", field, what, t.ID), Hint: "a person can"}
	}
	if t.criteriaHeld() && f.AcceptanceCriteria != nil && f.AcceptanceCriteria.Digest() != t.AcceptanceCriteria.Digest() {
		return &abi.Error{Code: abi.Conflict, Permanent: true, Field: "acceptance_criteria",
			Message: fmt.Sprintf("acceptance_criteria: those of ticket %s wait for the approval of a person, and stay as the person sees them", t.ID),
			Hint:    "wait for the decision; ticket/comment says what should be different"}
	}
	differs := func(to *string, is string) bool { return to != nil && *to != is }
	decided := t.State == Approved || t.workHeld() || t.State == NeedsReview
	judged := decided || t.State == Done
	field := f.changesReading(t)
	if field != "" && (decided || t.criteriaHeld()) {
		return refuse(field, "what a person reads while deciding about it, the "+field)
	}
	// A person who decides takes title and description for what a person asked for, if one wrote them.
	if f.By != "" && t.TextBy == "" && (field == "title" || field == "description") {
		return &abi.Error{Code: abi.Denied, Permanent: true, Field: field,
			Message: fmt.Sprintf("%s: an agent cannot change the %s of ticket %s, which a person wrote", field, field, t.ID), Hint: "ticket/comment proposes another one"}
	}
	switch {
	case judged && (f.AcceptanceCriteria != nil || differs(f.BranchName, t.BranchName) || differs(f.BaseBranch, t.BaseBranch)):
		return refuse("state", "the work that a person approves or has approved, or that is done,")
	case t.AssigneeType == "human" && differs(f.AssigneeType, t.AssigneeType):
		return refuse("assignee_type", "whom it is for, a person,")
	case f.AcceptanceCriteria != nil && t.AcceptanceCriteria != nil && t.CriteriaBy != agentActor:
		return refuse("acceptance_criteria", "the criteria that a person wrote")
	case f.AcceptanceCriteria != nil && t.Lease != nil:
		return refuse("acceptance_criteria", "the criteria of the claimed work")
	case differs(f.RepoURL, t.RepoURL):
		return refuse("repo_url", "the repository")
	}
	return nil
}

// ofOther reports whether a branch is, or may become, that of another ticket than id. File systems ignore case.
func (s *Service) ofOther(branch, id string) bool {
	own := s.opt.OwnBranch(id)
	folder, _, _ := strings.Cut(own, "/")
	return strings.HasPrefix(strings.ToLower(branch)+"/", folder+"/") && !strings.EqualFold(branch, own)
}

func otherBranch(name string) error {
	return &abi.Error{Code: abi.Denied, Permanent: true, Field: "branch_name",
		Message: fmt.Sprintf("branch_name: %.100q is or may become the branch of another ticket; an agent cannot name it", name),
		Hint:    "leave branch_name out, or name one such as work/" + name[strings.LastIndex(name, "/")+1:]}
}

// changesReading returns the first field that changes of those that a person reads, beside the work, to decide about a
// ticket: "" if there is none.
func (f Fields) changesReading(t *Ticket) string {
	after := *t
	f.apply(&after)
	for _, field := range changedFields(t, &after) {
		switch field {
		case "title", "description", "assignee_type", "depends_on", "labels", "parent_id":
			return field
		}
	}
	return ""
}

// changedFields returns the names of the fields in which two versions of a ticket differ.
func changedFields(before, after *Ticket) (names []string) {
	for _, field := range []struct {
		name   string
		differ bool
	}{
		{"title", before.Title != after.Title},
		{"description", before.Description != after.Description},
		{"priority", before.Priority != after.Priority},
		{"labels", !slices.Equal(before.Labels, after.Labels)},
		{"project", before.Project != after.Project},
		{"session", before.Session != after.Session},
		{"design_id", before.DesignID != after.DesignID},
		{"assignee_type", before.AssigneeType != after.AssigneeType},
		{"repo_url", before.RepoURL != after.RepoURL},
		{"branch_name", before.BranchName != after.BranchName},
		{"base_branch", before.BaseBranch != after.BaseBranch},
		{"acceptance_criteria", before.AcceptanceCriteria.Digest() != after.AcceptanceCriteria.Digest()},
		{"depends_on", !slices.Equal(before.DependsOn, after.DependsOn)},
		{"parent_id", before.ParentID != after.ParentID},
	} {
		if field.differ {
			names = append(names, field.name)
		}
	}
	return names
}

// Depend adds and removes dependencies, for a person or not.
func (s *Service) Depend(ctx context.Context, tx Tx, id, actor string, person bool, add, remove []string) (View, error) {
	for field, list := range map[string][]string{"add": add, "remove": remove} { // each is compared with each
		if len(list) > maxLinks {
			return View{}, bad(field, "has %d ids, at most %d", len(list), maxLinks)
		}
	}
	t, err := s.change(ctx, tx, id, func(t *Ticket) error {
		before, list := *t, slices.Concat(slices.Clone(t.DependsOn), add)
		list = slices.DeleteFunc(list, func(id string) bool { return slices.Contains(remove, id) })
		f := Fields{DependsOn: &list, Person: person}
		if err := t.guard(f); err != nil {
			return err
		}
		f.apply(t)
		if err := s.checkLinks(ctx, tx, t, &before); err != nil {
			return err
		}
		_, err := s.note(ctx, tx, t, actor, categoryUpdated, "dependencies: "+strings.Join(t.DependsOn, ", "), nil)
		return err
	})
	return s.view(t, err)
}

// checkLinks checks a ticket with the dependencies and the parent that it had not before, and
// counts its dependencies that are not done. before is nil for a new ticket.
func (s *Service) checkLinks(ctx context.Context, tx Tx, t, before *Ticket) error {
	if err := t.check(); err != nil {
		return err
	}
	if before == nil {
		before = new(Ticket)
	}
	if t.ParentID != before.ParentID {
		if err := above(ctx, tx, "parent_id", t.ID, []string{t.ParentID}, func(p *Ticket) []string { return []string{p.ParentID} }); err != nil {
			return err
		}
	}
	if slices.Equal(t.DependsOn, before.DependsOn) {
		return nil
	}
	added := slices.DeleteFunc(slices.Clone(t.DependsOn), func(id string) bool { return slices.Contains(before.DependsOn, id) })
	if err := above(ctx, tx, "depends_on", t.ID, added, func(p *Ticket) []string { return p.DependsOn }); err != nil {
		return err
	}
	open, err := open(ctx, tx, t, map[string]bool{})
	t.Open = open
	return err
}

// open counts the dependencies that are not done. done has what is known of tickets, and gets
// what was read.
func open(ctx context.Context, tx Tx, t *Ticket, done map[string]bool) (n int, err error) {
	for _, id := range t.DependsOn {
		is, known := done[id]
		if !known {
			d, _, err := load(ctx, tx, id)
			if err != nil && abi.CodeOf(err) != abi.NotFound { // deleted: a person has to remove the dependency
				return n, err
			}
			is = err == nil && d.State == Done
			done[id] = is
		}
		if !is {
			n++
		}
	}
	return n, nil
}

// maxLinked bounds the tickets that the links of one lead to.
const maxLinked = 1000

// above refuses links to tickets that do not exist, or that lead back to own.
func above(ctx context.Context, tx Tx, field, own string, ids []string, links func(*Ticket) []string) error {
	seen := map[string]bool{}
	for todo := slices.Clone(ids); len(todo) > 0; {
		at := todo[0]
		todo = todo[1:]
		if at == "" || seen[at] {
			continue
		}
		if at == own {
			return &abi.Error{Code: abi.Conflict, Permanent: true, Field: field, Message: fmt.Sprintf("%s: %s lead back to %s: a circle", field, strings.Join(ids, ", "), own)}
		}
		if seen[at] = true; len(seen) > maxLinked {
			return bad(field, "leads to more than %d tickets", maxLinked)
		}
		t, _, err := load(ctx, tx, at)
		if abi.CodeOf(err) == abi.NotFound && !slices.Contains(ids, at) {
			continue
		}
		if err != nil {
			return err
		}
		todo = append(todo, links(t)...)
	}
	return nil
}

// recount writes how many dependencies of each dependent ticket are not done.
func (s *Service) recount(ctx context.Context, tx Tx, id string) error {
	dependents, err := linked(ctx, tx, byDependency, id)
	if err != nil {
		return err
	}
	done := map[string]bool{}
	for _, dependent := range dependents {
		t, revision, err := load(ctx, tx, dependent)
		if err != nil {
			return err
		}
		was := t.Open
		if t.Open, err = open(ctx, tx, t, done); err != nil {
			return err
		}
		if t.Open == was {
			continue
		}
		if err := s.write(ctx, tx, t, revision); err != nil {
			return err
		}
		if t.claimable() {
			if err := s.emitAs(ctx, tx, s.eventID(t, DueEvent)+":"+id, DueEvent, map[string]any{"ticket_id": t.ID, "state": t.State}); err != nil {
				return err
			}
		}
	}
	return nil
}

// linked returns the ids of the tickets in a part of an index.
func linked(ctx context.Context, tx Tx, x *runtime.DocumentIndex, equal ...any) (ids []string, err error) {
	err = tx.ScanIndex(ctx, x, runtime.DocumentRange{Equal: equal, Limit: maxLinked}, func(_ string, d sentinels.Document) bool {
		ids = append(ids, d.ID)
		return true
	})
	return ids, err
}
